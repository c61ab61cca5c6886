//! Random values from a small generator with a fixed seed, and the samples that they are drawn for.

use tonnage_core::row::{OpDef, Sample, SampleInput, Values};
use tonnage_core::{Class, DType};

use crate::exec::tensor::Tensor;
use crate::plain::Plain;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// The numbers of a name.
    pub fn of(name: &str, more: usize) -> Random {
        let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325, |h: u64, b| {
            (h ^ b as u64).wrapping_mul(0x0000_0100_0000_01b3)
        });
        Random(hash ^ (more as u64) << 40)
    }

    /// 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// In [0, 1).
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A whole number below `n`.
    pub fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    /// Mean 0, deviation 1, as a sum of uniforms; never within 0.02 of 0, where many functions have a kink.
    pub fn normal(&mut self) -> f64 {
        let sum: f64 = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        if sum.abs() < 0.02 { sum + 0.05 } else { sum }
    }

    /// An input of a sample.
    pub fn input(&mut self, input: &SampleInput) -> Plain {
        let sizes = input.ty.shape.sizes().expect("samples have known sizes").to_vec();
        let dtype = input.ty.dtype;
        let count = sizes.iter().product();
        let values = match input.values {
            Values::PositiveDefinite => return self.positive_definite(dtype, sizes),
            Values::Invertible => return self.invertible(dtype, sizes),
            other => (0..count).map(|_| self.value(dtype, other)).collect(),
        };
        Plain::new(dtype, sizes, values)
    }

    fn value(&mut self, dtype: DType, values: Values) -> f64 {
        match (values, dtype.class()) {
            (Values::Normal, Class::Float) => self.normal(),
            (Values::Normal, Class::Bool) => self.below(2) as f64,
            // Small ones mostly, so that some are equal; some large enough to wrap around.
            (Values::Normal, class) => {
                let most = if self.below(4) == 0 { 1 << 20.min(8 * dtype.size() - 1) } else { 9 };
                let value = self.below(most) as f64;
                let negative = class == Class::Signed && self.below(2) == 0;
                if negative { -value } else { value }
            }
            (Values::Between(low, high), Class::Float) => low + (high - low) * self.uniform(),
            (Values::Between(low, high), _) => low + self.below((high - low) as usize + 1) as f64,
            // What the dtype cannot hold would come round as something else.
            (Values::Below(n), _) => self.below(n.min(1 << (8 * dtype.size() - 1).min(62))) as f64,
            (Values::PositiveDefinite | Values::Invertible, _) => 0.0,
        }
    }

    fn positive_definite(&mut self, dtype: DType, sizes: Vec<usize>) -> Plain {
        let n = *sizes.last().expect("a matrix");
        let mut values = Vec::new();
        for _ in 0..sizes[..sizes.len() - 2].iter().product() {
            let a: Vec<f64> = (0..n * n).map(|_| self.normal()).collect();
            for (i, j) in (0..n * n).map(|at| (at / n, at % n)) {
                let dot: f64 = (0..n).map(|k| a[i * n + k] * a[j * n + k]).sum();
                values.push(dot + if i == j { n as f64 } else { 0.0 });
            }
        }
        Plain::new(dtype, sizes, values)
    }

    /// Small numbers, and a large one in each row, a place to the right of the diagonal.
    fn invertible(&mut self, dtype: DType, sizes: Vec<usize>) -> Plain {
        let n = *sizes.last().expect("a matrix");
        let count: usize = sizes.iter().product();
        let element = |at: usize| {
            let (row, column) = (at / n % n, at % n);
            let large = if column == (row + 1) % n { 2.0 } else { 0.0 };
            large + self.normal() / (n as f64).max(4.0)
        };
        let values = (0..count).map(element).collect();
        Plain::new(dtype, sizes, values)
    }

    /// All inputs of a large sample, in bytes: some thousand values, again and again. Matrices with properties are drawn
    /// whole.
    pub fn tiled(&mut self, sample: &Sample) -> Vec<Tensor> {
        let tiled = |input: &SampleInput| {
            if matches!(input.values, Values::PositiveDefinite | Values::Invertible) {
                return self.input(input);
            }
            let sizes = input.ty.shape.sizes().expect("samples have known sizes").to_vec();
            let count: usize = sizes.iter().product();
            let some: Vec<f64> =
                (0..count.min(4099)).map(|_| self.value(input.ty.dtype, input.values)).collect();
            let some = Plain::new(input.ty.dtype, [some.len()], some).values;
            let values = some.iter().copied().cycle().take(count).collect();
            Plain { dtype: input.ty.dtype, sizes, values }
        };
        sample.inputs.iter().map(tiled).map(|plain| Tensor::from_plain(&plain)).collect()
    }

    /// All inputs of a sample.
    pub fn inputs(&mut self, sample: &Sample) -> Vec<Plain> {
        sample.inputs.iter().map(|input| self.input(input)).collect()
    }

    /// All inputs of a sample, in bytes.
    pub fn tensors(&mut self, sample: &Sample) -> Vec<Tensor> {
        self.inputs(sample).iter().map(Tensor::from_plain).collect()
    }
}

/// Runs `check` for every sample of every op, and fails with the list of all that went wrong. A panic counts as
/// an answer too: it is listed, not passed on.
#[track_caller]
pub fn for_every_sample(
    check: impl Fn(&'static OpDef, &Sample, &mut Random) -> Result<(), String>
    + std::panic::RefUnwindSafe,
) {
    let mut wrong = Vec::new();
    for op in crate::ops::ops() {
        for (i, sample) in (op.samples)().iter().enumerate() {
            let run = || check(op, sample, &mut Random::of(op.name, i));
            let problem = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(Ok(())) => continue,
                Ok(Err(problem)) => problem,
                Err(panic) => message(panic.as_ref()),
            };
            let types: Vec<_> = sample.inputs.iter().map(|input| &input.ty).collect();
            wrong.push(format!("{} {types:?} {:?}: {problem}", op.name, sample.attrs));
        }
    }
    none(wrong);
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or(panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("?"))
}

/// Fails with the whole list.
#[track_caller]
pub fn none(wrong: Vec<String>) {
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

//! Every sample of every row as arrays with random values from a fixed seed.

use tonnage_core::row::{OpDef, Sample, SampleInput, Values};
use tonnage_core::{Class, DType, FromScalar, Kind, Mark, Scalar, Source, with_element};
use tonnage_runtime::Array;

/// SplitMix64.
pub struct Random(u64);

impl Random {
    /// The numbers of a name.
    pub fn of(name: &str, more: usize) -> Random {
        let hash = name.bytes().fold(more as u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x1b3));
        Random(hash)
    }

    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ z >> 31) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn below(&mut self, n: usize) -> usize {
        (self.uniform() * n as f64) as usize
    }

    fn value(&mut self, dtype: DType, values: Values) -> f64 {
        match (values, dtype.class()) {
            (Values::Normal, Class::Float) => 4.0 * self.uniform() - 2.0,
            (Values::Normal, Class::Bool) => self.below(2) as f64,
            (Values::Normal, Class::Signed) => self.below(19) as f64 - 9.0,
            (Values::Normal, _) => self.below(10) as f64,
            (Values::Between(low, high), Class::Float) => low + (high - low) * self.uniform(),
            (Values::Between(low, high), _) => low + self.below((high - low) as usize + 1) as f64,
            // What the dtype cannot hold would come back as something else.
            (Values::Below(n), _) => self.below(n.min(1 << (8 * dtype.size() - 1).min(62))) as f64,
            (Values::PositiveDefinite | Values::Invertible, _) => 0.0,
        }
    }

    fn input(&mut self, input: &SampleInput) -> Array {
        let sizes = input.ty.shape.sizes().expect("samples have known sizes");
        let dtype = input.ty.dtype;
        let count: usize = sizes.iter().product();
        let values: Vec<f64> = match input.values {
            // Ones and a heavy diagonal: symmetric, positive definite, and so invertible.
            Values::PositiveDefinite | Values::Invertible => {
                let n = sizes[sizes.len() - 1];
                let diagonal = |i: usize| (i % (n * n)).is_multiple_of(n + 1);
                let at = |i| if diagonal(i) { 2.0 + n as f64 } else { 1.0 };
                (0..count).map(at).collect()
            }
            other => (0..count).map(|_| self.value(dtype, other)).collect(),
        };
        let mark = mark();
        with_element!(dtype, T => {
            let elements: Vec<T> = values
                .iter()
                .map(|v| T::from_scalar(match dtype.class() {
                    Class::Float => Scalar::Float(*v),
                    Class::Bool => Scalar::Bool(*v != 0.0),
                    _ => Scalar::Int(*v as i128),
                }))
                .collect();
            Array::from_slice(&elements, &sizes, mark, "sample").unwrap()
        })
    }

    /// All inputs of a sample.
    pub fn inputs(&mut self, sample: &Sample) -> Vec<Array> {
        sample.inputs.iter().map(|input| self.input(input)).collect()
    }
}

/// This line, for what a test itself obtains.
#[track_caller]
pub fn mark() -> Mark {
    Mark { source: Source::here(), kind: Kind::Activation }
}

/// The elements' bytes in logical order.
pub fn bits(array: &Array) -> Vec<u8> {
    let mut bits = vec![0; array.layout().count() * array.dtype().size()];
    array.copy_to(&mut bits).unwrap();
    bits
}

/// Runs `check` for every sample of every op, and fails with the list of all that went wrong; a panic is
/// listed, not passed on.
#[track_caller]
pub fn for_every_sample(check: impl Fn(&'static OpDef, &Sample, &[Array]) -> Result<(), String>) {
    let mut wrong = Vec::new();
    for op in super::ops::ops() {
        for (i, sample) in (op.samples)().iter().enumerate() {
            let inputs = Random::of(op.name, i).inputs(sample);
            let run = || check(op, sample, &inputs);
            let problem = match std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)) {
                Ok(Ok(())) => continue,
                Ok(Err(problem)) => problem,
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or(panic.downcast_ref::<&str>().copied());
                    format!("panicked: {}", text.unwrap_or("?"))
                }
            };
            let types: Vec<_> = sample.inputs.iter().map(|input| &input.ty).collect();
            wrong.push(format!("{} {types:?} {:?}: {problem}", op.name, sample.attrs));
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

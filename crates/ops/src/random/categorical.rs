//! `random_categorical`: which of several classes is drawn, by their logits along the last axis, as i64.
//!
//! A uniform share of the sum of exponentials falls to one class. The largest logit is taken out first; NaN has no
//! weight, and a row of minus infinities falls to its classes evenly. Memory is that of the result.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, Dim, FromScalar, OpDef, TensorType, with_element};

use super::draw::{Draw, check_key, read_key};
use crate::infer::{bad_attrs, cost, dtype, elements, inputs, joined, rank_at_least};
use crate::parallel::{rows_at_once, strides};
use crate::rules;
use crate::strided::{self, Positions};

/// `(logits [.., n], key u32 [2]) -> i64 [.., samples]`; how many samples as [`Attrs::Count`].
pub static RANDOM_CATEGORICAL: OpDef = OpDef {
    name: "random_categorical",
    doc: "Which of several classes is drawn, by their logits along the last axis, as i64.",
    infer,
    // Each sample draws by its number: a piece would draw other numbers.
    axes: |call| rules::axes::mixed(&[call.inputs[0].shape.rank()]),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("a class has no gradient"),
    jvp: Jvp::Stop("a class has no gradient"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let op = "random_categorical";
    let [logits, key] = inputs(op, call)?;
    let Attrs::Count(samples) = *call.attrs else {
        return Err(bad_attrs(op, call.attrs, "how many samples"));
    };
    dtype(op, logits, DType::is_float, "a float")?;
    check_key(op, key)?;
    rank_at_least(op, logits, 1, "the last axis holds the classes")?;
    let (last, outer) =
        (&logits.shape[logits.shape.rank() - 1], &logits.shape[..logits.shape.rank() - 1]);
    if last.is(0) {
        let what = format!("the logits {logits} have no classes");
        return Err(bad_argument(op, what, "there has to be one to draw"));
    }
    Ok(smallvec![TensorType::new(DType::I64, joined(&[outer, &[Dim::Known(samples)]]))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Count(samples) = *k.attrs else { return Ok(()) };
    let (logits, key) = (&k.inputs[0], read_key(&k.inputs[1]));
    let (layout, last) = (&logits.layout, logits.layout.sizes.len() - 1);
    let (n, step) = (layout.sizes[last], layout.strides[last]);
    let outer = strided::axes(layout, 0..last);
    let starts = Positions::of(outer);
    let out = k.outputs[0].slice::<i64>();
    let at_once = rows_at_once(n);
    with_element!(logits.dtype, T => {
        let data = logits.slice::<T>();
        for_each_chunk(k.workers, out, (samples * at_once).max(1), &|chunk, out| {
            for (i, out) in out.chunks_mut(samples).enumerate() {
                let row = chunk * at_once + i;
                let start = starts.at(row) as isize;
                let logit = |j: usize| data[(start + j as isize * step) as usize].to_scalar().to_f64();
                let classes = || strides(k.workers, 0..n, 1).flatten();
                let most = classes().map(logit).fold(f64::NEG_INFINITY, f64::max);
                // Level with the largest also where both are infinite.
                let weight = |j: usize| match logit(j) {
                    x if x.is_nan() => 0.0,
                    x if x == most => 1.0,
                    x => (x - most).exp(),
                };
                let total: f64 = classes().map(weight).sum();
                for (s, to) in out.iter_mut().enumerate() {
                    let number = (row * samples + s) as u64;
                    let share = Draw::new(key, number).uniforms()[0] * total;
                    let (mut sum, mut class) = (0.0, 0);
                    for j in classes() {
                        let more = weight(j);
                        if more > 0.0 {
                            class = j;
                            sum += more;
                        }
                        if sum >= share {
                            break;
                        }
                    }
                    *to = class as i64;
                }
            }
        })?;
    });
    Ok(())
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], samples| {
        let types = [TensorType::new(dtype, shape), TensorType::new(DType::U32, [2])];
        Sample::of(&types, Attrs::Count(samples))
    };
    vec![
        of(DType::F64, &[3, 5], 20),
        of(DType::F32, &[4], 9),
        of(DType::F16, &[2, 3], 4),
        of(DType::BF16, &[2, 3], 4),
        of(DType::F32, &[2, 2, 7], 1),
        of(DType::F32, &[2, 3], 0),
        of(DType::F32, &[0, 3], 2),
        of(DType::F32, &[40, 600], 2),
    ]
}

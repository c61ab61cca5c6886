//! `random_seeded`: the numbers that a seed decides, where the seed is computed as the function runs.
//!
//! They are those of the recipe with that seed's key (`core::philox::key_of`), but lie in memory: a recipe is known before anything runs.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::recipe::Distribution;
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use crate::infer::{cost, elements, inputs};
use crate::{OpId, rules};

/// `(seed i64 [n]) -> [..]`
pub static RANDOM_SEEDED: OpDef = OpDef {
    id: OpId::RandomSeeded as u16,
    name: "random_seeded",
    doc: "Random numbers of a seed that is computed; the same as those of a seed that is known.",
    infer,
    axes: |call| rules::axes::mixed(&[infer(call).map_or(0, |t| t[0].shape.rank())]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: weight,
    grad: Grad::Stop("numbers have no slope along their seed"),
    jvp: Jvp::Stop("numbers have no slope along their seed"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [seed] = inputs(call.op, call)?;
    let Attrs::Seeded { distribution, dtype, shape } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    if seed.dtype != DType::I64 {
        let supported = "i64 for a seed";
        return Err(
            ErrorKind::DTypeUnsupported { op: call.op, dtype: seed.dtype, supported }.into()
        );
    }
    if seed.shape.rank() != 1 {
        let (left, right) = (seed.shape.clone(), Shape::from([2]));
        let help = "a seed is a list of numbers".into();
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    super::drawn(call.op, *distribution, *dtype, shape)
}

/// A block of ten rounds gives four numbers.
fn weight(call: &Call) -> Cost {
    let made = infer(call).unwrap_or_default();
    let flops = made.first().map_or(0, elements).saturating_mul(20);
    cost(flops, call.inputs.iter().chain(&made))
}

fn samples() -> Vec<Sample> {
    let of = |distribution, dtype, words: usize, shape: &[usize]| {
        let seed = TensorType::new(DType::I64, [words]);
        Sample::of(&[seed], Attrs::Seeded { distribution, dtype, shape: shape.into() })
    };
    vec![
        of(Distribution::Uniform, DType::F32, 2, &[2, 3]),
        of(Distribution::Uniform, DType::F64, 2, &[2, 3]),
        of(Distribution::Uniform, DType::F16, 2, &[5]),
        of(Distribution::Uniform, DType::BF16, 2, &[5]),
        of(Distribution::Normal, DType::F32, 2, &[2500]),
        of(Distribution::Normal, DType::F64, 1, &[]),
        of(Distribution::TruncatedNormal, DType::F32, 3, &[7]),
        of(Distribution::Bits, DType::U32, 2, &[2]),
        of(Distribution::Bits, DType::I8, 0, &[2, 3]),
        of(Distribution::Below(100), DType::U64, 2, &[1025]),
        of(Distribution::Uniform, DType::F32, 2, &[0, 3]),
    ]
}

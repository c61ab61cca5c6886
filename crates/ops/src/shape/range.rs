//! `range`: counting up or down by a step; a recipe.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, Scalar, Shape, TensorType};

use crate::{OpId, rules};

/// Counting up or down by a step.
pub static RANGE: OpDef = OpDef {
    id: OpId::Range as u16,
    name: "range",
    doc: "Counting up or down by a step; takes no bytes until it is written to.",
    infer,
    axes: |_| rules::axes::mixed(&[1]),
    mem: Mem::Recipe,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: rules::cost::free,
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Recipe(recipe),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 0)?;
    let Attrs::Range { start, step, len, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    // A step may be negative where the dtype is not, but no part of a whole number.
    let in_parts = matches!(step, Scalar::Float(_)) && !dtype.is_float();
    if *dtype == DType::Bool || !start.fits(*dtype) || in_parts {
        let what = format!("{start} by {step} is no range of {dtype}");
        return Err(bad_argument(call.op, what, "use a dtype that holds the numbers"));
    }
    Ok(smallvec![TensorType { dtype: *dtype, shape: [len.clone()].into_iter().collect() }])
}

fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Range { start, step, len, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let shape: Shape = [len.clone()].into_iter().collect();
    let sizes = rules::known_sizes(call, *dtype, &shape)?;
    let generator = Generator::Count { start: *start, step: *step, dtype: *dtype };
    Ok(Recipe::generate(generator, sizes))
}

fn samples() -> Vec<Sample> {
    let of = |start, step, len: usize, dtype| {
        Sample::of(&[], Attrs::Range { start, step, len: len.into(), dtype })
    };
    let mut all: Vec<Sample> = DType::ALL
        .into_iter()
        .filter(|d| *d != DType::Bool)
        .map(|dtype| of(Scalar::Int(1), Scalar::Int(2), 5, dtype))
        .collect();
    all.extend([
        of(Scalar::Float(0.5), Scalar::Float(-0.25), 1025, DType::F32),
        of(Scalar::Int(3), Scalar::Int(-1), 0, DType::I64),
        of(Scalar::Int(0), Scalar::Int(1), 3000, DType::I32),
    ]);
    all
}

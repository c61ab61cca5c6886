//! `fill`: one value everywhere; a recipe.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{DType, OpDef, Scalar, TensorType};

use crate::{OpId, rules};

/// One value everywhere.
pub static FILL: OpDef = OpDef {
    id: OpId::Fill as u16,
    name: "fill",
    doc: "One value everywhere; takes no bytes until it is written to.",
    infer,
    axes: |call| rules::axes::mixed(&[infer(call).map_or(0, |t| t[0].shape.rank())]),
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
    let Attrs::Fill { value, dtype, shape } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    if !value.fits(*dtype) {
        let what = format!("{value} is no {dtype}");
        return Err(bad_argument(call.op, what, "use a number of that dtype"));
    }
    Ok(smallvec![TensorType { dtype: *dtype, shape: shape.clone() }])
}

fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Fill { value, dtype, shape } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    Ok(Recipe::fill(*value, *dtype, rules::known_sizes(call, *dtype, shape)?))
}

fn samples() -> Vec<Sample> {
    let of = |value, dtype, shape: &[usize]| {
        Sample::of(&[], Attrs::Fill { value, dtype, shape: shape.into() })
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|dtype| of(Scalar::Int(1), dtype, &[2, 3])).collect();
    all.extend([
        of(Scalar::Float(-0.5), DType::F32, &[]),
        of(Scalar::Float(f64::NAN), DType::F16, &[3]),
        of(Scalar::Int(7), DType::I32, &[0, 4]),
        of(Scalar::Float(2.5), DType::F64, &[1025]),
    ]);
    all
}

//! `size`: a length, or a number of elements, as a number; a recipe. Where a dim is open the number follows
//! from the sizes of the call: what a mean divides by stays symbolic in the trace.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::{DType, OpDef, Scalar, Shape, Sizes, TensorType};

use crate::rules;

/// A length as a number.
pub static SIZE: OpDef = OpDef {
    name: "size",
    doc: "A length, or a number of elements, as a number; takes no bytes.",
    infer,
    axes: |_| rules::axes::mixed(&[0]),
    mem: Mem::Recipe,
    scratch: no_scratch,
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
    let Attrs::Size { size, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let fits = size.known().is_none_or(|n| Scalar::Int(n as i128).fits(*dtype));
    if *dtype == DType::Bool || !fits {
        let what = format!("the length {size} is no {dtype}");
        return Err(bad_argument(call.op, what, "use a dtype that holds it"));
    }
    Ok(smallvec![TensorType { dtype: *dtype, shape: Shape::scalar() }])
}

fn recipe(call: &Call) -> Result<Recipe> {
    let Attrs::Size { size, dtype } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let Some(n) = size.known() else {
        let what = format!("the length {size} is open");
        return Err(bad_argument(call.op, what, "plan for known sizes first"));
    };
    Ok(Recipe::fill(Scalar::Int(n as i128), *dtype, Sizes::new()))
}

fn samples() -> Vec<Sample> {
    let of = |size: usize, dtype| Sample::of(&[], Attrs::Size { size: size.into(), dtype });
    let numbers = DType::ALL.into_iter().filter(|dtype| *dtype != DType::Bool);
    numbers.map(|dtype| of(5, dtype)).chain([of(0, DType::F32), of(70_000, DType::I64)]).collect()
}

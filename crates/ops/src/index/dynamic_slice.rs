//! `dynamic_slice`: a part of a tensor that starts where another tensor says.
//!
//! Its lengths are known; where it starts is known only as it runs, so it is a copy, and leaving the tensor is an
//! error then.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Error, ErrorKind, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::dynamic_update::DYNAMIC_UPDATE;
use crate::infer::{self, along, cost, inputs, integer};
use crate::{OpId, emit};

/// `(x, start [rank]) -> part`; the part's shape as [`Attrs::Shape`].
pub static DYNAMIC_SLICE: OpDef = OpDef {
    id: OpId::DynamicSlice as u16,
    name: "dynamic_slice",
    doc: "A part of a tensor that starts where another tensor says.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(&made))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

/// The error of a part that leaves the whole along an axis.
pub fn outside(op: &'static str, len: usize, start: i64, axis: usize, size: usize) -> Error {
    let what = format!("{len} elements from {start} leave axis {axis} of length {size}");
    bad_argument(op, what, "start so that the part lies inside")
}

/// Refuses a part that cannot lie in a tensor of that type, and a start that does not say where.
pub(super) fn check(
    op: &'static str,
    x: &TensorType,
    start: &TensorType,
    part: &Shape,
) -> Result<()> {
    integer(op, start)?;
    let needed: Shape = [Dim::Known(x.shape.rank())].into_iter().collect();
    infer::shape(op, &start.shape, &needed, "where to start needs one number for every axis")?;
    let fits = |(part, whole): (&Dim, &Dim)| match (part.known(), whole.known()) {
        (Some(part), Some(whole)) => part <= whole,
        _ => true,
    };
    if part.rank() == x.shape.rank() && part.iter().zip(x.shape.iter()).all(fits) {
        return Ok(());
    }
    let (left, right) = (part.clone(), x.shape.clone());
    let help = "the part must have as many axes as the whole, none of them longer".into();
    Err(ErrorKind::ShapeMismatch { op, left, right, help }.into())
}

fn infer(call: &Call) -> Result<Types> {
    let [x, start] = inputs("dynamic_slice", call)?;
    let Attrs::Shape(part) = call.attrs else {
        return Err(infer::bad_attrs("dynamic_slice", call.attrs, "the shape of the part"));
    };
    check("dynamic_slice", x, start, part)?;
    Ok(smallvec![TensorType { dtype: x.dtype, shape: part.clone() }])
}

/// An axis that is taken whole runs along.
fn axes(call: &Call) -> AxisMap {
    let (Attrs::Shape(part), Some(x)) = (call.attrs, call.inputs.first()) else {
        return AxisMap::default();
    };
    let axis = |(i, d): (usize, &Dim)| match x.shape.get(i) == Some(d) {
        true => along(&[(0, i)]),
        false => AxisOf::Mixed,
    };
    AxisMap { outputs: vec![part.iter().enumerate().map(axis).collect()], summed: Vec::new() }
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let zeros = emit::zeros(e, &call.inputs[0])?;
    let inputs = vec![zeros, call.grad()?, call.input(1)?];
    Ok(vec![emit::dense(e.apply(&DYNAMIC_UPDATE, inputs, Attrs::None)?), None])
}

/// The dtype and the shape of a whole, the shape of a part, the dtype of where it starts, and below what.
type PartOf = (DType, &'static [usize], &'static [usize], DType, usize);

/// Whole tensors and parts of them; where to start is drawn so that the part stays inside.
pub(super) fn parts() -> Vec<PartOf> {
    let mut all: Vec<PartOf> =
        DType::ALL.into_iter().map(|d| (d, &[4, 5][..], &[2, 3][..], DType::I32, 3)).collect();
    all.extend([
        (DType::F32, &[][..], &[][..], DType::I64, 1),
        (DType::F32, &[5], &[5], DType::I64, 1),
        (DType::F32, &[3, 4], &[3, 2], DType::U8, 1),
        (DType::F32, &[3, 4, 5], &[1, 2, 3], DType::I16, 3),
        (DType::F32, &[3, 4], &[0, 2], DType::I64, 3),
        (DType::F32, &[0, 4], &[0, 2], DType::I64, 1),
        (DType::F32, &[2100], &[1025], DType::I64, 1000),
    ]);
    all
}

fn samples() -> Vec<Sample> {
    let of = |(dtype, whole, part, index, below): (DType, &[usize], &[usize], DType, usize)| {
        let types = [TensorType::new(dtype, whole), TensorType::new(index, [whole.len()])];
        Sample::of(&types, Attrs::Shape(part.into())).with(1, Values::Below(below))
    };
    parts().into_iter().map(of).collect()
}

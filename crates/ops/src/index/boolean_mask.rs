//! `boolean_mask`: the rows of a tensor where a mask over its leading axes is true, in order.
//!
//! Only the data decide how many there are: the type has a symbol of its own, bounded by the elements of
//! the mask, and the kernel says the real number. Where a caller already has the result's shape, as the
//! gradient of `mask_scatter` does, it passes it along and no new symbol is made.

use smallvec::smallvec;
use tonnage_core::error::{Error, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Attrs, Call, DType, Dim, Emit, OpDef, Shape, Symbol, TensorType, Value};

use super::mask_scatter::MASK_SCATTER;
use crate::OpId;
use crate::infer::mask_type;
use crate::infer::{along, bad_attrs, cost, inputs, joined, rank_at_least, shape};

/// `(x, mask) -> rows`; no attributes, or the result's shape as [`Attrs::Shape`] where it is known.
pub static BOOLEAN_MASK: OpDef = OpDef {
    id: OpId::BooleanMask as u16,
    name: "boolean_mask",
    doc: "The rows of a tensor where a mask over its leading axes is true.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| cost(0, call.inputs.iter().chain(call.inputs.first())),
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// The error of a mask that selects other than the rows of the shape that is passed along.
pub fn wrong_rows(selected: usize, room: usize) -> Error {
    let what = format!("the mask selects {selected} rows, but the shape passed along has {room}");
    bad_argument("boolean_mask", what, "pass the shape that the result has")
}

fn infer(call: &Call) -> Result<Types> {
    let [x, mask] = inputs("boolean_mask", call)?;
    mask_type("boolean_mask", mask)?;
    let rank = mask.shape.rank();
    rank_at_least("boolean_mask", x, rank, "the mask's axes are its leading ones")?;
    let leading: Shape = x.shape[..rank].iter().cloned().collect();
    let help = "the mask must have the shape of the leading axes";
    shape("boolean_mask", &mask.shape, &leading, help)?;
    let row = &x.shape[rank..];
    let made = match call.attrs {
        Attrs::None => {
            let count = Symbol::counted("true_count", mask.shape.elements(), 1);
            joined(&[&[Dim::symbol(count)], row])
        }
        Attrs::Shape(made) if made.rank() == 1 + row.len() => {
            let needed = joined(&[&made[..1], row]);
            shape("boolean_mask", made, &needed, "pass the shape that the result has")?;
            made.clone()
        }
        other => return Err(bad_attrs("boolean_mask", other, "none, or the result's shape")),
    };
    Ok(smallvec![TensorType { dtype: x.dtype, shape: made }])
}

/// Pieces of the masked axes could be joined too, but where each would go is known only after the run.
fn axes(call: &Call) -> AxisMap {
    let (rank, masked) = (call.inputs[0].shape.rank(), call.inputs[1].shape.rank());
    let rows = (masked..rank).map(|a| along(&[(0, a)]));
    AxisMap { outputs: vec![[AxisOf::Mixed].into_iter().chain(rows).collect()], summed: vec![] }
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let put = emit.apply(&MASK_SCATTER, vec![call.input(1)?, call.grad()?], Attrs::None)?;
    Ok(vec![Some(Cotangent::Dense(put)), None])
}

// As many rows as the result has: a second count would be another size to every op that reads both.
fn jvp(emit: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let Some(t) = &call.tangents[0] else { return Ok(vec![None]) };
    let shape = Attrs::Shape(call.outputs[0].ty().shape.clone());
    let inputs = vec![t.clone(), call.inputs[1].clone()];
    Ok(vec![Some(emit.apply(&BOOLEAN_MASK, inputs, shape)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize], masked: usize| {
        let mask = TensorType::new(DType::Bool, &x[..masked]);
        Sample::of(&[TensorType::new(dtype, x), mask], Attrs::None)
    };
    vec![
        of(DType::F64, &[7], 1),
        of(DType::F64, &[5, 3], 1),
        of(DType::F64, &[3, 4, 2], 2),
        of(DType::F32, &[1023], 1),
        of(DType::F32, &[1025, 30], 1),
        of(DType::F32, &[32, 32, 17], 3),
        of(DType::F16, &[6, 2], 1),
        of(DType::BF16, &[6, 2], 1),
        of(DType::I64, &[6, 2], 1),
        of(DType::U8, &[6, 2], 2),
        of(DType::Bool, &[6, 2], 1),
        of(DType::F32, &[0, 3], 1),
        of(DType::F32, &[3, 0], 1),
    ]
}

//! `slogdet`: the sign of the determinant of each square matrix, and the logarithm of its size.
//!
//! Sizes that no float could hold have a logarithm. A matrix without an inverse has the sign 0 and minus infinity;
//! asking for its gradient is an error.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types,
};
use tonnage_core::{DType, OpDef, Shape, TensorType};

use super::inv::{self, INV};
use super::matrix::square;
use crate::infer::{along, cost, elements, inputs, no_attrs, real};
use crate::tile::{Ending, pass};
use crate::{OpId, emit};

/// `a [.., n, n] -> (sign [..], log of size [..])`
pub static SLOGDET: OpDef = OpDef {
    id: OpId::Slogdet as u16,
    name: "slogdet",
    doc: "The sign of the determinant of a square matrix, and the logarithm of its size.",
    infer,
    axes: |call| {
        let one = batch_only(call);
        AxisMap { outputs: vec![one.clone(), one], summed: Vec::new() }
    },
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Costly,
    cost: factor_cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: inv::samples,
};

/// What is left of a batch of square matrices that become one number each.
pub fn batch_type(op: &'static str, call: &Call) -> Result<TensorType> {
    let [a] = inputs(op, call)?;
    no_attrs(op, call)?;
    real(op, a)?;
    square(op, a)?;
    let batch: Shape = a.shape[..a.shape.rank() - 2].iter().cloned().collect();
    Ok(TensorType { dtype: a.dtype, shape: batch })
}

/// Axes of results that have the leading axes alone.
pub(super) fn batch_only(call: &Call) -> Vec<AxisOf> {
    (0..call.inputs[0].shape.rank().saturating_sub(2)).map(|a| along(&[(0, a)])).collect()
}

/// That of one factorization each.
pub(super) fn factor_cost(call: &Call) -> Cost {
    let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
    let flops = call.inputs.first().map_or(0, elements).saturating_mul(n);
    // The determinant of a matrix of no elements is written too.
    let made = batch_type("slogdet", call).ok();
    let both = made.iter().chain(&made);
    cost(flops, call.inputs.iter().chain(call.inputs).chain(both))
}

fn infer(call: &Call) -> Result<Types> {
    let one = batch_type("slogdet", call)?;
    Ok(smallvec![one.clone(), one])
}

/// g times the transposed inverse; the sign has no slope.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    match call.grads.get(1) {
        Some(Some(g)) => Ok(vec![emit::dense(along_inverse(e, call, g.clone())?)]),
        _ => Ok(vec![None]),
    }
}

/// A number for each matrix times the transposed inverse of it.
pub(super) fn along_inverse(e: &mut dyn Emit, call: &GradCall, g: Value) -> Result<Value> {
    let inverse = e.apply(&INV, vec![call.input(0)?], Attrs::None)?;
    let rank = inverse.ty().shape.rank();
    let mut order: tonnage_core::Sizes = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    let inverse_transposed = emit::transpose(e, inverse, &order)?;
    let broadcast = g.ty().shape.iter().cloned().chain([1.into(), 1.into()]).collect();
    let g = emit::reshape(e, g, &broadcast)?;
    let dtype: DType = call.inputs[0].dtype;
    pass(e, [inverse_transposed, g], Ending::Store(dtype), |p, [inverse, g]| p.mul(inverse, g))
}

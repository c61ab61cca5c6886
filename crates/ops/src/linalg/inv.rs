//! `inv`: the inverse of each square matrix; one without an inverse is an error.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{DType, OpDef, TensorType};

use super::matrix::{batch_axes, square};
use super::solve::SOLVE;
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::shape::eye::EYE;
use crate::{OpId, emit};

/// `a [.., n, n] -> [.., n, n]`
pub static INV: OpDef = OpDef {
    id: OpId::Inv as u16,
    name: "inv",
    doc: "The inverse of a square matrix.",
    infer,
    axes: batch_axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(n).saturating_mul(2);
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Composite(expand),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("inv", call)?;
    no_attrs("inv", call)?;
    real("inv", a)?;
    square("inv", a)?;
    Ok(smallvec![a.clone()])
}

/// The solution for ones on the diagonal.
fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let ty = &call.inputs[0];
    let n = ty.shape[ty.shape.rank() - 1].clone();
    let attrs = Attrs::Eye { rows: n.clone(), columns: n, diagonal: 0, dtype: ty.dtype };
    let ones = e.apply(&EYE, Vec::new(), attrs)?;
    let ones = emit::broadcast_to(e, ones, &ty.shape)?;
    inputs.push(ones);
    let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
    Ok(vec![e.apply(&SOLVE, inputs, attrs)?])
}

/// -Yᵀ G Yᵀ
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, y) = (call.grad()?, call.output(0)?);
    let left = emit::matmul(e, y.clone(), g, true, false)?;
    let both = emit::matmul(e, left, y, false, true)?;
    Ok(vec![emit::dense(emit::neg(e, both)?)])
}

/// Square matrices that have an inverse.
pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize]| {
        Sample::of(&[TensorType::new(dtype, x)], Attrs::None).with(0, Values::Invertible)
    };
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 2, 4, 4]),
        of(DType::F64, &[1, 1]),
        of(DType::F64, &[9, 9]),
        of(DType::F64, &[32, 32]),
        of(DType::F64, &[50, 50]),
        of(DType::F32, &[3, 17, 17]),
        of(DType::F32, &[300, 3, 3]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[0, 3, 3]),
    ]
}

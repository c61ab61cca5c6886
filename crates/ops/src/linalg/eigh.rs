//! `eigh`: the eigenvalues of symmetric matrices, the least first, and their eigenvectors as columns.
//!
//! A matrix stands for its symmetric part, as in `cholesky`. Each vector has a length of 1, and its element of largest size
//! is positive. The gradient of vectors divides by differences of eigenvalues; those of equal ones are left out, since
//! their vectors are no function of the matrix. A matrix with NaN or an infinity is an error that names it.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Call, DType, OpDef, TensorType};

use super::matrix::square;
use super::qr::batch_of;
use super::symmetrize::SYMMETRIZE;
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::math::divide_no_nan::DIVIDE_NO_NAN;
use crate::shape::diag::DIAG;
use crate::{OpId, emit};

/// `a [.., n, n] -> (values [.., n], vectors [.., n, n])`
pub static EIGH: OpDef = OpDef {
    id: OpId::Eigh as u16,
    name: "eigh",
    doc: "The eigenvalues of a symmetric matrix, the least first, and its eigenvectors as columns.",
    infer,
    axes: |call| batch_of(call, &[1, 2]),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Output(0).always(), Save::Output(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(n).saturating_mul(10);
        cost(flops, call.inputs.iter().chain(&infer(call).unwrap_or_default()))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("eigh", call)?;
    no_attrs("eigh", call)?;
    real("eigh", a)?;
    square("eigh", a)?;
    let values = a.shape[..a.shape.rank() - 1].iter().cloned().collect();
    Ok(smallvec![TensorType { dtype: a.dtype, shape: values }, a.clone()])
}

/// For vectors of numbers, a matrix of the differences between them: that of column and row.
pub(super) fn differences(e: &mut dyn Emit, x: &Value) -> Result<Value> {
    let shape = &x.ty().shape;
    let (batch, last) = shape.split_at(shape.rank() - 1);
    let row = crate::infer::joined(&[batch, &[1.into()], last]);
    let column = crate::infer::joined(&[batch, last, &[1.into()]]);
    let (row, column) = (emit::reshape(e, x.clone(), &row)?, emit::reshape(e, x.clone(), &column)?);
    emit::sub(e, row, column)
}

/// A matrix with numbers on its diagonal.
pub(super) fn on_diagonal(e: &mut dyn Emit, x: Value) -> Result<Value> {
    let n = x.ty().shape[x.ty().shape.rank() - 1].clone();
    e.apply(&DIAG, vec![x], Attrs::Diag { rows: n.clone(), columns: n, diagonal: 0 })
}

/// With D the differences of eigenvalues, the symmetric part of V (diag(g) + Vᵀ Gᵥ / D) Vᵀ.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (values, vectors) = (call.output(0)?, call.output(1)?);
    let mut inner = match call.grads.first() {
        Some(Some(g)) => Some(on_diagonal(e, g.clone())?),
        _ => None,
    };
    if let Some(Some(g)) = call.grads.get(1) {
        let product = emit::matmul(e, vectors.clone(), g.clone(), true, false)?;
        let apart = differences(e, &values)?;
        let more = emit::binary(e, &DIVIDE_NO_NAN, product, apart)?;
        inner = Some(match inner {
            Some(inner) => emit::add(e, inner, more)?,
            None => more,
        });
    }
    let Some(inner) = inner else { return Ok(vec![None]) };
    let left = emit::matmul(e, vectors.clone(), inner, false, false)?;
    let whole = emit::matmul(e, left, vectors, false, true)?;
    Ok(vec![emit::dense(emit::unary(e, &SYMMETRIZE, whole)?)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize]| {
        Sample::of(&[TensorType::new(dtype, a)], Attrs::None).with(0, Values::PositiveDefinite)
    };
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 2, 4, 4]),
        of(DType::F64, &[1, 1]),
        of(DType::F64, &[2, 2]),
        of(DType::F64, &[70, 70]),
        of(DType::F32, &[40, 40]),
        of(DType::F32, &[200, 3, 3]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[0, 3, 3]),
    ]
}

//! `cholesky`: the lower triangular matrix L with L Lᵀ = A, for each matrix of a batch.
//!
//! A stands for (A + Aᵀ) / 2, so that the op is a function of all its input and its gradient is
//! symmetric; for a symmetric matrix that is the matrix itself. A matrix that is not positive definite
//! is an error that names it and the column where it showed.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Attrs, Call, DType, Emit, OpDef, Sizes, TensorType};

use super::half_tril::HALF_TRIL;
use super::matmul::MATMUL;
use super::matrix::{batch_axes, square};
use super::symmetrize::SYMMETRIZE;
use super::triangular_solve::TRIANGULAR_SOLVE;
use crate::OpId;
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::shape::transpose::TRANSPOSE;

/// `a [.., n, n] -> l [.., n, n]`
pub static CHOLESKY: OpDef = OpDef {
    id: OpId::Cholesky as u16,
    name: "cholesky",
    doc: "The lower triangular factor of a symmetric positive definite matrix.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(n) / 3;
        cost(flops, call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("cholesky", call)?;
    no_attrs("cholesky", call)?;
    real("cholesky", a)?;
    square("cholesky", a)?;
    Ok(smallvec![a.clone()])
}

/// With P the lower triangle of Lᵀ G with half its diagonal, the gradient is the symmetric part of
/// L⁻ᵀ P L⁻¹. What is computed is that matrix transposed, L⁻ᵀ (L⁻ᵀ P)ᵀ, whose symmetric part is the same.
fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let l = call.output(0)?;
    let transposed = Attrs::Matmul { transpose_a: true, transpose_b: false };
    let product = emit.apply(&MATMUL, vec![l.clone(), call.grad()?], transposed.clone())?;
    let p = emit.apply(&HALF_TRIL, vec![product], Attrs::None)?;
    let half = emit.apply(&TRIANGULAR_SOLVE, vec![l.clone(), p], transposed.clone())?;
    let mut order: Sizes = (0..half.ty().shape.rank()).collect();
    let rank = order.len();
    order.swap(rank - 2, rank - 1);
    let half_transposed = emit.apply(&TRANSPOSE, vec![half], Attrs::Order(order))?;
    let whole = emit.apply(&TRIANGULAR_SOLVE, vec![l, half_transposed], transposed)?;
    Ok(vec![Some(Cotangent::Dense(emit.apply(&SYMMETRIZE, vec![whole], Attrs::None)?))])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize]| {
        Sample::of(&[TensorType::new(dtype, a)], Attrs::None).with(0, Values::PositiveDefinite)
    };
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 2, 5, 5]),
        of(DType::F64, &[16, 16]),
        of(DType::F64, &[49, 49]),
        of(DType::F64, &[1, 1]),
        of(DType::F64, &[130, 130]),
        of(DType::F32, &[300, 300]),
        of(DType::F32, &[2, 100, 100]),
        of(DType::F32, &[3, 48, 48]),
        of(DType::F32, &[97, 97]),
        of(DType::F32, &[2, 31, 31]),
        of(DType::F32, &[1025, 2, 2]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[0, 4, 4]),
        of(DType::F64, &[2, 0, 0]),
    ]
}

//! `svd`: singular values of matrices, the largest first, with the vectors of both sides as columns: U diag(s) Vᵀ = A.
//!
//! As many of them as A has rows or columns, whichever are fewer. The element of largest size of each column of U is
//! positive. The gradient of vectors divides by differences of squares of values, and by values; where these are 0 the
//! vectors are no function of the matrix, and what would be divided by them is left out. A matrix with NaN or an
//! infinity is an error that names it.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Call, DType, OpDef, TensorType};

use super::eigh::{differences, on_diagonal};
use super::qr::{batch_of, matrix_transpose, parts};
use crate::infer::{cost, elements, inputs, joined, no_attrs};
use crate::math::divide_no_nan::DIVIDE_NO_NAN;
use crate::{OpId, emit};

/// `a [.., m, n] -> (u [.., m, k], s [.., k], v [.., n, k])`, k the lesser of m and n.
pub static SVD: OpDef = OpDef {
    id: OpId::Svd as u16,
    name: "svd",
    doc: "The singular values of a matrix, the largest first, with the vectors of both sides.",
    infer,
    axes: |call| batch_of(call, &[2, 1, 2]),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[
        Save::Output(0).always(),
        Save::Output(1).always(),
        Save::Output(2).always(),
    ]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let k = made.first().and_then(|u| u.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(k).saturating_mul(60);
        cost(flops, call.inputs.iter().chain(&made))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("svd", call)?;
    no_attrs("svd", call)?;
    let (batch, [m, n, k]) = parts("svd", a)?;
    let of = |sizes: &[usize]| {
        let own: Vec<_> = sizes.iter().map(|size| (*size).into()).collect();
        TensorType::new(a.dtype, joined(&[batch, &own]))
    };
    Ok(smallvec![of(&[m, k]), of(&[k]), of(&[n, k])])
}

/// A row of numbers under every row of a matrix, or a column of them beside every column.
fn broadcast(e: &mut dyn Emit, x: &Value, column: bool) -> Result<Value> {
    let shape = &x.ty().shape;
    let (batch, last) = shape.split_at(shape.rank() - 1);
    let one = [1.into()];
    let to = if column { joined(&[batch, last, &one]) } else { joined(&[batch, &one, last]) };
    emit::reshape(e, x.clone(), &to)
}

/// X - Xᵀ over the differences of squares.
fn skew_over(e: &mut dyn Emit, x: &Value, apart: &Value) -> Result<Value> {
    let other = matrix_transpose(e, x.clone())?;
    let odd = emit::sub(e, x.clone(), other)?;
    emit::binary(e, &DIVIDE_NO_NAN, odd, apart.clone())
}

/// What the gradient of one side's vectors says outside of them: (G - W Wᵀ G) / s.
fn outside(e: &mut dyn Emit, w: &Value, g: &Value, inside: &Value, s: &Value) -> Result<Value> {
    let part = emit::matmul(e, w.clone(), inside.clone(), false, false)?;
    let rest = emit::sub(e, g.clone(), part)?;
    let row = broadcast(e, s, false)?;
    emit::binary(e, &DIVIDE_NO_NAN, rest, row)
}

/// With D the differences of squares of the values and A' = A - Aᵀ: U (((Uᵀ Gᵤ)' / D) S + S ((Vᵀ Gᵥ)' / D) + diag(g)) Vᵀ, and
/// what the gradients say outside of U and V.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, [m, n, k]) = parts("svd", &call.inputs[0])?;
    let (u, s, v) = (call.output(0)?, call.output(1)?, call.output(2)?);
    let given = |i: usize| call.grads.get(i).cloned().flatten();
    let square = emit::mul(e, s.clone(), s.clone())?;
    let apart = differences(e, &square)?;
    let mut inner: Option<Value> = given(1).map(|g| on_diagonal(e, g)).transpose()?;
    let mut whole: Option<Value> = None;
    let sum = |e: &mut dyn Emit, old: Option<Value>, new: Value| match old {
        Some(old) => emit::add(e, old, new).map(Some),
        None => Ok(Some(new)),
    };
    if let Some(g) = given(0) {
        let common = emit::matmul(e, u.clone(), g.clone(), true, false)?;
        let skew_over = skew_over(e, &common, &apart)?;
        let row = broadcast(e, &s, false)?;
        let part = emit::mul(e, skew_over, row)?;
        inner = sum(e, inner, part)?;
        if m > k {
            let rest = outside(e, &u, &g, &common, &s)?;
            whole = Some(emit::matmul(e, rest, v.clone(), false, true)?);
        }
    }
    if let Some(g) = given(2) {
        let common = emit::matmul(e, v.clone(), g.clone(), true, false)?;
        let skew_over = skew_over(e, &common, &apart)?;
        let column = broadcast(e, &s, true)?;
        let part = emit::mul(e, column, skew_over)?;
        inner = sum(e, inner, part)?;
        if n > k {
            let rest = outside(e, &v, &g, &common, &s)?;
            let rest = emit::matmul(e, u.clone(), rest, false, true)?;
            whole = sum(e, whole, rest)?;
        }
    }
    let Some(inner) = inner else { return Ok(vec![None]) };
    let left = emit::matmul(e, u, inner, false, false)?;
    let part = emit::matmul(e, left, v, false, true)?;
    Ok(vec![sum(e, whole, part)?.map(Cotangent::Dense)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize]| Sample::of(&[TensorType::new(dtype, a)], Attrs::None);
    vec![
        of(DType::F64, &[3, 3]),
        of(DType::F64, &[2, 5, 3]),
        of(DType::F64, &[2, 2, 4]),
        of(DType::F64, &[1, 1]),
        of(DType::F64, &[4, 1]),
        of(DType::F64, &[40, 35]),
        of(DType::F64, &[70, 66]),
        of(DType::F32, &[65, 130]),
        of(DType::F32, &[20, 30]),
        of(DType::F32, &[100, 3, 2]),
        of(DType::F32, &[0, 0]),
        of(DType::F32, &[3, 0]),
        of(DType::F32, &[0, 3, 2]),
    ]
}

//! `qr`: Q with orthonormal columns and upper triangular R with Q R = A, for each matrix of a batch.
//!
//! As many columns of Q, and rows of R, as A has rows or columns, whichever are fewer. No element of R's diagonal is below
//! 0: that makes the factors of a matrix of full rank the only ones, and smooth in its elements.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::{Call, DType, Dim, OpDef, TensorType};

use super::matrix::matrices;
use super::triangular_solve::TRIANGULAR_SOLVE;
use super::tril::TRIL;
use crate::infer::{along, cost, elements, inputs, joined, no_attrs, real};
use crate::shape::concat::CONCAT;
use crate::shape::slice::SLICE;
use crate::{OpId, emit};

/// `a [.., m, n] -> (q [.., m, k], r [.., k, n])`, k the lesser of m and n.
pub static QR: OpDef = OpDef {
    id: OpId::Qr as u16,
    name: "qr",
    doc: "The orthogonal and the upper triangular factor of a matrix.",
    infer,
    axes: |call| batch_of(call, &[2, 2]),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Output(0).always(), Save::Output(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let k = made.first().and_then(|q| q.shape.last()?.most()).unwrap_or(0) as u64;
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(k).saturating_mul(4);
        cost(flops, call.inputs.iter().chain(&made))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples,
};

/// The batch runs along that of the only input; the axes behind it, `ranks` of each output, cannot be cut.
pub(super) fn batch_of(call: &Call, ranks: &[usize]) -> AxisMap {
    let batch = call.inputs[0].shape.rank().saturating_sub(2);
    let axes = |rank: &usize| {
        let own = (0..batch).map(|a| along(&[(0, a)]));
        own.chain(std::iter::repeat_n(AxisOf::Mixed, *rank)).collect()
    };
    AxisMap { outputs: ranks.iter().map(axes).collect(), summed: Vec::new() }
}

/// The batch, rows, columns and the lesser of the two, of matrices whose sizes are known.
pub(super) fn parts<'a>(op: &'static str, a: &'a TensorType) -> Result<(&'a [Dim], [usize; 3])> {
    real(op, a)?;
    matrices(op, a)?;
    match &a.shape[..] {
        [batch @ .., rows, columns] => match (rows.known(), columns.known()) {
            (Some(m), Some(n)) => Ok((batch, [m, n, m.min(n)])),
            _ => {
                let what = format!("the rows or columns of {a} are open");
                Err(bad_argument(op, what, "fix both in the signature; the batch may stay open"))
            }
        },
        _ => Err(bad_argument(op, format!("{a} has no two axes"), "a matrix is the last two")),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let [a] = inputs("qr", call)?;
    no_attrs("qr", call)?;
    let (batch, [m, n, k]) = parts("qr", a)?;
    let of = |rows: usize, columns: usize| {
        TensorType::new(a.dtype, joined(&[batch, &[rows.into(), columns.into()]]))
    };
    Ok(smallvec![of(m, k), of(k, n)])
}

/// With the axes of each matrix swapped.
pub(super) fn matrix_transpose(e: &mut dyn Emit, x: Value) -> Result<Value> {
    let rank = x.ty().shape.rank();
    let mut order: tonnage_core::Sizes = (0..rank).collect();
    order.swap(rank - 2, rank - 1);
    emit::transpose(e, x, &order)
}

/// Columns of each matrix.
fn columns(e: &mut dyn Emit, x: &Value, start: usize, len: usize) -> Result<Value> {
    let mut slices: Vec<AxisSlice> = x.ty().shape.iter().cloned().map(AxisSlice::all).collect();
    if let Some(last) = slices.last_mut() {
        *last = AxisSlice { start: start.into(), len: len.into(), step: 1 };
    }
    e.apply(&SLICE, vec![x.clone()], Attrs::Slices(slices))
}

/// Of A = Q R with square R: with M = R Gᵣᵀ - Gqᵀ Q and its lower triangle mirrored into the upper one, (Gq + Q M) R⁻ᵀ.
fn tall(e: &mut dyn Emit, q: &Value, r: &Value, of_q: Value, of_r: Value) -> Result<Value> {
    let left = emit::matmul(e, r.clone(), of_r, false, true)?;
    let right = emit::matmul(e, of_q.clone(), q.clone(), true, false)?;
    let both = emit::sub(e, left, right)?;
    let below = e.apply(&TRIL, vec![both.clone()], Attrs::Diagonal(-1))?;
    let lower = e.apply(&TRIL, vec![both], Attrs::Diagonal(0))?;
    let above = matrix_transpose(e, below)?;
    let mirrored = emit::add(e, lower, above)?;
    let product = emit::matmul(e, q.clone(), mirrored, false, false)?;
    let sum = emit::add(e, of_q, product)?;
    // X R⁻ᵀ is the transpose of R⁻¹ Xᵀ, and R the transpose of a lower triangle.
    let (lower, right) = (matrix_transpose(e, r.clone())?, matrix_transpose(e, sum)?);
    let attrs = Attrs::Matmul { transpose_a: true, transpose_b: false };
    let solved = e.apply(&TRIANGULAR_SOLVE, vec![lower, right], attrs)?;
    matrix_transpose(e, solved)
}

/// Of a wide matrix [X | Y] = Q [U | W]: Y = Q W, so that W's gradient reaches Q as well.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, [m, n, _]) = parts("qr", &call.inputs[0])?;
    let (q, r) = (call.output(0)?, call.output(1)?);
    let mut given = |i: usize, of: &Value| match call.grads.get(i) {
        Some(Some(g)) => Ok(g.clone()),
        _ => emit::zeros(e, of.ty()),
    };
    let (of_q, of_r) = (given(0, &q)?, given(1, &r)?);
    if m >= n {
        return Ok(vec![emit::dense(tall(e, &q, &r, of_q, of_r)?)]);
    }
    let (of_u, of_w) = (columns(e, &of_r, 0, m)?, columns(e, &of_r, m, n - m)?);
    let (u, w) = (columns(e, &r, 0, m)?, columns(e, &r, m, n - m)?);
    let y = emit::matmul(e, q.clone(), w, false, false)?;
    let more = emit::matmul(e, y, of_w.clone(), false, true)?;
    let of_q = emit::add(e, of_q, more)?;
    let of_x = tall(e, &q, &u, of_q, of_u)?;
    let of_y = emit::matmul(e, q, of_w, false, false)?;
    let axis = call.inputs[0].shape.rank() - 1;
    let whole = e.apply(&CONCAT, vec![of_x, of_y], Attrs::Join { axis, parts: 2 })?;
    Ok(vec![emit::dense(whole)])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, a: &[usize], values| {
        Sample::of(&[TensorType::new(dtype, a)], Attrs::None).with(0, values)
    };
    use Values::{Invertible, Normal};
    vec![
        of(DType::F64, &[3, 3], Invertible),
        of(DType::F64, &[2, 5, 3], Normal),
        of(DType::F64, &[2, 2, 4], Normal),
        of(DType::F64, &[1, 1], Normal),
        of(DType::F64, &[70, 40], Normal),
        of(DType::F32, &[40, 40], Invertible),
        of(DType::F32, &[35, 80], Normal),
        of(DType::F32, &[300, 3, 2], Normal),
        of(DType::F32, &[0, 0], Normal),
        of(DType::F32, &[3, 0], Normal),
        of(DType::F32, &[0, 3, 2], Normal),
    ]
}

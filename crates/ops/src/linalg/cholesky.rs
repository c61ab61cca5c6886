//! `cholesky`: the lower triangular matrix L with L Lᵀ = A, for each matrix of a batch.
//!
//! A stands for (A + Aᵀ) / 2, so that the op is a function of all its input and its gradient is
//! symmetric; for a symmetric matrix that is the matrix itself. A matrix that is not positive definite
//! is an error that names it and the column where it showed.

use std::sync::atomic::{AtomicU64, Ordering};

use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, Kernel};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values};
use tonnage_core::{Attrs, Bytes, Call, DType, Emit, OpDef, Sizes, TensorType};

use super::field::Field;
use super::gemm::Compute;
use super::half_tril::HALF_TRIL;
use super::matmul::MATMUL;
use super::matrix::{batch_axes, dims, each_in_slot, for_batch, inside, square};
use super::substitute::BlockWorkspace;
use super::symmetrize::SYMMETRIZE;
use super::triangular_solve::TRIANGULAR_SOLVE;
use super::{factor, symmetrize};
use crate::infer::{cost, elements, inputs, no_attrs, real};
use crate::number::{Real, with_real};
use crate::shape::transpose::TRANSPOSE;
use crate::strided;

/// `a [.., n, n] -> l [.., n, n]`
pub static CHOLESKY: OpDef = OpDef {
    name: "cholesky",
    doc: "The lower triangular factor of a symmetric positive definite matrix.",
    infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    scratch,
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
    lower: Lower::Slices(kernel),
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

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.first().and_then(|a| Some((a.shape.most()?, a.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("cholesky", &sizes) {
        Ok((batch, n, _)) => {
            for_batch(batch, threads, factor::bytes(n, dtype, inside(batch, threads)))
        }
        Err(_) => Bytes::ZERO,
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_real!("cholesky", k.outputs[0].dtype, T => factorize::<T>(k))
}

fn factorize<T: Field + Real>(k: &mut Kernel) -> Result<()> {
    let (batch, n, _) = dims("cholesky", &k.outputs[0].sizes)?;
    let (a, workers) = (&k.inputs[0], k.workers);
    let given = matches!(a.data, Data::Slice(_));
    // The first matrix that fails, and its column: the same at any number of threads.
    let failed = AtomicU64::new(u64::MAX);
    let each = factor::bytes(n, T::DTYPE, inside(batch, workers.threads()));
    let out = (k.outputs[0].slice::<T>(), n * n, n * n);
    each_in_slot(out, (&mut *k.scratch, each), workers, &|number, matrix, slot, workers| {
        if given {
            strided::copy(&a.layout, a.slice::<T>(), number * n * n, matrix);
        }
        symmetrize::lower(matrix, n, workers)?;
        let mut workspace = BlockWorkspace::of(slot, n, factor::held(n));
        match factor::cholesky(matrix, n, &mut workspace, workers)? {
            None => {
                let rows = matrix.chunks_mut(n).enumerate();
                rows.for_each(|(i, row)| row[i + 1..].fill(<T as Compute>::ZERO));
            }
            Some(column) => {
                failed.fetch_min((number * n + column) as u64, Ordering::Relaxed);
            }
        }
        Ok(())
    })?;
    match failed.into_inner() {
        u64::MAX => Ok(()),
        at => Err(ErrorKind::Singular {
            op: "cholesky",
            matrix: at as usize / n,
            column: at as usize % n,
            needed: "positive definite",
            help: "add a small number to the diagonal, or check what made it".into(),
        }
        .into()),
    }
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

//! `solve`: X with A X = B, or Aᵀ X = B, for square A; for each pair of a batch.
//!
//! By an LU factorization with row exchanges, in scratch: as many matrices at once as there are threads. A matrix
//! without an inverse is an error that names it.

use bytemuck::cast_slice_mut;
use std::sync::atomic::{AtomicU64, Ordering};
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Values};
use tonnage_core::workers::Alone;
use tonnage_core::{Bytes, DType, OpDef, TensorType, Workers};

use super::factor::Triangle;
use super::lu::{self, Factor};
use super::matmul::MATMUL;
use super::matrix::dims;
use super::system::{self, side, transposed};
use crate::emit;
use crate::infer::{cost, elements};
use crate::number::with_real;
use crate::parallel::{Pair, for_each_pair};
use crate::strided;

/// `(a [.., n, n], b [.., n, m]) -> x [.., n, m]`; whether `a` is transposed as [`Attrs::Matmul`], whose other half
/// must be false.
pub static SOLVE: OpDef = OpDef {
    name: "solve",
    doc: "The solution of a system of linear equations, or of its transpose.",
    infer: system::infer,
    axes: system::axes,
    mem: Mem::Reuse(&[1]),
    scratch: factors_bytes,
    saves: Saves::one_of(&[&[Keep::Input(0).always(), Keep::Output(0).needed_by(0)]]),
    remat: Remat::Costly,
    cost: |call| {
        let n = call.inputs.first().and_then(|ty| ty.shape.last()?.most()).unwrap_or(0) as u64;
        let all: u64 = call.inputs.iter().map(elements).fold(0, u64::saturating_add);
        cost(all.saturating_mul(n), call.inputs.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::OnData,
    lower: Lower::Slices(|k| with_real!("solve", k.outputs[0].dtype, T => kernel::<T>(k))),
    samples,
};

/// Bytes of one factorized matrix and its pivots, so that the next one is aligned too.
fn one_bytes(n: usize, dtype: DType) -> usize {
    (n * n * dtype.size() + n * size_of::<u32>()).next_multiple_of(64)
}

/// Room for as many factorized matrices of the first input as are worked on at once.
pub(super) fn factors_bytes(call: &Call, threads: usize) -> Bytes {
    let Some((sizes, dtype)) =
        call.inputs.first().and_then(|ty| Some((ty.shape.most()?, ty.dtype)))
    else {
        return Bytes::ZERO;
    };
    let Ok((batch, n, _)) = dims("solve", &sizes) else { return Bytes::ZERO };
    Bytes::of(batch.min(threads.max(1)) * one_bytes(n, dtype))
}

/// A factorized matrix of a batch.
pub(super) struct Item<'a, T> {
    /// Which one.
    pub number: usize,
    /// Its order.
    pub n: usize,
    /// L and U.
    pub factors: &'a [T],
    /// Rows that were exchanged.
    pub pivots: &'a [u32],
    /// What came of it.
    pub made: lu::Factored,
}

/// What is done with a factorized matrix and the elements of the output that belong to it.
pub(super) type OnItem<'f, T, O> = &'f (dyn Fn(Item<T>, &mut [O], &dyn Workers) + Sync);

/// Copies matrix `number` into a piece of scratch, factorizes it and calls `f`.
fn with_factors<T: Factor, O>(
    a: &In,
    number: usize,
    n: usize,
    room: &mut [u8],
    out: &mut [O],
    workers: &dyn Workers,
    f: OnItem<T, O>,
) {
    let (factors, pivots) = room.split_at_mut(n * n * size_of::<T>());
    let factors: &mut [T] = cast_slice_mut(factors);
    let pivots: &mut [u32] =
        &mut cast_slice_mut::<u8, u32>(&mut pivots[..n * size_of::<u32>()])[..];
    strided::copy(&a.layout, a.slice::<T>(), number * n * n, factors);
    let made = lu::factorize(factors, n, pivots, workers);
    f(Item { number, n, factors, pivots, made }, out, workers);
}

/// Factorizes every matrix of `a` and calls `f` with it and the `size` elements of `out` that belong to it.
pub(super) fn for_each_factored<T: Factor, O: Send>(
    a: &In,
    out: &mut [O],
    size: usize,
    scratch: &mut [u8],
    workers: &dyn Workers,
    f: OnItem<T, O>,
) -> Result<()> {
    let (batch, n, _) = dims("solve", &a.layout.sizes)?;
    let each = one_bytes(n, T::DTYPE);
    if batch == 0 || size == 0 {
        return Ok(());
    }
    if batch == 1 {
        with_factors::<T, O>(a, 0, n, scratch, out, workers, f);
        return Ok(());
    }
    // Each thread has its own matrices and its own room; within a matrix it is alone.
    let parts = scratch.len().checked_div(each).unwrap_or(1).clamp(1, batch);
    let per = batch.div_ceil(parts);
    let pair = Pair { a: out, chunk_a: per * size, b: scratch, chunk_b: each.max(1) };
    for_each_pair(workers, pair, &|part, out, room| {
        for (i, out) in out.chunks_mut(size).enumerate() {
            with_factors::<T, O>(a, part * per + i, n, room, out, &Alone, f);
        }
    });
    Ok(())
}

fn kernel<T: Factor>(k: &mut Kernel) -> Result<()> {
    let transposed = transposed("solve", k.attrs)?;
    let (a, b) = (&k.inputs[0], &k.inputs[1]);
    let (_, n, width) = dims("solve", &k.outputs[0].sizes)?;
    let out = k.outputs[0].slice::<T>();
    // The first matrix without an inverse, and its column.
    let bad = AtomicU64::new(u64::MAX);
    let given = matches!(b.data, Data::Slice(_));
    for_each_factored::<T, T>(a, out, n * width, k.scratch, k.workers, &|it, x, workers| match it
        .made
        .singular
    {
        Some(column) => {
            bad.fetch_min((it.number as u64) << 32 | column as u64, Ordering::Relaxed);
        }
        None => {
            if given {
                strided::copy(&b.layout, b.slice::<T>(), it.number * n * width, x);
            }
            substitute(&it, x, width, transposed, workers);
        }
    })?;
    match bad.into_inner() {
        u64::MAX => Ok(()),
        found => {
            let (matrix, column) = ((found >> 32) as usize, found as u32 as usize);
            let help = "it has no inverse; check what made it, or add to its diagonal".into();
            let (op, needed) = ("solve", "invertible");
            Err(ErrorKind::Singular { op, matrix, column, needed, help }.into())
        }
    }
}

/// Replaces `x` by the solution.
fn substitute<T: Factor>(
    it: &Item<T>,
    x: &mut [T],
    width: usize,
    transposed: bool,
    workers: &dyn Workers,
) {
    let Item { n, factors, pivots, .. } = *it;
    let (down, right) = (n as isize, 1);
    let lower = |transposed| Triangle {
        data: factors,
        start: 0,
        steps: [down, right],
        n,
        transposed,
        unit: true,
    };
    // U is read as the transpose of a lower triangle.
    let upper = |transposed: bool| Triangle {
        data: factors,
        start: 0,
        steps: [right, down],
        n,
        transposed: !transposed,
        unit: false,
    };
    if transposed {
        upper(true).solve(x, width, workers);
        lower(true).solve(x, width, workers);
        lu::exchange(x, width, pivots, true);
    } else {
        lu::exchange(x, width, pivots, false);
        lower(false).solve(x, width, workers);
        upper(false).solve(x, width, workers);
    }
}

/// The right side's gradient H solves the system of the other transpose; the left side's is -H Xᵀ, or -X Hᵀ where it
/// was transposed.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let turned = transposed("solve", call.attrs)?;
    let of_b = e.apply(&SOLVE, vec![call.input(0)?, call.grad()?], side(!turned))?;
    let of_a = match call.needs[0] {
        true => {
            let x = call.output(0)?;
            let (left, right) = if turned { (x, of_b.clone()) } else { (of_b.clone(), x) };
            let outer = Attrs::Matmul { transpose_a: false, transpose_b: true };
            let outer = e.apply(&MATMUL, vec![left, right], outer)?;
            emit::dense(emit::neg(e, outer)?)
        }
        false => None,
    };
    Ok(vec![of_a, if call.needs[1] { emit::dense(of_b) } else { None }])
}

fn samples() -> Vec<Sample> {
    let of = |dtype, batch: &[usize], n: usize, m: usize, transpose_a| {
        let a = TensorType::new(dtype, [batch, &[n, n]].concat());
        let b = TensorType::new(dtype, [batch, &[n, m]].concat());
        let attrs = side(transpose_a);
        Sample::of(&[a, b], attrs).with(0, Values::Invertible)
    };
    vec![
        of(DType::F64, &[], 3, 2, false),
        of(DType::F64, &[], 3, 2, true),
        of(DType::F64, &[2, 2], 4, 1, false),
        of(DType::F64, &[3], 4, 4, true),
        of(DType::F64, &[], 60, 3, false),
        of(DType::F32, &[], 50, 70, true),
        of(DType::F32, &[300], 2, 1, false),
        of(DType::F32, &[], 0, 3, false),
        of(DType::F32, &[], 3, 0, true),
        of(DType::F32, &[0], 3, 2, false),
    ]
}

//! The kernel of `solve`, by an LU factorization with row exchanges, in scratch: as many matrices at once as there are
//! threads. `det` and `slogdet` share its loop over factorized matrices.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::linalg::matrix::inside;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::{Data, In};
use tonnage_core::row::Call;
use tonnage_core::{Bytes, DType, TensorType};
use tonnage_ops::linalg::system::transposed;

use super::lu::{self, Factor};
use super::matrix::{dims, each_in_slot, for_batch};
use super::substitute::{BlockWorkspace, Triangle};
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;
use crate::parallel::{cut, cut_bytes, cut_bytes_of};
use crate::strided;
use crate::workers::Workers;

/// The kernel of [`SOLVE`](tonnage_ops::linalg::solve::SOLVE).
pub static SOLVE: KernelDef = KernelDef {
    run: |k| with_real!("solve", k.outputs[0].dtype, T => kernel::<T>(k)),
    scratch: factors_bytes,
    has_epilogue: false,
    streaming: None,
};

/// Bytes of one factorized matrix, its pivots, and the workspace that it takes with that many right sides.
fn slot(n: usize, width: usize, dtype: DType, threads: usize) -> usize {
    let workspace = lu::bytes(n, width, dtype, threads);
    cut_bytes_of(n * n, dtype) + cut_bytes::<u32>(n) + workspace
}

/// Room for as many factorized matrices of the first input as are worked on at once.
pub(super) fn factors_bytes(call: &Call, threads: usize) -> Bytes {
    let most = |ty: &TensorType| Some((ty.shape.most()?, ty.dtype));
    let Some((sizes, dtype)) = call.inputs.first().and_then(most) else { return Bytes::ZERO };
    let Ok((batch, n, _)) = dims("solve", &sizes) else { return Bytes::ZERO };
    let width = call.inputs.get(1).and_then(|ty| ty.shape.last()?.most()).unwrap_or(0);
    for_batch(batch, threads, slot(n, width, dtype, inside(batch, threads)))
}

/// A factorized matrix of a batch.
pub(super) struct FactoredMatrix<'a, T> {
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
    /// For what is done next.
    pub workspace: BlockWorkspace<'a, T>,
}

/// What is done with a factorized matrix and the elements of the output that belong to it.
pub(super) type OnFactored<'f, T, O> =
    &'f (dyn Fn(FactoredMatrix<T>, &mut [O], &dyn Workers) -> Result<()> + Sync);

/// Factorizes every matrix of `a` and calls `f` with it and the `size` elements of `out` that belong to it, which are
/// `width` right sides or none.
pub(super) fn for_each_factored<T: Factor, O: Send>(
    a: &In,
    (out, size, width): (&mut [O], usize, usize),
    scratch: &mut [u8],
    workers: &dyn Workers,
    f: OnFactored<T, O>,
) -> Result<()> {
    let (batch, n, _) = dims("solve", &a.layout.sizes)?;
    let each = slot(n, width, T::DTYPE, inside(batch, workers.threads()));
    let out = (out, size, n * n);
    each_in_slot(out, (scratch, each), workers, &|number, out, mut slot, workers| {
        let factors = cut::<T>(&mut slot, n * n);
        let pivots = cut::<u32>(&mut slot, n);
        let mut workspace = BlockWorkspace::of(slot, n, lu::held(n, width));
        strided::copy(&a.layout, a.slice::<T>(), number * n * n, factors);
        let made = lu::factorize(factors, n, pivots, &mut workspace, workers)?;
        f(FactoredMatrix { number, n, factors, pivots, made, workspace }, out, workers)
    })
}

fn kernel<T: Factor>(k: &mut Kernel) -> Result<()> {
    let transposed = transposed("solve", k.attrs)?;
    let (a, b) = (&k.inputs[0], &k.inputs[1]);
    let (_, n, width) = dims("solve", &k.outputs[0].sizes)?;
    let out = k.outputs[0].slice::<T>();
    // The first matrix without an inverse, and its column.
    let bad = AtomicU64::new(u64::MAX);
    let given = matches!(b.data, Data::Slice(_));
    let out = (out, n * width, width);
    for_each_factored::<T, T>(a, out, k.scratch, k.workers, &|mut it, x, workers| {
        if let Some(column) = it.made.singular {
            bad.fetch_min((it.number as u64) << 32 | column as u64, Ordering::Relaxed);
            return Ok(());
        }
        if given {
            strided::copy(&b.layout, b.slice::<T>(), it.number * n * width, x);
        }
        substitute(&mut it, x, width, transposed, workers)
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
    it: &mut FactoredMatrix<T>,
    x: &mut [T],
    width: usize,
    transposed: bool,
    workers: &dyn Workers,
) -> Result<()> {
    let (n, factors, pivots) = (it.n, it.factors, it.pivots);
    let workspace = &mut it.workspace;
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
        upper(true).solve(x, width, workspace, workers)?;
        lower(true).solve(x, width, workspace, workers)?;
        lu::exchange(x, width, pivots, true);
    } else {
        lu::exchange(x, width, pivots, false);
        lower(false).solve(x, width, workspace, workers)?;
        upper(false).solve(x, width, workspace, workers)?;
    }
    Ok(())
}

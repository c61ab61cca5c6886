//! `solve`: X with A X = B, or Aᵀ X = B, for square A; for each pair of a batch.
//!
//! By an LU factorization with row exchanges, in scratch: as many matrices at once as there are threads. A matrix
//! without an inverse is an error that names it.

use std::sync::atomic::{AtomicU64, Ordering};
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Values};
use tonnage_core::{Bytes, DType, OpDef, TensorType, Workers};

use super::lu::{self, Factor};
use super::matmul::MATMUL;
use super::matrix::{dims, each_in_slot, for_batch, inside};
use super::substitute::{BlockWorkspace, Triangle};
use super::system::{self, side, transposed};
use crate::emit;
use crate::infer::{cost, elements};
use crate::number::with_real;
use crate::parallel::{cut, cut_bytes, cut_bytes_of};
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
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).needed_by(0)]]),
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

/// The right side's gradient H solves the system of the other transpose; the left side's is -H Xᵀ, or -X Hᵀ where it
/// was transposed.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let transposed = transposed("solve", call.attrs)?;
    let of_b = e.apply(&SOLVE, vec![call.input(0)?, call.grad()?], side(!transposed))?;
    let of_a = match call.needs[0] {
        true => {
            let x = call.output(0)?;
            let (left, right) = if transposed { (x, of_b.clone()) } else { (of_b.clone(), x) };
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
        of(DType::F64, &[2], 16, 7, true),
        of(DType::F64, &[], 60, 3, false),
        of(DType::F32, &[], 50, 70, true),
        of(DType::F32, &[], 150, 33, false),
        of(DType::F64, &[2], 70, 5, true),
        of(DType::F32, &[300], 2, 1, false),
        of(DType::F32, &[], 0, 3, false),
        of(DType::F32, &[], 3, 0, true),
        of(DType::F32, &[0], 3, 2, false),
    ]
}

//! The kernel of `triangular_solve`.

use crate::linalg::matrix::inside;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::lent::{Data, In};
use tonnage_core::{Bytes, Call, DType};
use tonnage_ops::linalg::system::transposed;

use super::field::Field;
use super::matrix::{dims, each_in_slot, for_batch};
use super::substitute::{BlockWorkspace, Triangle, held_to_solve, workspace_bytes};
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;
use crate::strided::{self, Positions};

/// The kernel of [`TRIANGULAR_SOLVE`](tonnage_ops::linalg::triangular_solve::TRIANGULAR_SOLVE).
pub static TRIANGULAR_SOLVE: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn slot(n: usize, width: usize, dtype: DType, threads: usize) -> usize {
    workspace_bytes(n, width, held_to_solve(n, width), dtype, threads)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let most = call.inputs.get(1).and_then(|b| Some((b.shape.most()?, b.dtype)));
    let Some((sizes, dtype)) = most else { return Bytes::ZERO };
    match dims("triangular_solve", &sizes) {
        Ok((batch, n, width)) => {
            for_batch(batch, threads, slot(n, width, dtype, inside(batch, threads)))
        }
        Err(_) => Bytes::ZERO,
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_real!("triangular_solve", k.outputs[0].dtype, T => solve::<T>(k))
}

fn solve<T: Field>(k: &mut Kernel) -> Result<()> {
    let transposed = transposed("triangular_solve", k.attrs)?;
    let (a, workers): (&In, _) = (&k.inputs[0], k.workers);
    let (batch, n, width) = dims("triangular_solve", &k.outputs[0].sizes)?;
    let rank = a.layout.sizes.len();
    let starts = strided::axes(&a.layout, 0..rank - 2);
    let starts = Positions::of(starts);
    let steps = [a.layout.strides[rank - 2], a.layout.strides[rank - 1]];
    let triangle = |number| {
        let (data, start) = (a.slice::<T>(), starts.at(number));
        Triangle { data, start, steps, n, transposed, unit: false }
    };
    for matrix in 0..batch {
        if let Some(column) = triangle(matrix).singular() {
            let help = "its diagonal has a 0; check what made it".into();
            let (op, needed) = ("triangular_solve", "invertible");
            return Err(ErrorKind::Singular { op, matrix, column, needed, help }.into());
        }
    }
    let b = &k.inputs[1];
    let given = matches!(b.data, Data::Slice(_));
    let each = slot(n, width, T::DTYPE, inside(batch, workers.threads()));
    let out = (k.outputs[0].slice::<T>(), n * width, n * width);
    each_in_slot(out, (&mut *k.scratch, each), workers, &|number, x, slot, workers| {
        if given {
            strided::copy(&b.layout, b.slice::<T>(), number * n * width, x);
        }
        let mut workspace = BlockWorkspace::of(slot, n, held_to_solve(n, width));
        triangle(number).solve(x, width, &mut workspace, workers)
    })
}

//! The kernel of `matmul`.

use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{Data, In};
use tonnage_core::row::Call;
use tonnage_core::walk::{LayoutWalk, joined};
use tonnage_core::{DType, bf16, f16};
use tonnage_ops::linalg::Size;
use tonnage_ops::linalg::matmul::{sizes, transposes};

use super::gemm::{
    GemmOutput, Matrix, OutputEpilogue, Reads, Strides, Target, add_alike, gemm, scratch_bytes,
};
use super::staged::{self, OtherOperand, StoredOperand};
use crate::kernel::{Kernel, KernelDef, Streaming};
use crate::parallel::{for_each_item, is_even};
use crate::workers::Alone;

/// The kernel of [`MATMUL`](tonnage_ops::linalg::matmul::MATMUL).
pub static MATMUL: KernelDef = KernelDef {
    run: kernel,
    scratch,
    has_epilogue: true,
    streaming: Some(Streaming { reads, staging }),
};

/// The ways to run a product: batch by batch, as one product of all rows, or one of several.
fn ways(size: Size) -> [Size; 3] {
    let joined = Size { batch: 1, rows: size.rows.saturating_mul(size.batch), ..size };
    [size, joined, Size { batch: 1, ..size }]
}

/// Whether a piece of a product has the bits that it has in the whole, in whatever way either is run.
pub fn keeps_bits(whole: &Call, piece: &Call) -> bool {
    let (Some((size, dtype)), Some((part, _))) = (sizes(whole), sizes(piece)) else { return false };
    let all = ways(size).into_iter().chain(ways(part));
    size.k == part.k && add_alike(all, dtype)
}

/// Whether each of several products is one thread's: it is too small to be shared, and all of them are not.
fn is_one_threads(size: Size) -> bool {
    /// Operations of a product that is worth several threads, and of all that are worth a second one.
    const LARGE: usize = 8_000_000;
    const FEW: usize = 2_000_000;
    let of = |size: Size| {
        let Size { batch, rows, cols, k } = size;
        [batch, rows, cols, k].iter().fold(2usize, |n, m| n.saturating_mul(*m))
    };
    size.batch > 1 && of(Size { batch: 1, ..size }) < LARGE && of(size) >= FEW
}

// The most that any of the ways to run it takes.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some((size, dtype)) = sizes(call) else { return Bytes::ZERO };
    let each = match threads > 1 && is_one_threads(size) {
        true => scratch_bytes(Size { batch: 1, ..size }, dtype, 1).as_usize() * threads,
        false => 0,
    };
    let ways = ways(size).into_iter().map(|size| scratch_bytes(size, dtype, threads));
    ways.fold(Bytes::of(each), Bytes::max)
}

/// The same where an operand comes piece by piece, whichever of the ways it is run in: with room for a piece.
fn staging(call: &Call, stored: &[Option<&Layout>], threads: usize) -> Bytes {
    let least = scratch(call, threads);
    let (Some((size, dtype)), Ok((ta, tb))) = (sizes(call), transposes(call)) else {
        return least;
    };
    let of = |(input, layout): (usize, &Option<&Layout>)| {
        let [.., row, col] = layout.as_ref()?.strides[..] else { return None };
        let k_stride = match (input == 0, if input == 0 { ta } else { tb }) {
            (true, false) | (false, true) => col,
            (true, true) | (false, false) => row,
        };
        let sizes = ways(size).into_iter();
        sizes.map(|size| staged::space(size, input == 0, k_stride != 1, dtype, threads)).max()
    };
    let most = stored.iter().enumerate().filter_map(of).max().unwrap_or(0);
    least.max(Bytes::of(most))
}

/// What takes less is brought into memory: it may be packed more than once.
const SMALL: usize = 1 << 18;

/// Rows or columns of an operand run along what lies outside of memory, in runs that are worth a read, or one after the other.
fn reads(call: &Call, input: usize, layout: &Layout) -> Option<usize> {
    let ([.., rows, cols], [.., row, col]) = (&layout.sizes[..], &layout.strides[..]) else {
        return None;
    };
    let (inner, apart) = match (*row, *col) {
        (apart, 1) => (*cols, apart),
        (1, apart) => (*rows, apart),
        _ => return None,
    };
    let small = layout.count().saturating_mul(call.inputs[input].dtype.size()) <= SMALL;
    let in_runs = apart >= 1 && (inner >= 256 || apart == inner as isize);
    (!small && in_runs).then(|| layout.count())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    use DType::*;
    match k.outputs[0].dtype {
        F64 => multiply::<f64, f64>(k),
        F32 => multiply::<f32, f32>(k),
        F16 => multiply::<f16, f32>(k),
        BF16 => multiply::<bf16, f32>(k),
        // The low bits of products and sums are the same for both signs.
        I64 | U64 => multiply::<i64, i64>(k),
        I32 | U32 => multiply::<i32, i32>(k),
        I16 | U16 => multiply::<i16, i16>(k),
        I8 | U8 => multiply::<i8, i8>(k),
        Bool => Ok(()), // refused by its type rule
    }
}

fn multiply<'a, T, C>(k: &mut Kernel<'a, '_>) -> Result<()>
where
    T: GemmOutput<Compute = C> + Reads<C>,
    C: super::gemm::Compute,
{
    let Attrs::Matmul { transpose_a, transpose_b } = *k.attrs else { return Ok(()) };
    let inputs: &'a [In<'a>] = k.inputs;
    let (left, right) = (&inputs[0], &inputs[1]);
    let (sizes, out) = k.outputs[0].parts::<T>();
    let [batch @ .., rows, cols] = sizes else { return Ok(()) };
    if out.is_empty() {
        return Ok(());
    }
    let a = MatmulOperand::new(&k.inputs[0].layout, batch, transpose_a);
    let b = MatmulOperand::new(&k.inputs[1].layout, batch, transpose_b);
    let epilogue = k.epilogue;
    let end_of = |size: Size, start: usize| {
        let (batch, row) = (size.rows * size.cols, size.cols);
        epilogue.map(|epilogue| OutputEpilogue { epilogue, start, batch, row })
    };
    let outside = |input: &'a In<'a>| match input.data {
        Data::Stored(from) if from.mapped().is_none() => Some(from),
        _ => None,
    };
    let mut run = |size: Size, sa: Strides, sb: Strides, out: &mut [T], start: usize| {
        let end = end_of(size, start);
        // Of two that lie outside the larger one comes in pieces, and the other with each of them.
        let larger = left.layout.count() >= right.layout.count();
        let beside = |input: &'a In<'a>, strides| match outside(input) {
            Some(from) => OtherOperand::Stored(from, strides),
            None => OtherOperand::Memory(input.slice::<T>(), strides),
        };
        match (outside(left), outside(right)) {
            (Some(from), other) if other.is_none() || larger => {
                let of = StoredOperand { from, strides: sa, left: true };
                staged::multiply(of, beside(right, sb), size, out, end, k.scratch, k.workers)
            }
            (_, Some(from)) => {
                let of = StoredOperand { from, strides: sb, left: false };
                staged::multiply(of, beside(left, sa), size, out, end, k.scratch, k.workers)
            }
            _ => {
                let (l, r) = (left.slice::<T>(), right.slice::<T>());
                let (l, r) = (Matrix::left(l, sa), Matrix::right(r, sb));
                gemm(size, &l, &r, Target::new(out, size), &end, k.scratch, k.workers)
            }
        }
    };
    let all = Size { batch: batch.iter().product(), rows: *rows, cols: *cols, k: a.cols };
    let single = Size { batch: 1, ..all };
    // One right matrix for all: the rows of all left ones are one tall matrix.
    if all.batch != 1
        && let (Some(0), Some(row)) = (b.step(), a.tall_step())
    {
        let tall = Size { rows: all.batch * all.rows, ..single };
        return run(tall, Strides { row, ..a.strides(0) }, b.strides(0), out, 0);
    }
    if let (Some(step_a), Some(step_b)) = (a.step(), b.step()) {
        return run(all, a.strides(step_a), b.strides(step_b), out, 0);
    }
    // Batches that no single stride walks: one after the other.
    let axis = |axis: usize| (batch[axis], [a.stride(axis), b.stride(axis)]);
    let starts = LayoutWalk::new(batch.len(), [a.layout.offset, b.layout.offset], axis);
    let mut products = starts.zip(out.chunks_mut(rows * cols)).enumerate();
    let at = |[x, y]: [usize; 2]| {
        (Strides { start: x, ..a.strides(0) }, Strides { start: y, ..b.strides(0) })
    };
    let in_memory = outside(left).is_none() && outside(right).is_none();
    let threads = k.workers.threads();
    let even = is_even(all.batch, threads);
    if threads > 1 && even && in_memory && is_one_threads(all) {
        let (l, r) = (left.slice::<T>(), right.slice::<T>());
        let slot = scratch_bytes(single, left.dtype, 1).as_usize();
        return for_each_item(
            k.workers,
            products,
            k.scratch,
            slot,
            &|(i, (starts, out)), scratch| {
                let (sa, sb) = at(starts);
                let (l, r) = (Matrix::left(l, sa), Matrix::right(r, sb));
                gemm(
                    single,
                    &l,
                    &r,
                    Target::new(out, single),
                    &end_of(single, i * rows * cols),
                    scratch,
                    &Alone,
                )
            },
        );
    }
    products.try_for_each(|(i, (starts, out))| {
        let (sa, sb) = at(starts);
        run(single, sa, sb, out, i * rows * cols)
    })
}

/// An operand as it is read, broadcast over the batch.
pub(super) struct MatmulOperand<'a> {
    pub layout: &'a Layout,
    batch: &'a [usize],
    rows: usize,
    pub cols: usize,
    row: isize,
    col: isize,
}

impl<'a> MatmulOperand<'a> {
    pub fn new(layout: &'a Layout, batch: &'a [usize], transposed: bool) -> MatmulOperand<'a> {
        let last = layout.sizes.len() - 1;
        let (r, c) = if transposed { (last, last - 1) } else { (last - 1, last) };
        MatmulOperand {
            layout,
            batch,
            rows: layout.sizes[r],
            cols: layout.sizes[c],
            row: layout.strides[r],
            col: layout.strides[c],
        }
    }

    /// The step along an axis of the batch: 0 where the operand is broadcast.
    pub fn stride(&self, axis: usize) -> isize {
        match (axis + self.layout.sizes.len()).checked_sub(self.batch.len() + 2) {
            Some(own) if self.layout.sizes[own] != 1 => self.layout.strides[own],
            _ => 0,
        }
    }

    /// The one step that walks the batch, where there is one; 0 for a batch of one matrix.
    pub fn step(&self) -> Option<isize> {
        let axis = |axis: usize| (self.batch[axis], self.stride(axis));
        match joined(self.batch.len(), axis) {
            (0, 1, _) => Some(0),
            (0, _, step) => Some(step),
            _ => None,
        }
    }

    /// The one step that walks the rows of all matrices, where there is one.
    pub fn tall_step(&self) -> Option<isize> {
        let axes = self.batch.len();
        let axis = |axis: usize| match axis == axes {
            true => (self.rows, self.row),
            false => (self.batch[axis], self.stride(axis)),
        };
        let (outer, _, step) = joined(axes + 1, axis);
        (outer == 0).then_some(step)
    }

    pub fn strides(&self, batch: isize) -> Strides {
        Strides { start: self.layout.offset, batch, row: self.row, col: self.col }
    }
}

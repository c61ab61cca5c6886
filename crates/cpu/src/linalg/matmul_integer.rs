//! The kernel of `matmul_integer`.

use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::row::Call;
use tonnage_core::walk::LayoutWalk;
use tonnage_ops::linalg::Size;
use tonnage_ops::linalg::matmul::sizes;

use super::gemm::{IntegerMatrix, Strides, integer_product, integer_scratch_bytes};
use super::matmul::MatmulOperand;
use crate::kernel::{Kernel, KernelDef};
use crate::parallel::{for_each_item, is_even};
use crate::workers::{Alone, Workers};

/// The kernel of [`MATMUL_INTEGER`](tonnage_ops::linalg::matmul_integer::MATMUL_INTEGER).
pub static MATMUL_INTEGER: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

// As one product of all rows, or batch by batch.
fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some((size, _)) = sizes(call) else { return Bytes::ZERO };
    let rows = size.rows.saturating_mul(size.batch);
    integer_scratch_bytes(Size { batch: 1, rows, ..size }, threads)
}

/// Multiplications of a product that one thread computes whole where there are several, at most: between two products the work may be
/// stopped.
const SMALL: usize = 1 << 26;

/// Multiplications of all products that are worth a second thread.
const FEW: usize = 1 << 20;

fn bytes<'a>(input: &'a In<'a>) -> (&'a [u8], bool) {
    match input.dtype {
        DType::I8 => (bytemuck::cast_slice(input.slice::<i8>()), true),
        _ => (input.slice::<u8>(), false),
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Matmul { transpose_a, transpose_b } = *k.attrs else { return Ok(()) };
    let [left, right] = k.inputs else { return Ok(()) };
    let (sizes, out) = k.outputs[0].parts::<i32>();
    let [batch @ .., rows, cols] = sizes else { return Ok(()) };
    if out.is_empty() {
        return Ok(());
    }
    let a = MatmulOperand::new(&left.layout, batch, transpose_a);
    let b = MatmulOperand::new(&right.layout, batch, transpose_b);
    let ((of_a, a_signed), (of_b, b_signed)) = (bytes(left), bytes(right));
    let run = |rows: usize,
               [sa, sb]: [Strides; 2],
               out: &mut [i32],
               scratch: &mut [u8],
               workers: &dyn Workers| {
        let size = Size::single(rows, *cols, a.cols);
        let left = IntegerMatrix { data: of_a, strides: sa, signed: a_signed };
        let right = IntegerMatrix { data: of_b, strides: sb, signed: b_signed };
        integer_product(size, &left, &right, out, scratch, workers)
    };
    // One right matrix for all: the rows of all left ones are one tall matrix.
    if let (Some(0), Some(row)) = (b.step(), a.tall_step()) {
        let tall = batch.iter().product::<usize>() * rows;
        let strides = [Strides { row, ..a.strides(0) }, b.strides(0)];
        return run(tall, strides, out, k.scratch, k.workers);
    }
    let axis = |axis: usize| (batch[axis], [a.stride(axis), b.stride(axis)]);
    let starts = LayoutWalk::new(batch.len(), [a.layout.offset, b.layout.offset], axis);
    let at = |[x, y]: [usize; 2]| {
        [Strides { start: x, ..a.strides(0) }, Strides { start: y, ..b.strides(0) }]
    };
    let (size, count) = (Size::single(*rows, *cols, a.cols), out.len() / (rows * cols));
    let mut products = starts.zip(out.chunks_mut(rows * cols));
    let threads = k.workers.threads();
    let even = is_even(count, threads);
    let each = rows.saturating_mul(*cols).saturating_mul(a.cols);
    let worth = each <= SMALL && each.saturating_mul(count) >= FEW;
    if threads > 1 && count > 1 && even && worth {
        let slot = integer_scratch_bytes(size, 1).as_usize();
        return for_each_item(k.workers, products, k.scratch, slot, &|(starts, out), scratch| {
            run(*rows, at(starts), out, scratch, &Alone)
        });
    }
    products.try_for_each(|(starts, out)| run(*rows, at(starts), out, k.scratch, k.workers))
}

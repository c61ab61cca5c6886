//! Where the largest or the least element along an axis stands: what the kernels of `argmax` and `argmin` share.
//!
//! Along a last axis that lies close together the extreme of each block of 512 is found by a vectorized reduction,
//! and only the block that holds the winner is looked through for its index. Along another axis the winners of
//! neighbouring columns are kept side by side while the rows are walked through once.

use tonnage_core::Element;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::walk::StridedAxes;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_number};
use crate::parallel::{rows_at_once, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::{Isa, SimdKernel, level};

/// The kernel of [`ARGMAX`](tonnage_ops::reduce::arg::ARGMAX).
pub static ARGMAX: KernelDef = KernelDef {
    run: |k| kernel("argmax", k, true),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`ARGMIN`](tonnage_ops::reduce::arg::ARGMIN).
pub static ARGMIN: KernelDef = KernelDef {
    run: |k| kernel("argmin", k, false),
    scratch: no_scratch,
    has_epilogue: false,
    streaming: None,
};

const BLOCK: usize = 512;

/// Columns whose winners are kept side by side.
const WIDTH: usize = 256;

/// Runs the kernel: the largest, or the least.
pub(super) fn kernel(op: &'static str, k: &mut Kernel, largest: bool) -> Result<()> {
    let Attrs::Axis(axis) = *k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], k.outputs[0].slice::<i64>());
    with_number!(op, x.dtype, T => match largest {
        true => find::<T, ArgMaxRank>(x, axis, out, k.workers),
        false => find::<T, ArgMinRank>(x, axis, out, k.workers),
    })
}

/// Which of two elements is ahead; a type without values.
trait Rank {
    /// Strictly; NaN is ahead of everything but itself.
    fn ahead<T: Number>(a: T, b: T) -> bool;
}

struct ArgMaxRank;

struct ArgMinRank;

impl Rank for ArgMaxRank {
    #[inline(always)]
    fn ahead<T: Number>(a: T, b: T) -> bool {
        a.above(b)
    }
}

impl Rank for ArgMinRank {
    #[inline(always)]
    fn ahead<T: Number>(a: T, b: T) -> bool {
        a.below(b)
    }
}

fn find<T: Number, R: Rank>(
    x: &In,
    axis: usize,
    out: &mut [i64],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, data) = (&x.layout, x.slice::<T>());
    let n = layout.sizes[axis];
    if n == 0 {
        // Only where the length was open to the type rule: nothing to point at.
        out.fill(-1);
        return Ok(());
    }
    let outer = strided::axes(layout, 0..axis);
    let inner = strided::axes(layout, axis + 1..layout.sizes.len());
    let (width, step) = (inner.count(), layout.strides[axis]);
    let starts = strided::Positions::of(outer);
    let side_by_side = width >= 16 && inner.is_contiguous();
    let at_once = rows_at_once(n).max(if side_by_side { WIDTH } else { 1 });
    for_each_chunk(workers, out, at_once, &|chunk, out| {
        let mut done = 0;
        while done < out.len() {
            let number = chunk * at_once + done;
            let (row, column) = (number / width, number % width);
            let start = starts.at(row) as isize + distance(inner, column);
            if side_by_side {
                let count = WIDTH.min(width - column).min(out.len() - done);
                let walk = Columns { data, start, step, n, out: &mut out[done..done + count] };
                level().run(ColumnWinners::<T, R>(walk, std::marker::PhantomData));
                done += count;
            } else {
                out[done] = along::<T, R>(data, start, step, n, workers) as i64;
                done += 1;
            }
        }
    })
}

/// How far the element of that number lies from the first; backwards too.
fn distance(axes: StridedAxes, mut number: usize) -> isize {
    let mut far = 0;
    for (size, stride) in axes.sizes.iter().zip(axes.strides).rev() {
        far += (number % size) as isize * stride;
        number /= size;
    }
    far
}

/// The place of the winner among `n` elements from `start` on; some place where the work is stopped.
fn along<T: Number, R: Rank>(
    data: &[T],
    start: isize,
    step: isize,
    n: usize,
    workers: &dyn Workers,
) -> usize {
    let mut buffer = [T::ZERO; BLOCK];
    let mut best: Option<(T, usize)> = None;
    for block in strides(workers, 0..n.div_ceil(BLOCK), BLOCK).flatten() {
        let from = block * BLOCK;
        let count = BLOCK.min(n - from);
        let block = fetch(data, start + from as isize * step, step, count, &mut buffer);
        let winner = level().run(RowWinner::<T, R>(block, std::marker::PhantomData));
        if best.is_none_or(|(held, _)| R::ahead(winner, held)) {
            best = Some((winner, from));
        }
    }
    let Some((winner, from)) = best else { return 0 };
    let count = BLOCK.min(n - from);
    let block = fetch(data, start + from as isize * step, step, count, &mut buffer);
    // Level with the winner: neither is ahead of the other.
    let level = |x: &T| !R::ahead(winner, *x);
    from + block.iter().position(level).unwrap_or(0)
}

/// Elements close together: as they lie, or brought into the buffer.
fn fetch<'a, T: Element>(
    data: &'a [T],
    start: isize,
    step: isize,
    count: usize,
    buffer: &'a mut [T; BLOCK],
) -> &'a [T] {
    if step == 1 {
        return &data[start as usize..start as usize + count];
    }
    for (i, x) in buffer[..count].iter_mut().enumerate() {
        *x = data[(start + i as isize * step) as usize];
    }
    &buffer[..count]
}

/// The winner of a block, in lanes that the compiler puts side by side.
struct RowWinner<'a, T, R>(&'a [T], std::marker::PhantomData<R>);

impl<T: Number, R: Rank> SimdKernel for RowWinner<'_, T, R> {
    type Output = T;

    #[inline(always)]
    fn run<I: Isa>(self) -> T {
        const LANES: usize = 32;
        let first = self.0.first().copied().unwrap_or(T::ZERO);
        let mut lanes = [first; LANES];
        for chunk in self.0.chunks(LANES) {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                let x = I::element(*x);
                *lane = if R::ahead(x, *lane) { x } else { *lane };
            }
        }
        lanes.into_iter().fold(first, |best, x| if R::ahead(x, best) { x } else { best })
    }
}

struct Columns<'a, T> {
    data: &'a [T],
    start: isize,
    step: isize,
    n: usize,
    out: &'a mut [i64],
}

/// The winners of neighbouring columns, a row after the other.
struct ColumnWinners<'a, T, R>(Columns<'a, T>, std::marker::PhantomData<R>);

impl<T: Number, R: Rank> SimdKernel for ColumnWinners<'_, T, R> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Columns { data, start, step, n, out } = self.0;
        let count = out.len();
        let mut best = [T::ZERO; WIDTH];
        let best = &mut best[..count];
        best.copy_from_slice(&data[start as usize..start as usize + count]);
        out.fill(0);
        for i in 1..n {
            let at = (start + i as isize * step) as usize;
            let row = &data[at..at + count];
            for ((x, held), place) in row.iter().zip(best.iter_mut()).zip(out.iter_mut()) {
                let x = I::element(*x);
                let ahead = R::ahead(x, *held);
                *held = if ahead { x } else { *held };
                *place = if ahead { i as i64 } else { *place };
            }
        }
    }
}

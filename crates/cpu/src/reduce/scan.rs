//! Running sums and products along an axis: what the kernels of `cumsum` and `cumprod` share.
//!
//! Floats run in f64 and are rounded as they are stored. The output is filled with the input a piece at a time, where
//! it is not there already, and the piece is scanned while it is in cache. Where no axis is left for threads to share,
//! the scanned one is cut into segments that follow from the shape, whose totals are taken first: how many threads
//! there are changes no bit.

use bytemuck::cast_slice_mut;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In};
use tonnage_core::row::Call;
use tonnage_core::{Bytes, Element, bf16, f16};
use tonnage_ops::reduce::scan::{ScanAttrs, scan};

use crate::kernel::{Kernel, KernelDef};
use crate::number::with_sum;
use crate::parallel::{rows_at_once, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};
use tonnage_simd::level;
use tonnage_simd::vectorize::{self, Isa};

/// The kernel of [`CUMSUM`](tonnage_ops::reduce::cumsum::CUMSUM).
pub static CUMSUM: KernelDef = KernelDef {
    run: |k| kernel("cumsum", k, false),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`CUMPROD`](tonnage_ops::reduce::cumprod::CUMPROD).
pub static CUMPROD: KernelDef = KernelDef {
    run: |k| kernel("cumprod", k, true),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// Elements that a segment has at least.
const SEGMENT: usize = 32 * 1024;

/// Segments of columns, at most: each has a row of totals.
const MOST_SEGMENTS: usize = 8;

/// Columns that have totals, at most: 256 KiB of them.
const MOST_COLUMNS: usize = 4096;

/// Elements of a row that are brought and scanned at once.
const PIECE: usize = 2048;

/// Columns that are scanned side by side.
const WIDTH: usize = 2048;

/// Rows that are scanned side by side: an addition waits for the one before it, so that one row would leave a core idle
/// most of the time.
const TOGETHER: usize = 4;

/// Rows that are so short are brought many at a time and scanned one by one.
const SHORT: usize = 32;

/// An element with a wider number that it is added up and multiplied in.
pub(super) trait Running: Element {
    type Wide: Copy + bytemuck::Pod + Send + Sync;
    fn wide(self) -> Self::Wide;
    fn narrow(wide: Self::Wide) -> Self;
    fn unit(product: bool) -> Self::Wide;
    fn join(product: bool, a: Self::Wide, b: Self::Wide) -> Self::Wide;
}

macro_rules! running_floats {
    ($($T:ty, |$x:ident| $wide:expr, |$w:ident| $narrow:expr;)*) => {$(
        impl Running for $T {
            type Wide = f64;
            #[inline(always)]
            fn wide(self) -> f64 { let $x = self; $wide }
            #[inline(always)]
            fn narrow($w: f64) -> $T { $narrow }
            #[inline(always)]
            fn unit(product: bool) -> f64 { if product { 1.0 } else { 0.0 } }
            #[inline(always)]
            fn join(product: bool, a: f64, b: f64) -> f64 { if product { a * b } else { a + b } }
        }
    )*};
}

running_floats! {
    f64, |x| x, |w| w;
    f32, |x| f64::from(x), |w| w as f32;
    f16, |x| f64::from(x.to_f32()), |w| f16::from_f64(w);
    bf16, |x| f64::from(x.to_f32()), |w| bf16::from_f64(w);
}

macro_rules! running_integers {
    ($($T:ty),*) => {$(
        impl Running for $T {
            type Wide = u64;
            #[inline(always)]
            fn wide(self) -> u64 { self as u64 }
            #[inline(always)]
            fn narrow(wide: u64) -> $T { wide as $T }
            #[inline(always)]
            fn unit(product: bool) -> u64 { product as u64 }
            #[inline(always)]
            fn join(product: bool, a: u64, b: u64) -> u64 {
                if product { a.wrapping_mul(b) } else { a.wrapping_add(b) }
            }
        }
    )*};
}

running_integers!(u64, u32, u16, u8);

/// Totals of the segments.
pub(super) fn scratch(call: &Call, _: usize) -> Bytes {
    let Some(sizes) = call.inputs[0].shape.most() else { return Bytes::ZERO };
    let axis = scan(call).map_or(0, |scan| scan.axis);
    let (segments, _) = segments(&sizes, axis);
    let inner = product(sizes.get(axis + 1..).unwrap_or(&[]));
    Bytes::of(if segments > 1 { segments * inner * 8 } else { 0 })
}

/// Lengths that were not lent memory yet may be any.
fn product(sizes: &[usize]) -> usize {
    sizes.iter().fold(1, |n: usize, size| n.saturating_mul(*size))
}

/// How many segments the axis is cut into, and how long each is; 1 where threads share other axes.
fn segments(sizes: &[usize], axis: usize) -> (usize, usize) {
    let n = sizes.get(axis).copied().unwrap_or(0).max(1);
    let inner = product(sizes.get(axis + 1..).unwrap_or(&[]));
    let single = product(&sizes[..axis.min(sizes.len())]) == 1;
    let long = match inner {
        _ if !single || inner > MOST_COLUMNS => n,
        0 => n,
        1 => SEGMENT,
        _ => n.div_ceil(MOST_SEGMENTS).max(SEGMENT.div_ceil(inner)),
    };
    (n.div_ceil(long), long)
}

pub(super) fn kernel(op: &'static str, k: &mut Kernel, product: bool) -> Result<()> {
    let Attrs::Scan { axis, exclusive, reverse } = *k.attrs else { return Ok(()) };
    let how = ScanAttrs { axis, exclusive, reverse };
    with_sum!(op, k.outputs[0].dtype, T => run::<T>(k, how, product))
}

fn run<T: Running>(k: &mut Kernel, how: ScanAttrs, product: bool) -> Result<()> {
    let (sizes, out) = k.outputs[0].parts::<T>();
    if out.is_empty() {
        return Ok(());
    }
    let input = &k.inputs[0];
    let n = sizes[how.axis];
    let inner: usize = sizes[how.axis + 1..].iter().product();
    let job = ScanJob::<T> {
        input,
        how,
        product,
        inner,
        workers: k.workers,
        _of: std::marker::PhantomData,
    };
    let (count, long) = segments(sizes, how.axis);
    if count > 1 {
        let totals = &mut cast_slice_mut::<u8, T::Wide>(k.scratch)[..count * inner];
        return job.in_segments(out, long * inner, totals, k.workers);
    }
    let unit = T::unit(product);
    if inner > 1 {
        let at_once = rows_at_once(n * inner);
        return for_each_chunk(k.workers, out, n * inner * at_once, &|chunk, blocks| {
            for (i, block) in blocks.chunks_mut(n * inner).enumerate() {
                job.columns((chunk * at_once + i) * n * inner, block, |_, run| run.fill(unit));
            }
        });
    }
    // Side by side only where every thread has some: which rows are changes no bit.
    let many = out.len() / n >= 2 * TOGETHER * k.workers.threads();
    let at_once = rows_at_once(n).next_multiple_of(if many { TOGETHER } else { 1 });
    for_each_chunk(k.workers, out, n * at_once, &|chunk, rows| match n <= SHORT {
        true => job.short_rows(chunk * at_once * n, n, rows),
        false => job.rows(chunk * at_once * n, n, rows, |_| unit),
    })
}

struct ScanJob<'a, T> {
    input: &'a In<'a>,
    how: ScanAttrs,
    product: bool,
    inner: usize,
    workers: &'a dyn Workers,
    _of: std::marker::PhantomData<T>,
}

impl<T: Running> ScanJob<'_, T> {
    /// Segments of `long` elements: the totals of each, what comes before each, and then each from there on.
    fn in_segments(
        &self,
        out: &mut [T],
        long: usize,
        totals: &mut [T::Wide],
        workers: &dyn Workers,
    ) -> Result<()> {
        let (inner, product) = (self.inner, self.product);
        let there: &[T] = out;
        for_each_chunk(workers, totals, inner, &|i, totals| {
            totals.fill(T::unit(product));
            let end = there.len().min((i + 1) * long);
            let mut piece = [T::narrow(T::unit(product)); PIECE];
            let mut at = i * long;
            while at < end {
                // Pieces do not reach from one row into the next.
                let column = at % inner;
                let count =
                    PIECE.min(end - at).min(if inner == 1 { PIECE } else { inner - column });
                let piece = &mut piece[..count];
                match self.input.data {
                    Data::Slice(_) => self.bring(at, piece),
                    _ => piece.copy_from_slice(&there[at..at + count]),
                }
                let totals = &mut totals[column..];
                level().run(Totals { piece, totals, product, single: inner == 1 });
                at += count;
            }
        })?;
        let count = totals.len() / inner;
        for column in 0..inner {
            let mut before = T::unit(product);
            for i in 0..count {
                let i = if self.how.reverse { count - 1 - i } else { i };
                let total = &mut totals[i * inner + column];
                before = T::join(product, before, std::mem::replace(total, before));
            }
        }
        let totals: &[T::Wide] = totals;
        if inner == 1 {
            return for_each_chunk(workers, out, long * TOGETHER, &|chunk, part| {
                let first = chunk * TOGETHER;
                self.rows(first * long, long, part, |i| totals[first + i]);
            });
        }
        for_each_chunk(workers, out, long, &|i, part| {
            let totals = &totals[i * inner..(i + 1) * inner];
            self.columns(i * long, part, |column, running| {
                running.copy_from_slice(&totals[column..column + running.len()]);
            });
        })
    }

    /// Elements of the input from that number on, where they are not there already.
    fn bring(&self, first: usize, into: &mut [T]) {
        if let Data::Slice(_) = self.input.data {
            strided::copy(&self.input.layout, self.input.slice::<T>(), first, into);
        }
    }

    /// Whole rows of a few elements, some thousand elements at a time.
    fn short_rows(&self, first: usize, n: usize, rows: &mut [T]) {
        let at_once = PIECE / n * n;
        for (i, piece) in rows.chunks_mut(at_once).enumerate() {
            self.bring(first + i * at_once, piece);
            let ScanJob { product, how, .. } = *self;
            level().run(Short { rows: piece, n, how, product });
        }
    }

    /// Rows of `n` elements one after the other, the last of which may be shorter; each starts from what `before` says.
    fn rows(&self, first: usize, n: usize, rows: &mut [T], before: impl Fn(usize) -> T::Wide) {
        for (group, some) in rows.chunks_mut(n * TOGETHER).enumerate() {
            let (number, first) = (group * TOGETHER, first + group * n * TOGETHER);
            if some.len() < n * TOGETHER {
                for (i, row) in some.chunks_mut(n).enumerate() {
                    self.pieces(first + i * n, n, [row], [before(number + i)]);
                }
                continue;
            }
            let (low, high) = some.split_at_mut(2 * n);
            let ((a, b), (c, d)) = (low.split_at_mut(n), high.split_at_mut(n));
            let running = std::array::from_fn(|i| before(number + i));
            self.pieces(first, n, [a, b, c, d], running);
        }
    }

    /// Rows of one length, brought and scanned a piece at a time.
    fn pieces<const R: usize>(
        &self,
        first: usize,
        n: usize,
        mut rows: [&mut [T]; R],
        mut running: [T::Wide; R],
    ) {
        let len = rows[0].len();
        for piece in strides(self.workers, 0..len.div_ceil(PIECE), R * PIECE).flatten() {
            let done = piece * PIECE;
            let count = PIECE.min(len - done);
            let from = if self.how.reverse { len - done - count } else { done };
            let mut pieces = rows.each_mut().map(|row| &mut row[from..from + count]);
            for (i, piece) in pieces.iter_mut().enumerate() {
                self.bring(first + i * n + from, piece);
            }
            match self.product {
                true => self.side_by_side(true, pieces, &mut running),
                false => self.side_by_side(false, pieces, &mut running),
            }
        }
    }

    #[inline(always)]
    fn side_by_side<const R: usize>(
        &self,
        product: bool,
        mut rows: [&mut [T]; R],
        running: &mut [T::Wide; R],
    ) {
        let len = rows[0].len();
        for i in 0..len {
            let i = if self.how.reverse { len - 1 - i } else { i };
            for (row, running) in rows.iter_mut().zip(&mut *running) {
                let next = T::join(product, *running, row[i].wide());
                row[i] = T::narrow(if self.how.exclusive { *running } else { next });
                *running = next;
            }
        }
    }

    /// Columns side by side, a row after the other; `before` fills in what those from a column on start from.
    fn columns(&self, first: usize, block: &mut [T], before: impl Fn(usize, &mut [T::Wide])) {
        let mut running = [T::unit(self.product); WIDTH];
        let rows = block.len() / self.inner;
        for column in (0..self.inner).step_by(WIDTH) {
            let running = &mut running[..WIDTH.min(self.inner - column)];
            before(column, running);
            for i in strides(self.workers, 0..rows, running.len()).flatten() {
                let i = if self.how.reverse { rows - 1 - i } else { i };
                let at = i * self.inner + column;
                let row = &mut block[at..at + running.len()];
                self.bring(first + at, row);
                let ScanJob { product, how: ScanAttrs { exclusive, .. }, .. } = *self;
                level().run(Across { row, running, product, exclusive });
            }
        }
    }
}

/// One row of columns that are scanned.
struct Across<'a, T: Running> {
    row: &'a mut [T],
    running: &'a mut [T::Wide],
    product: bool,
    exclusive: bool,
}

impl<T: Running> vectorize::SimdKernel for Across<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Across { row, running, product, exclusive } = self;
        for (x, running) in row.iter_mut().zip(running) {
            let next = T::join(product, *running, I::element(*x).wide());
            *x = T::narrow(if exclusive { *running } else { next });
            *running = next;
        }
    }
}

/// Rows of a few elements, each scanned from its start.
struct Short<'a, T: Running> {
    rows: &'a mut [T],
    n: usize,
    how: ScanAttrs,
    product: bool,
}

impl<T: Running> vectorize::SimdKernel for Short<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        // Sums of a length that is known, for the dtypes that are summed often: each is a loop of its own to compile.
        if const { size_of::<T>() >= 4 } && !self.product {
            match self.n {
                2 => return self.sums::<2>(),
                3 => return self.sums::<3>(),
                4 => return self.sums::<4>(),
                8 => return self.sums::<8>(),
                _ => {}
            }
        }
        let Short { rows, n, how, product } = self;
        rows.chunks_exact_mut(n).for_each(|row| through(row, how, product));
    }
}

impl<T: Running> Short<'_, T> {
    #[inline(always)]
    fn sums<const N: usize>(self) {
        for row in self.rows.as_chunks_mut::<N>().0 {
            match self.how.reverse {
                true => through(row, ScanAttrs { reverse: true, ..self.how }, false),
                false => through(row, ScanAttrs { reverse: false, ..self.how }, false),
            }
        }
    }
}

/// One row from its start.
#[inline(always)]
fn through<T: Running>(row: &mut [T], how: ScanAttrs, product: bool) {
    let (len, mut running) = (row.len(), T::unit(product));
    for i in 0..len {
        let x = &mut row[if how.reverse { len - 1 - i } else { i }];
        let next = T::join(product, running, x.wide());
        *x = T::narrow(if how.exclusive { running } else { next });
        running = next;
    }
}

/// Adds a piece to the totals of its columns, or to the one of a `single` column.
struct Totals<'a, T: Running> {
    piece: &'a [T],
    totals: &'a mut [T::Wide],
    product: bool,
    single: bool,
}

impl<T: Running> vectorize::SimdKernel for Totals<'_, T> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        let Totals { piece, totals, product, single } = self;
        if !single {
            for (total, x) in totals.iter_mut().zip(piece) {
                *total = T::join(product, *total, I::element(*x).wide());
            }
            return;
        }
        // Many at once, for the same reason as rows.
        let mut lanes = [T::unit(product); 32];
        let (most, rest) = piece.as_chunks::<32>();
        for x in most {
            for (lane, x) in lanes.iter_mut().zip(x) {
                *lane = T::join(product, *lane, I::element(*x).wide());
            }
        }
        let lanes = lanes.into_iter().chain(rest.iter().map(|x| x.wide()));
        totals[0] = lanes.fold(totals[0], |total, x| T::join(product, total, x));
    }
}

//! Running sums and products along an axis: what `cumsum` and `cumprod` share.
//!
//! Floats run in f64 and are rounded as they are stored; integers wrap around. The output is filled with the
//! input a piece at a time, where it is not there already, and the piece is scanned while it is in cache. A
//! single long row is cut into segments of a fixed length, whose totals are taken first: threads share them, and
//! how many there are changes no bit.

use bytemuck::cast_slice_mut;
use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::kernel::{Data, In, Kernel};
use tonnage_core::row::{AxisMap, AxisOf, Call, Sample, Types};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Bytes, DType, Element, TensorType, bf16, f16};

use crate::number::with_number;
use crate::parallel::rows_at_once;
use crate::{rules, strided};

/// Elements of a single row that are scanned by one thread.
const SEGMENT: usize = 32 * 1024;
/// Elements that are brought and scanned at once.
const PIECE: usize = 2048;
/// Columns that are scanned side by side.
const WIDTH: usize = 256;

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
running_integers!(i64, i32, i16, i8, u64, u32, u16, u8);

/// What the attributes say.
#[derive(Clone, Copy)]
pub(super) struct Scan {
    pub axis: usize,
    pub exclusive: bool,
    pub reverse: bool,
}

pub(super) fn scan(call: &Call) -> Result<Scan> {
    match *call.attrs {
        Attrs::Scan { axis, exclusive, reverse } => {
            let axis = call.inputs[0].shape.axis(call.op, rules::infer::from_front(axis))?;
            Ok(Scan { axis, exclusive, reverse })
        }
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// One number in, the same type out.
pub(super) fn infer(call: &Call) -> Result<Types> {
    let made = rules::infer::unary_number(call)?;
    scan(call)?;
    Ok(made)
}

/// All axes but the scanned one run along.
pub(super) fn axes(call: &Call) -> AxisMap {
    let Ok(Scan { axis, .. }) = scan(call) else { return AxisMap::default() };
    let along = |i| match i == axis {
        true => AxisOf::Mixed,
        false => AxisOf::Along(smallvec![(0, i)]),
    };
    let outputs = vec![(0..call.inputs[0].shape.rank()).map(along).collect()];
    AxisMap { outputs, summed: Vec::new() }
}

/// Totals of the segments of a single long row.
pub(super) fn scratch(call: &Call, _: usize) -> Bytes {
    let segments = call.inputs[0].shape.most().map_or(0, |sizes| {
        let axis = scan(call).map_or(0, |scan| scan.axis);
        segments(&sizes, axis)
    });
    Bytes::of(if segments > 1 { segments * 8 } else { 0 })
}

/// How many segments a single row is cut into; 1 where there are other rows to share.
fn segments(sizes: &[usize], axis: usize) -> usize {
    let n = sizes.get(axis).copied().unwrap_or(0);
    match sizes.iter().product::<usize>() == n {
        true => n.div_ceil(SEGMENT).max(1),
        false => 1,
    }
}

pub(super) fn kernel(op: &'static str, k: &mut Kernel, product: bool) -> Result<()> {
    let Attrs::Scan { axis, exclusive, reverse } = *k.attrs else { return Ok(()) };
    let how = Scan { axis, exclusive, reverse };
    with_number!(op, k.outputs[0].dtype, T => run::<T>(k, how, product));
    Ok(())
}

fn run<T: Running>(k: &mut Kernel, how: Scan, product: bool) {
    let sizes = k.outputs[0].sizes.clone();
    let out = k.outputs[0].slice::<T>();
    if out.is_empty() {
        return;
    }
    let input = &k.inputs[0];
    let n = sizes[how.axis];
    let inner: usize = sizes[how.axis + 1..].iter().product();
    let job = Job::<T> { input, how, product, n, inner, _of: std::marker::PhantomData };
    let segments = segments(&sizes, how.axis);
    if segments == 1 {
        let at_once = rows_at_once(n * inner);
        for_each_chunk(k.workers, out, n * inner * at_once, &|chunk, blocks| {
            for (i, block) in blocks.chunks_mut(n * inner).enumerate() {
                let first = (chunk * at_once + i) * n * inner;
                match inner {
                    1 => {
                        job.row(first, block, T::unit(product));
                    }
                    _ => job.columns(first, block),
                }
            }
        });
        return;
    }
    let totals = &mut cast_slice_mut::<u8, T::Wide>(k.scratch)[..segments];
    // The input comes first, so that totals and scan read it from one place.
    for_each_chunk(k.workers, out, SEGMENT, &|i, part| job.bring(i * SEGMENT, part));
    let whole: &[T] = out;
    for_each_chunk(k.workers, totals, 1, &|i, total| {
        let part = &whole[i * SEGMENT..whole.len().min((i + 1) * SEGMENT)];
        total[0] = part.iter().fold(T::unit(product), |a, x| T::join(product, a, x.wide()));
    });
    let mut before = T::unit(product);
    let count = totals.len();
    for i in 0..count {
        let at = if how.reverse { count - 1 - i } else { i };
        let total = totals[at];
        totals[at] = before;
        before = T::join(product, before, total);
    }
    let totals: &[T::Wide] = totals;
    for_each_chunk(k.workers, out, SEGMENT, &|i, part| {
        job.scanned(part, totals[i]);
    });
}

struct Job<'a, T> {
    input: &'a In<'a>,
    how: Scan,
    product: bool,
    n: usize,
    inner: usize,
    _of: std::marker::PhantomData<T>,
}

impl<T: Running> Job<'_, T> {
    /// Elements of the input from that number on, where they are not there already.
    fn bring(&self, first: usize, into: &mut [T]) {
        if let Data::Slice(_) = self.input.data {
            strided::copy(&self.input.layout, self.input.slice::<T>(), first, into);
        }
    }

    /// One row, brought and scanned a piece at a time; what has run up at its end.
    fn row(&self, first: usize, row: &mut [T], mut before: T::Wide) -> T::Wide {
        let len = row.len();
        let mut done = 0;
        while done < len {
            let count = PIECE.min(len - done);
            let from = if self.how.reverse { len - done - count } else { done };
            let piece = &mut row[from..from + count];
            self.bring(first + from, piece);
            before = self.scanned(piece, before);
            done += count;
        }
        before
    }

    fn scanned(&self, piece: &mut [T], before: T::Wide) -> T::Wide {
        match (self.product, self.how.reverse) {
            (false, false) => self.run_through(false, piece.iter_mut(), before),
            (false, true) => self.run_through(false, piece.iter_mut().rev(), before),
            (true, false) => self.run_through(true, piece.iter_mut(), before),
            (true, true) => self.run_through(true, piece.iter_mut().rev(), before),
        }
    }

    #[inline(always)]
    fn run_through<'p>(
        &self,
        product: bool,
        piece: impl Iterator<Item = &'p mut T>,
        before: T::Wide,
    ) -> T::Wide {
        let mut running = before;
        for x in piece {
            let next = T::join(product, running, x.wide());
            *x = T::narrow(if self.how.exclusive { running } else { next });
            running = next;
        }
        running
    }

    /// Columns side by side, a row after the other.
    fn columns(&self, first: usize, block: &mut [T]) {
        let mut running = [T::unit(self.product); WIDTH];
        let mut column = 0;
        while column < self.inner {
            let count = WIDTH.min(self.inner - column);
            running[..count].fill(T::unit(self.product));
            for i in 0..self.n {
                let i = if self.how.reverse { self.n - 1 - i } else { i };
                let at = i * self.inner + column;
                let row = &mut block[at..at + count];
                self.bring(first + at, row);
                match self.product {
                    true => self.across(true, row, &mut running),
                    false => self.across(false, row, &mut running),
                }
            }
            column += count;
        }
    }

    #[inline(always)]
    fn across(&self, product: bool, row: &mut [T], running: &mut [T::Wide; WIDTH]) {
        for (x, running) in row.iter_mut().zip(running) {
            let next = T::join(product, *running, x.wide());
            *x = T::narrow(if self.how.exclusive { *running } else { next });
            *running = next;
        }
    }
}

pub(super) fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axis, exclusive, reverse| {
        let attrs = Attrs::Scan { axis, exclusive, reverse };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|d| of(d, &[2, 5], 1, false, false)).collect();
    for (exclusive, reverse) in [(false, true), (true, false), (true, true)] {
        all.push(of(DType::F32, &[7], 0, exclusive, reverse));
        all.push(of(DType::F32, &[3, 4, 5], 1, exclusive, reverse));
        all.push(of(DType::F32, &[2, 2050], 1, exclusive, reverse));
    }
    all.extend([
        of(DType::F32, &[1], 0, false, false),
        of(DType::F32, &[0], 0, true, false),
        of(DType::F32, &[3, 0], 0, false, false),
        of(DType::F32, &[5, 300], 0, false, false),
        of(DType::F64, &[70_000], 0, false, true),
    ]);
    all
}

//! Rows transformed the way that their length asks for, in lent scratch.

use tonnage_core::{DType, Result};

use super::lanes::{LANES, LaneSource, LaneTarget, ReIm, ReImMut, Twiddles, reborrow, transform};
use super::method::FftMethod;
use super::tables::{Tables, angles, table_bytes, two, two_bytes};
use super::transpose::{SQUARE, ToLanes, ToRows, Transpose};
use crate::linalg::field::Field;
use crate::parallel::{ChunkedPair, GRAIN, for_each_item, for_each_pair};
use crate::workers::Workers;
use tonnage_simd::{Isa, SimdKernel, level};

/// What all rows of a call share.
pub struct FftPlan<'a, T> {
    pub method: FftMethod,
    factor: T,
    tables: Tables<'a, T>,
    chirp: Option<Chirp<'a, T>>,
}

struct Chirp<'a, T> {
    /// e^(-i pi j^2 / n).
    phases: ReIm<'a, T>,
    /// The transform of what the row is convolved with, over its length.
    filter: ReIm<'a, T>,
}

/// Bytes of what all rows share.
pub fn plan_bytes(n: usize, dtype: DType) -> usize {
    let method = FftMethod::of(n);
    let chirp = two_bytes(method.n, dtype) + two_bytes(method.len, dtype);
    table_bytes(method, dtype) + if method.is_convolution() { chirp } else { 0 }
}

/// Bytes that a group of rows is worked on in.
pub fn room_bytes(n: usize, dtype: DType) -> usize {
    let method = FftMethod::of(n);
    let matrices = 1 + usize::from(method.is_shared());
    let matrix = if method.is_matrix() { matrices * two_bytes(matrix(method), dtype) } else { 0 };
    let rows =
        if method.is_convolution() { 2 * two_bytes(method.group() * method.len, dtype) } else { 0 };
    matrix + rows
}

/// Bytes that a thread works in.
pub fn slot_bytes(n: usize, dtype: DType) -> usize {
    2 * two_bytes(FftMethod::of(n).lanes(), dtype)
}

/// Elements of a matrix, with those that make squares of it.
fn matrix(method: FftMethod) -> usize {
    method.blocks() * LANES * method.height()
}

/// What a group of rows is worked on in: room of its own and slots for the threads.
pub struct FftWorkspace<'a> {
    pub room: &'a mut [u8],
    pub slots: &'a mut [u8],
    pub workers: &'a dyn Workers,
}

impl FftWorkspace<'_> {
    fn reborrow(&mut self) -> FftWorkspace<'_> {
        FftWorkspace { room: self.room, slots: self.slots, workers: self.workers }
    }
}

impl<'a, T: Field> FftPlan<'a, T> {
    /// Made at the front of scratch, which is cut off. All that is transformed is times a factor. The rest of scratch, with room
    /// for a group of rows, is worked in.
    pub fn of(
        n: usize,
        factor: T,
        scratch: &mut &'a mut [u8],
        workers: &dyn Workers,
    ) -> Result<FftPlan<'a, T>> {
        let method = FftMethod::of(n);
        if !method.is_convolution() {
            let tables = Tables::of(method, factor, scratch, workers)?;
            return Ok(FftPlan { method, factor, tables, chirp: None });
        }
        let tables = Tables::of(method, T::ONE, scratch, workers)?;
        let (phases, filter) = (two::<T>(scratch, n), two::<T>(scratch, method.len));
        let ([cos, sin], [re, im]) = (phases, filter);
        // Squares are taken modulo a full circle, as integers: the angles stay small.
        let whole = 2 * n as u128;
        let square = |i: usize| ((i as u128 * i as u128) % whole) as f64;
        angles([&mut *cos, &mut *sin], workers, &|i| square(i) / whole as f64)?;
        let plan = FftPlan { method, factor: T::ONE, tables, chirp: None };
        let (room, slots) = scratch.split_at_mut(room_bytes(n, T::DTYPE));
        let (mut row, room) = room.split_at_mut(two_bytes(method.len, T::DTYPE));
        let [from_re, from_im] = two::<T>(&mut row, method.len);
        from_re.fill(T::ZERO);
        from_im.fill(T::ZERO);
        // Conjugate, and over the length here, once.
        let share = factor * T::of(1.0 / method.len as f64);
        for i in 0..n {
            for at in [i, (method.len - i) % method.len] {
                (from_re[at], from_im[at]) = (cos[i] * share, -(sin[i] * share));
            }
        }
        let from = [&*from_re, &*from_im];
        plan.passes(from, [&mut *re, &mut *im], FftWorkspace { room, slots, workers })?;
        Ok(FftPlan { chirp: Some(Chirp { phases: [cos, sin], filter: [re, im] }), ..plan })
    }

    /// Transforms a group of rows, or fewer.
    ///
    /// # Errors
    /// None of its own.
    pub fn run(&self, from: ReIm<T>, to: ReImMut<T>, mut room: FftWorkspace) -> Result<()> {
        let Some(Chirp { phases, filter }) = &self.chirp else {
            return self.passes(from, to, room);
        };
        let (n, len) = (self.method.n, self.method.len);
        let count = from[0].len() / n;
        let size = 2 * two_bytes(self.method.group() * len, T::DTYPE);
        let (mut rows, rest) = std::mem::take(&mut room.room).split_at_mut(size);
        room.room = rest;
        let [re, im] = two::<T>(&mut rows, self.method.group() * len);
        let [made_re, made_im] = two::<T>(&mut rows, self.method.group() * len);
        let (re, im) = (&mut re[..count * len], &mut im[..count * len]);
        let (made_re, made_im) = (&mut made_re[..count * len], &mut made_im[..count * len]);
        for k in 0..count {
            let (re, im) = (&mut re[k * len..][..len], &mut im[k * len..][..len]);
            let from = from.map(|part| &part[k * n..][..n]);
            multiply(from, *phases, [&mut re[..n], &mut im[..n]]);
            re[n..].fill(T::ZERO);
            im[n..].fill(T::ZERO);
        }
        self.passes([&*re, &*im], [&mut *made_re, &mut *made_im], room.reborrow())?;
        for k in 0..count {
            let from = [&made_re[k * len..][..len], &made_im[k * len..][..len]];
            multiply(from, *filter, [&mut re[k * len..][..len], &mut im[k * len..][..len]]);
        }
        // The inverse transform: the forward one with real and imaginary parts exchanged.
        self.passes([&*im, &*re], [&mut *made_im, &mut *made_re], room)?;
        let [to_re, to_im] = to;
        for k in 0..count {
            let from = [&made_re[k * len..][..n], &made_im[k * len..][..n]];
            multiply(from, *phases, [&mut to_re[k * n..][..n], &mut to_im[k * n..][..n]]);
        }
        Ok(())
    }

    /// The same for rows of `len` elements, by passes alone.
    fn passes(&self, from: ReIm<T>, mut to: ReImMut<T>, room: FftWorkspace) -> Result<()> {
        if self.method.is_shared() {
            return self.shared(from, to, room);
        }
        let mut slot = room.slots;
        let (near, far) =
            (two::<T>(&mut slot, self.method.lanes()), two::<T>(&mut slot, self.method.lanes()));
        if !self.method.is_matrix() {
            self.side_by_side(from, to, near, far);
            return Ok(());
        }
        let (mut near, mut far, mut room) = (near, far, room.room);
        let [re, im] = two::<T>(&mut room, matrix(self.method));
        let size = LANES * self.method.height();
        for (block, (re, im)) in
            re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)).enumerate()
        {
            self.columns(block, from, [re, im], reborrow(&mut near), reborrow(&mut far));
        }
        for first in (0..self.method.rows).step_by(LANES) {
            self.transpose_blocks(first, [&*re, &*im], reborrow(&mut near));
            let wide = first + LANES <= self.method.rows;
            let [to_re, to_im] = reborrow(&mut to);
            let parts = [&mut to_re[first..], &mut to_im[first..]];
            let there = wide.then_some(LaneTarget { parts, stride: self.method.rows });
            let made = transform(
                None,
                there,
                self.tables.cols,
                None,
                reborrow(&mut near),
                reborrow(&mut far),
            );
            if !wide {
                for (to, made) in reborrow(&mut to).into_iter().zip(made) {
                    let rows = to.chunks_exact_mut(self.method.rows).zip(made.chunks_exact(LANES));
                    rows.for_each(|(to, made)| {
                        let to = &mut to[first..];
                        to.copy_from_slice(&made[..to.len()]);
                    });
                }
            }
        }
        Ok(())
    }

    /// Short rows.
    fn side_by_side(&self, from: ReIm<T>, to: ReImMut<T>, near: ReImMut<T>, far: ReImMut<T>) {
        let n = self.method.len;
        let [re, im] = near;
        let near = [&mut re[..n * LANES], &mut im[..n * LANES]];
        let mut near = near;
        for (from, to) in from.into_iter().zip(reborrow(&mut near)) {
            level().run(ToLanes { from, n, to });
        }
        let made = transform(None, None, self.tables.rows, None, near, far);
        for (from, to) in made.into_iter().zip(to) {
            level().run(ToRows { from: &from[..n * LANES], n, factor: self.factor, to });
        }
    }

    /// A block of a matrix' columns, transformed, and multiplied by the twiddle factors between both transforms.
    fn columns(
        &self,
        block: usize,
        from: ReIm<T>,
        to: ReImMut<T>,
        near: ReImMut<T>,
        far: ReImMut<T>,
    ) {
        let (cols, first) = (self.method.cols, block * LANES);
        let to = Some(LaneTarget { parts: to, stride: LANES });
        let rows = self.tables.blocks.map(|part| &part[block * self.method.height()..]);
        let twiddles = Some(Twiddles { own: self.tables.own, rows });
        if first + LANES <= cols {
            let from = LaneSource { parts: from.map(|part| &part[first..]), stride: cols };
            transform(Some(from), to, self.tables.rows, twiddles, near, far);
            return;
        }
        let mut near = near;
        for (near, from) in reborrow(&mut near).into_iter().zip(from) {
            for (near, from) in near.chunks_exact_mut(LANES).zip(from.chunks_exact(cols)) {
                let from = &from[first..];
                near[..from.len()].copy_from_slice(from);
                near[from.len()..].fill(T::ZERO);
            }
        }
        transform(None, to, self.tables.rows, twiddles, near, far);
    }

    /// As many rows of a matrix as lanes, from those of its blocks.
    fn transpose_blocks(&self, first: usize, from: ReIm<T>, near: ReImMut<T>) {
        let height = self.method.height();
        for (from, near) in from.into_iter().zip(near) {
            for (block, to) in near.chunks_exact_mut(SQUARE).enumerate().take(self.method.blocks())
            {
                let from = &from[(block * height + first) * LANES..][..SQUARE];
                level().run(Transpose { from, to });
            }
        }
    }

    /// One row by all threads: what they write must lie apart, so that blocks of the result are put in their places at
    /// last.
    fn shared(&self, from: ReIm<T>, to: ReImMut<T>, room: FftWorkspace) -> Result<()> {
        let (method, mut rest, slot) =
            (self.method, room.room, slot_bytes(self.method.n, T::DTYPE));
        let (mut whole, mut made) =
            (two::<T>(&mut rest, matrix(method)), two::<T>(&mut rest, matrix(method)));
        let size = LANES * method.height();
        let [re, im] = reborrow(&mut whole);
        let blocks = re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)).enumerate();
        for_each_item(room.workers, blocks, room.slots, slot, &|(block, (re, im)), mut slot| {
            let near = two::<T>(&mut slot, method.lanes());
            let far = two::<T>(&mut slot, method.lanes());
            self.columns(block, from, [re, im], near, far);
            Ok(())
        })?;
        let whole = whole.map(|part| &*part);
        let size = LANES * method.cols;
        let [re, im] = reborrow(&mut made);
        let blocks = re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size));
        let blocks = blocks.take(method.height() / LANES).enumerate();
        for_each_item(room.workers, blocks, room.slots, slot, &|(block, (re, im)), mut slot| {
            let mut near = two::<T>(&mut slot, method.lanes());
            let far = two::<T>(&mut slot, method.lanes());
            self.transpose_blocks(block * LANES, whole, reborrow(&mut near));
            let to = Some(LaneTarget { parts: [re, im], stride: LANES });
            transform(None, to, self.tables.cols, None, near, far);
            Ok(())
        })?;
        let made = made.map(|part| &*part);
        let ([a, b], rows) = (to, GRAIN.div_ceil(method.rows));
        let pair = ChunkedPair { a, chunk_a: rows * method.rows, b, chunk_b: rows * method.rows };
        for_each_pair(room.workers, pair, &|chunk, re, im| {
            for (to, from) in [re, im].into_iter().zip(made) {
                for (row, to) in to.chunks_exact_mut(method.rows).enumerate() {
                    let at = (chunk * rows + row) * LANES;
                    for (block, to) in to.chunks_mut(LANES).enumerate() {
                        to.copy_from_slice(&from[block * size + at..][..to.len()]);
                    }
                }
            }
        })?;
        Ok(())
    }
}

/// Elements times those of another row.
fn multiply<T: Field>(from: ReIm<T>, by: ReIm<T>, to: ReImMut<T>) {
    level().run(Multiply { from, by, to });
}

struct Multiply<'a, T> {
    from: ReIm<'a, T>,
    by: ReIm<'a, T>,
    to: ReImMut<'a, T>,
}

impl<T: Field> SimdKernel for Multiply<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([re, im], [cos, sin], [to_re, to_im]) = (self.from, self.by, self.to);
        let from = re.iter().zip(im).zip(cos.iter().zip(sin));
        for (((x, y), (cos, sin)), (re, im)) in from.zip(to_re.iter_mut().zip(to_im)) {
            *re = x.fma::<I>(*cos, -(*y * *sin));
            *im = x.fma::<I>(*sin, *y * *cos);
        }
    }
}

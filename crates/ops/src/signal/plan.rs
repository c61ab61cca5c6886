//! Rows transformed the way that their length asks for, in lent scratch.

use tonnage_core::{DType, Result, Workers};

use super::lanes::{From, LANES, Parts, PartsMut, To, Turn, again, transform};
use super::tables::{Tables, angles, table_bytes, two, two_bytes};
use super::turn::{SQUARE, ToLanes, ToRows, Transpose};
use super::way::Way;
use crate::linalg::field::Field;
use crate::parallel::{ChunkedPair, GRAIN, for_each_item, for_each_pair};
use crate::simd::{Isa, SimdKernel as Kernel, level};

/// What all rows of a call share.
pub struct Plan<'a, T> {
    pub way: Way,
    factor: T,
    tables: Tables<'a, T>,
    chirp: Option<Chirp<'a, T>>,
}

struct Chirp<'a, T> {
    /// e^(-i pi j^2 / n).
    turns: Parts<'a, T>,
    /// The transform of what the row is convolved with, over its length.
    filter: Parts<'a, T>,
}

/// Bytes of what all rows share.
pub fn plan_bytes(n: usize, dtype: DType) -> usize {
    let way = Way::of(n);
    let chirp = two_bytes(way.n, dtype) + two_bytes(way.len, dtype);
    table_bytes(way, dtype) + if way.is_convolution() { chirp } else { 0 }
}

/// Bytes that a group of rows is worked on in.
pub fn room_bytes(n: usize, dtype: DType) -> usize {
    let way = Way::of(n);
    let matrices = 1 + usize::from(way.is_shared());
    let matrix = if way.is_matrix() { matrices * two_bytes(matrix(way), dtype) } else { 0 };
    let rows = if way.is_convolution() { 2 * two_bytes(way.group() * way.len, dtype) } else { 0 };
    matrix + rows
}

/// Bytes that a thread works in.
pub fn slot_bytes(n: usize, dtype: DType) -> usize {
    2 * two_bytes(Way::of(n).lanes(), dtype)
}

/// Elements of a matrix, with those that make squares of it.
fn matrix(way: Way) -> usize {
    way.blocks() * LANES * way.height()
}

/// What a group of rows is worked on in: room of its own and slots for the threads.
pub struct Room<'a> {
    pub room: &'a mut [u8],
    pub slots: &'a mut [u8],
    pub workers: &'a dyn Workers,
}

impl Room<'_> {
    fn again(&mut self) -> Room<'_> {
        Room { room: self.room, slots: self.slots, workers: self.workers }
    }
}

impl<'a, T: Field> Plan<'a, T> {
    /// Made at the front of scratch, which is cut off. All that is transformed is times a factor. The rest of scratch, with room
    /// for a group of rows, is worked in.
    pub fn of(
        n: usize,
        factor: T,
        scratch: &mut &'a mut [u8],
        workers: &dyn Workers,
    ) -> Result<Plan<'a, T>> {
        let way = Way::of(n);
        if !way.is_convolution() {
            let tables = Tables::of(way, factor, scratch, workers)?;
            return Ok(Plan { way, factor, tables, chirp: None });
        }
        let tables = Tables::of(way, T::ONE, scratch, workers)?;
        let (turns, filter) = (two::<T>(scratch, n), two::<T>(scratch, way.len));
        let ([cos, sin], [re, im]) = (turns, filter);
        // Squares are taken modulo a whole turn, as integers: the angles stay small.
        let whole = 2 * n as u128;
        let square = |i: usize| ((i as u128 * i as u128) % whole) as f64;
        angles([&mut *cos, &mut *sin], workers, &|i| square(i) / whole as f64)?;
        let plan = Plan { way, factor: T::ONE, tables, chirp: None };
        let (room, slots) = scratch.split_at_mut(room_bytes(n, T::DTYPE));
        let (mut row, room) = room.split_at_mut(two_bytes(way.len, T::DTYPE));
        let [from_re, from_im] = two::<T>(&mut row, way.len);
        from_re.fill(T::ZERO);
        from_im.fill(T::ZERO);
        // Conjugate, and over the length here, once.
        let share = factor * T::of(1.0 / way.len as f64);
        for i in 0..n {
            for at in [i, (way.len - i) % way.len] {
                (from_re[at], from_im[at]) = (cos[i] * share, -(sin[i] * share));
            }
        }
        let from = [&*from_re, &*from_im];
        plan.passes(from, [&mut *re, &mut *im], Room { room, slots, workers })?;
        Ok(Plan { chirp: Some(Chirp { turns: [cos, sin], filter: [re, im] }), ..plan })
    }

    /// Transforms a group of rows, or fewer.
    ///
    /// # Errors
    /// None of its own.
    pub fn run(&self, from: Parts<T>, to: PartsMut<T>, mut room: Room) -> Result<()> {
        let Some(Chirp { turns, filter }) = &self.chirp else {
            return self.passes(from, to, room);
        };
        let (n, len) = (self.way.n, self.way.len);
        let count = from[0].len() / n;
        let size = 2 * two_bytes(self.way.group() * len, T::DTYPE);
        let (mut rows, rest) = std::mem::take(&mut room.room).split_at_mut(size);
        room.room = rest;
        let [re, im] = two::<T>(&mut rows, self.way.group() * len);
        let [made_re, made_im] = two::<T>(&mut rows, self.way.group() * len);
        let (re, im) = (&mut re[..count * len], &mut im[..count * len]);
        let (made_re, made_im) = (&mut made_re[..count * len], &mut made_im[..count * len]);
        for k in 0..count {
            let (re, im) = (&mut re[k * len..][..len], &mut im[k * len..][..len]);
            let from = from.map(|part| &part[k * n..][..n]);
            multiply(from, *turns, [&mut re[..n], &mut im[..n]]);
            re[n..].fill(T::ZERO);
            im[n..].fill(T::ZERO);
        }
        self.passes([&*re, &*im], [&mut *made_re, &mut *made_im], room.again())?;
        for k in 0..count {
            let from = [&made_re[k * len..][..len], &made_im[k * len..][..len]];
            multiply(from, *filter, [&mut re[k * len..][..len], &mut im[k * len..][..len]]);
        }
        // Back: with both parts exchanged the same way is the other way.
        self.passes([&*im, &*re], [&mut *made_im, &mut *made_re], room)?;
        let [to_re, to_im] = to;
        for k in 0..count {
            let from = [&made_re[k * len..][..n], &made_im[k * len..][..n]];
            multiply(from, *turns, [&mut to_re[k * n..][..n], &mut to_im[k * n..][..n]]);
        }
        Ok(())
    }

    /// The same for rows of `len` elements, by passes alone.
    fn passes(&self, from: Parts<T>, mut to: PartsMut<T>, room: Room) -> Result<()> {
        if self.way.is_shared() {
            return self.shared(from, to, room);
        }
        let mut slot = room.slots;
        let (near, far) =
            (two::<T>(&mut slot, self.way.lanes()), two::<T>(&mut slot, self.way.lanes()));
        if !self.way.is_matrix() {
            self.side_by_side(from, to, near, far);
            return Ok(());
        }
        let (mut near, mut far, mut room) = (near, far, room.room);
        let [re, im] = two::<T>(&mut room, matrix(self.way));
        let size = LANES * self.way.height();
        for (block, (re, im)) in
            re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)).enumerate()
        {
            self.columns(block, from, [re, im], again(&mut near), again(&mut far));
        }
        for first in (0..self.way.rows).step_by(LANES) {
            self.squares(first, [&*re, &*im], again(&mut near));
            let wide = first + LANES <= self.way.rows;
            let [to_re, to_im] = again(&mut to);
            let parts = [&mut to_re[first..], &mut to_im[first..]];
            let there = wide.then_some(To { parts, stride: self.way.rows });
            let made =
                transform(None, there, self.tables.cols, None, again(&mut near), again(&mut far));
            if !wide {
                for (to, made) in again(&mut to).into_iter().zip(made) {
                    let rows = to.chunks_exact_mut(self.way.rows).zip(made.chunks_exact(LANES));
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
    fn side_by_side(&self, from: Parts<T>, to: PartsMut<T>, near: PartsMut<T>, far: PartsMut<T>) {
        let n = self.way.len;
        let [re, im] = near;
        let near = [&mut re[..n * LANES], &mut im[..n * LANES]];
        let mut near = near;
        for (from, to) in from.into_iter().zip(again(&mut near)) {
            level().run(ToLanes { from, n, to });
        }
        let made = transform(None, None, self.tables.rows, None, near, far);
        for (from, to) in made.into_iter().zip(to) {
            level().run(ToRows { from: &from[..n * LANES], n, factor: self.factor, to });
        }
    }

    /// A block of a matrix' columns, transformed, and turned by the angles between both transforms.
    fn columns(
        &self,
        block: usize,
        from: Parts<T>,
        to: PartsMut<T>,
        near: PartsMut<T>,
        far: PartsMut<T>,
    ) {
        let (cols, first) = (self.way.cols, block * LANES);
        let to = Some(To { parts: to, stride: LANES });
        let rows = self.tables.blocks.map(|part| &part[block * self.way.height()..]);
        let turn = Some(Turn { own: self.tables.own, rows });
        if first + LANES <= cols {
            let from = From { parts: from.map(|part| &part[first..]), stride: cols };
            transform(Some(from), to, self.tables.rows, turn, near, far);
            return;
        }
        let mut near = near;
        for (near, from) in again(&mut near).into_iter().zip(from) {
            for (near, from) in near.chunks_exact_mut(LANES).zip(from.chunks_exact(cols)) {
                let from = &from[first..];
                near[..from.len()].copy_from_slice(from);
                near[from.len()..].fill(T::ZERO);
            }
        }
        transform(None, to, self.tables.rows, turn, near, far);
    }

    /// As many rows of a matrix as lanes, from those of its blocks.
    fn squares(&self, first: usize, from: Parts<T>, near: PartsMut<T>) {
        let height = self.way.height();
        for (from, near) in from.into_iter().zip(near) {
            for (block, to) in near.chunks_exact_mut(SQUARE).enumerate().take(self.way.blocks()) {
                let from = &from[(block * height + first) * LANES..][..SQUARE];
                level().run(Transpose { from, to });
            }
        }
    }

    /// One row by all threads: what they write must lie apart, so that blocks of the result are put in their places at
    /// last.
    fn shared(&self, from: Parts<T>, to: PartsMut<T>, room: Room) -> Result<()> {
        let (way, mut rest, slot) = (self.way, room.room, slot_bytes(self.way.n, T::DTYPE));
        let (mut whole, mut made) =
            (two::<T>(&mut rest, matrix(way)), two::<T>(&mut rest, matrix(way)));
        let size = LANES * way.height();
        let [re, im] = again(&mut whole);
        let blocks = re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size)).enumerate();
        for_each_item(room.workers, blocks, room.slots, slot, &|(block, (re, im)), mut slot| {
            let near = two::<T>(&mut slot, way.lanes());
            let far = two::<T>(&mut slot, way.lanes());
            self.columns(block, from, [re, im], near, far);
            Ok(())
        })?;
        let whole = whole.map(|part| &*part);
        let size = LANES * way.cols;
        let [re, im] = again(&mut made);
        let blocks = re.chunks_exact_mut(size).zip(im.chunks_exact_mut(size));
        let blocks = blocks.take(way.height() / LANES).enumerate();
        for_each_item(room.workers, blocks, room.slots, slot, &|(block, (re, im)), mut slot| {
            let mut near = two::<T>(&mut slot, way.lanes());
            let far = two::<T>(&mut slot, way.lanes());
            self.squares(block * LANES, whole, again(&mut near));
            let to = Some(To { parts: [re, im], stride: LANES });
            transform(None, to, self.tables.cols, None, near, far);
            Ok(())
        })?;
        let made = made.map(|part| &*part);
        let ([a, b], lines) = (to, GRAIN.div_ceil(way.rows));
        let pair = ChunkedPair { a, chunk_a: lines * way.rows, b, chunk_b: lines * way.rows };
        for_each_pair(room.workers, pair, &|chunk, re, im| {
            for (to, from) in [re, im].into_iter().zip(made) {
                for (line, to) in to.chunks_exact_mut(way.rows).enumerate() {
                    let at = (chunk * lines + line) * LANES;
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
fn multiply<T: Field>(from: Parts<T>, by: Parts<T>, to: PartsMut<T>) {
    level().run(Multiply { from, by, to });
}

struct Multiply<'a, T> {
    from: Parts<'a, T>,
    by: Parts<'a, T>,
    to: PartsMut<'a, T>,
}

impl<T: Field> Kernel for Multiply<'_, T> {
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

//! Rows: the last axis of a tensor, one at a time, in what is computed in. Sums over a row run in lanes whose number does not
//! depend on the machine.

use tonnage_core::lent::{Data, In};
use tonnage_core::walk::StridedAxes;

use super::float::{Float, Wide};
use crate::strided;

/// Partial sums: several vectors at every level, so that additions overlap.
pub const LANES: usize = 64;

/// Lanes as a balanced tree.
#[inline(always)]
fn total<C: Wide>(mut lanes: [C; LANES]) -> C {
    let mut half = LANES / 2;
    while half > 0 {
        let (left, right) = lanes.split_at_mut(half);
        left.iter_mut().zip(right).for_each(|(a, b)| *a = *a + *b);
        half /= 2;
    }
    lanes[0]
}

/// The sum of a function of each element.
#[inline(always)]
pub fn sum1<C: Wide>(x: &[C], term: impl Fn(C) -> C) -> C {
    let mut lanes = [C::ZERO; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        lanes.iter_mut().zip(x).for_each(|(lane, x)| *lane = *lane + term(*x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, x)| *lane = *lane + term(*x));
    total(lanes)
}

/// The largest; NaN is passed over.
#[inline(always)]
pub fn largest<C: Wide>(x: &[C]) -> C {
    let larger = |most: &mut C, x: &C| *most = if *x > *most { *x } else { *most };
    let mut lanes = [C::LOWEST; LANES];
    let (whole, rest) = x.as_chunks::<LANES>();
    for x in whole {
        lanes.iter_mut().zip(x).for_each(|(lane, x)| larger(lane, x));
    }
    lanes.iter_mut().zip(rest).for_each(|(lane, x)| larger(lane, x));
    // As a tree: one after the other would be a chain as long as a short row takes.
    let mut half = LANES / 2;
    while half > 0 {
        let (left, right) = lanes.split_at_mut(half);
        left.iter_mut().zip(right).for_each(|(lane, x)| larger(lane, x));
        half /= 2;
    }
    lanes[0]
}

/// The sum of a function of each pair of elements.
#[inline(always)]
pub fn sum2<C: Wide>(x: &[C], y: &[C], term: impl Fn(C, C) -> C) -> C {
    let mut lanes = [C::ZERO; LANES];
    for (x, y) in x.chunks(LANES).zip(y.chunks(LANES)) {
        let pairs = lanes.iter_mut().zip(x).zip(y);
        pairs.for_each(|((lane, x), y)| *lane = *lane + term(*x, *y));
    }
    total(lanes)
}

/// Rows of an input, at any strides: all axes but the last, and the last.
pub struct StridedRows<'a, T> {
    data: &'a [T],
    /// In place: rows are read from the output.
    of_output: bool,
    outer: StridedAxes<'a>,
    step: isize,
    /// Elements of a row.
    pub width: usize,
}

impl<'a, T: Float> StridedRows<'a, T> {
    /// Of an input with at least one axis.
    pub fn of(input: &'a In) -> StridedRows<'a, T> {
        let last = input.layout.sizes.len() - 1;
        StridedRows {
            data: input.slice::<T>(),
            of_output: matches!(input.data, Data::Output(_)),
            outer: strided::axes(&input.layout, 0..last),
            step: input.layout.strides[last],
            width: input.layout.sizes[last],
        }
    }

    /// A row in what is computed in: where it lies, or copied.
    pub fn row<'b>(&self, number: usize, buffer: &'b mut [T::Compute]) -> &'b [T::Compute]
    where
        'a: 'b,
    {
        let at = strided::Positions::of(self.outer).at(number) as isize;
        if let (1, Some(data)) = (self.step, T::as_computed(self.data)) {
            return &data[at as usize..][..self.width];
        }
        self.tile(number, 1, buffer)
    }

    /// The same where the output may stand in the row's place: `out` is that row of it.
    pub fn row_or<'b>(
        &self,
        number: usize,
        out: &[T],
        buffer: &'b mut [T::Compute],
    ) -> &'b [T::Compute]
    where
        'a: 'b,
    {
        if !self.of_output {
            return self.row(number, buffer);
        }
        let buffer = &mut buffer[..self.width];
        T::load(out, buffer);
        buffer
    }

    /// Rows one after the other, in what is computed in: where they lie, or copied.
    pub fn tile<'b>(
        &self,
        first: usize,
        count: usize,
        buffer: &'b mut [T::Compute],
    ) -> &'b [T::Compute]
    where
        'a: 'b,
    {
        if let (1, true, Some(data)) = (self.step, self.is_even(), T::as_computed(self.data)) {
            return &data[self.outer.offset + first * self.width..][..count * self.width];
        }
        let buffer = &mut buffer[..count * self.width];
        for (i, to) in buffer.chunks_exact_mut(self.width.max(1)).enumerate() {
            let at = strided::Positions::of(self.outer).at(first + i) as isize;
            match self.step {
                1 => {
                    let from = &self.data[at as usize..][..self.width];
                    to.iter_mut().zip(from).for_each(|(to, from)| *to = from.read());
                }
                step => to.iter_mut().enumerate().for_each(|(i, to)| {
                    *to = self.data[(at + i as isize * step) as usize].read();
                }),
            }
        }
        buffer
    }

    /// True where one row follows another.
    fn is_even(&self) -> bool {
        let mut next = self.width as isize;
        for (size, stride) in self.outer.sizes.iter().zip(self.outer.strides).rev() {
            if *size != 1 && *stride != next {
                return false;
            }
            next *= *size as isize;
        }
        true
    }
}

/// Bytes of a number of rows of scratch in what that dtype is computed in.
pub fn bytes_of_rows(rows: usize, width: usize, dtype: tonnage_core::DType) -> usize {
    rows * match dtype {
        tonnage_core::DType::F64 => crate::parallel::cut_bytes::<f64>(width),
        _ => crate::parallel::cut_bytes::<f32>(width),
    }
}

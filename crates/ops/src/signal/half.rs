//! What `rfft` and `irfft` share: transforms of real rows, of which half the elements say everything.
//!
//! A row of an even length is transformed as one of half the length, even elements as real parts and odd ones as imaginary
//! parts; one of an odd length as it is.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Bytes, DType, Dim, Shape, TensorType, Workers};

use super::stages::{Parts, PartsMut};
use super::tables::{Tables, slot_bytes, table_bytes, turn};
use crate::linalg::field::Field;
use crate::parallel::{cut, cut_bytes_of};
use crate::shape::concat::CONCAT;
use crate::shape::fill::FILL;

/// How many elements say everything about a real row.
pub fn kept(n: &Dim) -> Dim {
    n.divided_by(&Dim::Known(2)).plus(&Dim::Known(1))
}

/// The length of the transform that is run.
fn run_over(n: usize) -> usize {
    if n.is_multiple_of(2) { n / 2 } else { n }
}

/// Elements of a thread's room besides that of the transform: a row, and what is kept of it.
fn rows(n: usize) -> [usize; 3] {
    [n, n / 2 + 1, n / 2 + 1]
}

pub fn scratch_of(n: usize, dtype: DType, threads: usize) -> Bytes {
    if n == 0 {
        return Bytes::ZERO;
    }
    let turns = 2 * cut_bytes_of(n / 2 + 1, dtype);
    Bytes::of(table_bytes(run_over(n), dtype) + turns + threads.max(1) * slot_of(n, dtype))
}

/// Bytes that a thread works in.
pub fn slot_of(n: usize, dtype: DType) -> usize {
    slot_bytes(run_over(n), dtype) + rows(n).map(|n| cut_bytes_of(n, dtype)).iter().sum::<usize>()
}

/// What all rows share.
pub struct Half<'a, T> {
    n: usize,
    whole: Tables<'a, T>,
    /// Angles of the whole length, up to half a turn.
    turns: Parts<'a, T>,
}

/// What a row is worked on in.
pub struct Row<'a, T> {
    /// A real row.
    pub real: &'a mut [T],
    /// What is kept of its transform.
    pub kept: PartsMut<'a, T>,
    parts: PartsMut<'a, T>,
    work: PartsMut<'a, T>,
}

impl<'a, T: Field> Half<'a, T> {
    /// Made at the front of scratch, which is cut off.
    pub fn of(n: usize, scratch: &mut &'a mut [u8], workers: &dyn Workers) -> Half<'a, T> {
        let [cos, sin] = [(); 2].map(|()| cut::<T>(scratch, n / 2 + 1));
        turn([&mut *cos, &mut *sin], n, workers);
        Half { n, whole: Tables::of(run_over(n), scratch, workers), turns: [cos, sin] }
    }

    /// A thread's room, cut up.
    pub fn row<'s>(&self, mut slot: &'s mut [u8]) -> Row<'s, T> {
        let [real, re, im] = rows(self.n).map(|count| cut::<T>(&mut slot, count));
        let [a, b, c, d] = [(); 4].map(|()| cut::<T>(&mut slot, self.whole.len));
        Row { real, kept: [re, im], parts: [a, b], work: [c, d] }
    }

    fn is_even(&self) -> bool {
        self.n.is_multiple_of(2)
    }

    /// From the real row to what is kept of its transform.
    pub fn forward(&self, row: &mut Row<T>) {
        let [re, im] = &mut row.parts;
        let [to_re, to_im] = &mut row.kept;
        let [c, d] = &mut row.work;
        if !self.is_even() {
            re[..self.n].copy_from_slice(row.real);
            im[..self.n].fill(T::ZERO);
            self.whole.run([&mut **re, &mut **im], [&mut **c, &mut **d]);
            to_re.copy_from_slice(&re[..self.n / 2 + 1]);
            to_im.copy_from_slice(&im[..self.n / 2 + 1]);
            return;
        }
        for (pair, (re, im)) in row.real.chunks_exact(2).zip(re.iter_mut().zip(im.iter_mut())) {
            (*re, *im) = (pair[0], pair[1]);
        }
        self.whole.run([&mut **re, &mut **im], [&mut **c, &mut **d]);
        let (half, middle) = (self.n / 2, T::of(0.5));
        for k in 0..=half {
            let (at, mirrored) = (k % half, (half - k) % half);
            // The transforms of even elements and of odd ones, from their sum in both parts.
            let even = [re[at] + re[mirrored], im[at] - im[mirrored]];
            let odd = [im[at] + im[mirrored], re[mirrored] - re[at]];
            let (cos, sin) = (self.turns[0][k], self.turns[1][k]);
            to_re[k] = (even[0] + odd[0] * cos - odd[1] * sin) * middle;
            to_im[k] = (even[1] + odd[0] * sin + odd[1] * cos) * middle;
        }
        // The sums that have no imaginary part have none to the bit.
        (to_im[0], to_im[half]) = (T::ZERO, T::ZERO);
    }

    /// From what is kept of the transform to the real row. The imaginary part of the first element, and of an even length's
    /// last one, is not looked at: a real row has none.
    pub fn back(&self, row: &mut Row<T>) {
        let [re, im] = &mut row.parts;
        let [from_re, from_im] = &mut row.kept;
        let [c, d] = &mut row.work;
        let n = self.n;
        from_im[0] = T::ZERO;
        if !self.is_even() {
            for k in 0..n {
                let (at, sign) = if k <= n / 2 { (k, T::ONE) } else { (n - k, -T::ONE) };
                (re[k], im[k]) = (from_re[at], from_im[at] * sign);
            }
            self.whole.run([&mut **im, &mut **re], [&mut **c, &mut **d]);
            let share = T::of(1.0 / n as f64);
            row.real.iter_mut().zip(&**re).for_each(|(to, x)| *to = *x * share);
            return;
        }
        let half = n / 2;
        from_im[half] = T::ZERO;
        for k in 0..half {
            let mirrored = half - k;
            let even = [from_re[k] + from_re[mirrored], from_im[k] - from_im[mirrored]];
            let gap = [from_re[k] - from_re[mirrored], from_im[k] + from_im[mirrored]];
            // Turned the other way.
            let (cos, sin) = (self.turns[0][k], -self.turns[1][k]);
            let odd = [gap[0] * cos - gap[1] * sin, gap[0] * sin + gap[1] * cos];
            (re[k], im[k]) = (even[0] - odd[1], even[1] + odd[0]);
        }
        self.whole.run([&mut **im, &mut **re], [&mut **c, &mut **d]);
        let share = T::of(1.0 / n as f64);
        for (pair, (re, im)) in row.real.chunks_exact_mut(2).zip(re.iter().zip(im.iter())) {
            (pair[0], pair[1]) = (*re * share, *im * share);
        }
    }
}

/// How often each element that is kept stands in the whole transform: twice, but for those that are their own mirror
/// images.
pub fn mirrored(e: &mut dyn Emit, op: &'static str, n: &Dim, dtype: DType) -> Result<Value> {
    let Some(n) = n.known() else {
        let what = format!("the gradient of a row of {n} elements");
        return Err(bad_argument(op, what, "fix the length in the signature"));
    };
    let ends = if n.is_multiple_of(2) && n > 1 { [1, 1] } else { [1, 0] };
    let between = (n / 2 + 1) - ends[0] - ends[1];
    let mut parts = Vec::new();
    for (value, count) in [(1, ends[0]), (2, between), (1, ends[1])] {
        if count > 0 {
            let attrs = Attrs::Fill { value: value.into(), dtype, shape: Shape::from([count]) };
            parts.push(e.apply(&FILL, Vec::new(), attrs)?);
        }
    }
    match parts.len() {
        1 => Ok(parts.swap_remove(0)),
        count => e.apply(&CONCAT, parts, Attrs::Join { axis: 0, parts: count }),
    }
}

/// The type with another last axis.
pub fn with_last(ty: &TensorType, last: Dim) -> TensorType {
    let mut made = ty.clone();
    if let Some(axis) = made.shape.rank().checked_sub(1) {
        made.shape[axis] = last;
    }
    made
}

//! Reading lent memory through any layout, in logical order; see [`tonnage_core::walk`].
//!
//! Decision: `docs/decisions/short-rows.md`.

use tonnage_core::layout::Layout;
use tonnage_core::walk::{Even, EvenRows, Runs, StridedAxes};

/// Combines the elements from `start` on into `out`, one each, in order.
pub fn combine<'a, T: Copy>(
    layout: impl Into<StridedAxes<'a>>,
    data: &[T],
    start: usize,
    out: &mut [T],
    put: impl Fn(&mut T, T),
) {
    let mut done = 0;
    Runs::new(layout).for_each(start, out.len(), |at, step, count| {
        let to = &mut out[done..done + count];
        match step {
            1 => to.iter_mut().zip(&data[at..at + count]).for_each(|(to, from)| put(to, *from)),
            _ => to.iter_mut().enumerate().for_each(|(i, to)| {
                put(to, data[(at as isize + i as isize * step) as usize]);
            }),
        }
        done += count;
    });
}

/// Copies the elements from `start` on into `out`.
pub fn copy<'a, T: Copy>(
    layout: impl Into<StridedAxes<'a>>,
    data: &[T],
    start: usize,
    out: &mut [T],
) {
    let mut rest = out;
    let count = rest.len();
    EvenRows::new(layout).for_each(start, count, |even| {
        let (part, behind) = std::mem::take(&mut rest).split_at_mut(even.rows * even.count);
        copy_even(data, even, part);
        rest = behind;
    });
}

/// Copies rows of even runs into `out`, which holds just those. Short rows are loops of a known length: calls and
/// counting would cost more than the copying.
#[inline]
pub fn copy_even<T: Copy>(data: &[T], even: Even, out: &mut [T]) {
    if even.rows == 1 {
        return copy_run(data, even.at, even.step, out);
    }
    if even.row_step == 0 {
        copy_run(data, even.at, even.step, &mut out[..even.count]);
        return repeat_start(out, even.count);
    }
    macro_rules! by_length {
        ($of:ident, $else:expr, $($n:literal)*) => {
            match even.count {
                $($n => $of::<T, $n>(data, even, out),)*
                _ => $else,
            }
        };
    }
    let each = |out: &mut [T]| {
        for (i, row) in out.chunks_exact_mut(even.count).enumerate() {
            copy_run(data, even.row(i), even.step, row);
        }
    };
    match even.step {
        0 => by_length!(repeated, each(out), 1 2 3 4 5 6 7 8),
        1 => by_length!(arrays, each(out), 1 2 3 4 5 6 7 8),
        _ => each(out),
    }
}

/// Fills `out` with its first `count` elements, again and again: in copies that double.
pub fn repeat_start<T: Copy>(out: &mut [T], count: usize) {
    let mut done = count;
    while done < out.len() {
        let more = done.min(out.len() - done);
        out.copy_within(..more, done);
        done += more;
    }
}

/// Rows of one element each, `N` times.
fn repeated<T: Copy, const N: usize>(data: &[T], even: Even, out: &mut [T]) {
    let rows = out.as_chunks_mut::<N>().0;
    match even.row_step {
        1 => rows.iter_mut().zip(&data[even.at..]).for_each(|(to, from)| *to = [*from; N]),
        _ => rows.iter_mut().enumerate().for_each(|(i, to)| *to = [data[even.row(i)]; N]),
    }
}

/// Rows of `N` elements side by side.
fn arrays<T: Copy, const N: usize>(data: &[T], even: Even, out: &mut [T]) {
    for (i, to) in out.as_chunks_mut::<N>().0.iter_mut().enumerate() {
        let at = even.row(i);
        to.copy_from_slice(&data[at..at + N]);
    }
}

/// Copies elements at an even step.
#[inline]
fn copy_run<T: Copy>(data: &[T], at: usize, step: isize, out: &mut [T]) {
    let len = out.len();
    match step {
        1 => out.copy_from_slice(&data[at..at + len]),
        0 => out.fill(data[at]),
        -1 => {
            let from = &data[at + 1 - len..at + 1];
            out.iter_mut().zip(from.iter().rev()).for_each(|(to, from)| *to = *from);
        }
        2 => every::<T, 2>(&data[at..], out),
        3 => every::<T, 3>(&data[at..], out),
        4 => every::<T, 4>(&data[at..], out),
        _ => {
            let mut at = at as isize;
            for to in out {
                *to = data[at as usize];
                at += step;
            }
        }
    }
}

/// The first of every `N` elements; behind the last one there may be none.
fn every<T: Copy, const N: usize>(data: &[T], out: &mut [T]) {
    let whole = data.as_chunks::<N>().0;
    let (most, last) = out.split_at_mut(whole.len().min(out.len()));
    most.iter_mut().zip(whole).for_each(|(to, from)| *to = from[0]);
    if let [last] = last {
        *last = data[N * whole.len()];
    }
}

/// Where single elements lie, by their number in logical order.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    axes: StridedAxes<'a>,
    contiguous: bool,
}

impl<'a> Positions<'a> {
    /// Of those axes' elements.
    pub fn of(axes: impl Into<StridedAxes<'a>>) -> Positions<'a> {
        let axes = axes.into();
        Positions { axes, contiguous: axes.is_contiguous() }
    }

    /// Where the first `count` elements lie, if one after the other.
    pub fn run(self, count: usize) -> Option<std::ops::Range<usize>> {
        // None of them may lie anywhere, even beyond the data.
        let start = if count == 0 { 0 } else { self.axes.offset };
        self.contiguous.then(|| start..start + count)
    }

    /// Where element `number` lies.
    #[inline]
    pub fn at(self, number: usize) -> usize {
        match self.contiguous {
            true => self.axes.offset + number,
            false => self.axes.at(number),
        }
    }
}

/// Some axes of a layout, from the position of its first element on.
pub fn axes(layout: &Layout, which: std::ops::Range<usize>) -> StridedAxes<'_> {
    StridedAxes::from(layout).part(which)
}

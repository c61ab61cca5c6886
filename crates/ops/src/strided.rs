//! Reading lent memory through any layout, in logical order; see [`tonnage_core::walk`].

use tonnage_core::layout::Layout;
use tonnage_core::walk::{Axes, Runs};

/// Combines the elements from `start` on into `out`, one each, in order.
pub fn combine<'a, T: Copy>(
    layout: impl Into<Axes<'a>>,
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
pub fn copy<'a, T: Copy>(layout: impl Into<Axes<'a>>, data: &[T], start: usize, out: &mut [T]) {
    combine(layout, data, start, out, |to, from| *to = from);
}

/// Where single elements lie, by their number in logical order.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    axes: Axes<'a>,
    contiguous: bool,
}

impl<'a> Positions<'a> {
    /// Of those axes' elements.
    pub fn of(axes: impl Into<Axes<'a>>) -> Positions<'a> {
        let axes = axes.into();
        Positions { axes, contiguous: axes.is_contiguous() }
    }

    /// Where the first so many elements lie, if one after the other.
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
pub fn axes(layout: &Layout, which: std::ops::Range<usize>) -> Axes<'_> {
    Axes::from(layout).part(which)
}

//! Reading lent memory through any layout, in logical order.
//!
//! A layout is cut into runs of even step, as long as its axes join; a contiguous one is a single run.
//! So one loop serves every view, and runs at copying speed where the elements lie close together.

use tonnage_core::layout::Layout;
use tonnage_core::shape::Sizes;

/// Calls `visit(position, step, count)` for every run of the elements `start..start + len`.
pub fn for_each_run(
    layout: &Layout,
    start: usize,
    len: usize,
    mut visit: impl FnMut(usize, isize, usize),
) {
    if len == 0 {
        return;
    }
    let (sizes, strides) = (&layout.sizes, &layout.strides);
    // Axes from the last one on that join into one run; the rest is counted through.
    let (mut run, mut step, mut outer) = (1usize, 1isize, sizes.len());
    while outer > 0 {
        let (size, stride) = (sizes[outer - 1], strides[outer - 1]);
        match size {
            1 => {}
            _ if run == 1 => (run, step) = (size, stride),
            _ if stride == step * run as isize => run *= size,
            _ => break,
        }
        outer -= 1;
    }
    let (mut skip, mut rest) = (start % run, start / run);
    let mut at = layout.offset as isize;
    let mut index = Sizes::from_elem(0, outer);
    for axis in (0..outer).rev() {
        index[axis] = rest % sizes[axis];
        rest /= sizes[axis];
        at += index[axis] as isize * strides[axis];
    }
    let mut left = len;
    loop {
        let count = left.min(run - skip);
        visit((at + skip as isize * step) as usize, step, count);
        left -= count;
        if left == 0 {
            return;
        }
        skip = 0;
        for axis in (0..outer).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < sizes[axis] {
                break;
            }
            at -= strides[axis] * sizes[axis] as isize;
            index[axis] = 0;
        }
    }
}

/// Combines the elements from `start` on into `out`, one each, in order.
pub fn combine<T: Copy>(
    layout: &Layout,
    data: &[T],
    start: usize,
    out: &mut [T],
    put: impl Fn(&mut T, T),
) {
    let mut done = 0;
    for_each_run(layout, start, out.len(), |at, step, count| {
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
pub fn copy<T: Copy>(layout: &Layout, data: &[T], start: usize, out: &mut [T]) {
    combine(layout, data, start, out, |to, from| *to = from);
}

/// Where single elements lie, by their number in logical order.
#[derive(Clone, Copy)]
pub struct Positions<'a> {
    layout: &'a Layout,
    contiguous: bool,
}

impl<'a> Positions<'a> {
    /// Of that layout's elements.
    pub fn of(layout: &'a Layout) -> Positions<'a> {
        Positions { layout, contiguous: layout.is_contiguous() }
    }

    /// Where element `number` lies.
    pub fn at(self, number: usize) -> usize {
        if self.contiguous {
            return self.layout.offset + number;
        }
        let (mut at, mut rest) = (self.layout.offset as isize, number);
        for (size, stride) in self.layout.sizes.iter().zip(&self.layout.strides).rev() {
            at += (rest % size) as isize * stride;
            rest /= size;
        }
        at as usize
    }
}

/// Some axes of a layout, from the position of its first element on.
pub fn axes(layout: &Layout, which: std::ops::Range<usize>) -> Layout {
    Layout {
        sizes: layout.sizes[which.clone()].into(),
        strides: layout.strides[which].into(),
        offset: layout.offset,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonnage_core::layout::Slice;

    #[test]
    fn runs_and_positions_walk_as_the_layout_does() {
        let base = Layout::contiguous(Sizes::from_slice(&[3, 4, 2]));
        let part = [
            Slice { start: 2, len: 3, step: -1 },
            Slice { start: 1, len: 2, step: 2 },
            Slice { start: 0, len: 2, step: 1 },
        ];
        let narrow = Layout::contiguous(Sizes::from_slice(&[1, 2]));
        for layout in [
            base.transpose(&[2, 0, 1]),
            base.transpose(&[1, 0, 2]),
            base.slice(&part),
            narrow.broadcast_to(&[5, 2]).unwrap(),
            Layout::contiguous(Sizes::new()),
            base,
        ] {
            let mut expected = Vec::new();
            layout.for_each(|at| expected.push(at));
            let positions = Positions::of(&layout);
            for start in 0..=expected.len() {
                for len in 0..=expected.len() - start {
                    let mut found = Vec::new();
                    for_each_run(&layout, start, len, |at, step, count| {
                        found.extend((0..count).map(|i| (at as isize + i as isize * step) as usize))
                    });
                    assert_eq!(found, expected[start..start + len], "{layout:?} from {start}");
                }
            }
            let one_by_one: Vec<_> = (0..expected.len()).map(|i| positions.at(i)).collect();
            assert_eq!(one_by_one, expected, "{layout:?}");
        }
    }
}

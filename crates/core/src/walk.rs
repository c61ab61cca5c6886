//! Walking memory through any layout, in logical order, with no list beside.
//!
//! A walk counts along the last axis and counts rows; how far the outer axes carry follows from the number of
//! the row. So it takes no memory that grows with the rank, and a kernel, which may not allocate, can walk
//! what it is lent at any rank.
//!
//! Decision: `docs/decisions/short-rows.md`.

use std::ops::Range;

use crate::layout::Layout;

/// Some axes of a layout, lent.
#[derive(Debug, Clone, Copy)]
pub struct StridedAxes<'a> {
    /// Length of each axis.
    pub sizes: &'a [usize],
    /// Step of each axis.
    pub strides: &'a [isize],
    /// Where the element of index 0, 0, ... lies.
    pub offset: usize,
}

impl<'a> From<&'a Layout> for StridedAxes<'a> {
    #[inline]
    fn from(layout: &'a Layout) -> StridedAxes<'a> {
        StridedAxes { sizes: &layout.sizes, strides: &layout.strides, offset: layout.offset }
    }
}

impl<'a> From<&StridedAxes<'a>> for StridedAxes<'a> {
    #[inline]
    fn from(axes: &StridedAxes<'a>) -> StridedAxes<'a> {
        *axes
    }
}

impl<'a> StridedAxes<'a> {
    /// Some of the axes, from the same first element on.
    #[must_use]
    pub fn part(self, which: Range<usize>) -> StridedAxes<'a> {
        let (sizes, strides) = (&self.sizes[which.clone()], &self.strides[which]);
        StridedAxes { sizes, strides, offset: self.offset }
    }

    /// How many elements.
    #[inline]
    pub fn count(self) -> usize {
        self.sizes.iter().product()
    }

    /// Where element `number` in logical order lies.
    pub fn at(self, number: usize) -> usize {
        let (mut at, mut rest) = (self.offset as isize, number);
        for (size, stride) in self.sizes.iter().zip(self.strides).rev() {
            at += (rest % size) as isize * stride;
            rest /= size;
        }
        at as usize
    }

    /// True where the elements lie close together in order, from the offset on.
    #[inline]
    pub fn is_contiguous(self) -> bool {
        let mut expected = 1isize;
        for (size, stride) in self.sizes.iter().zip(self.strides).rev() {
            if *size == 0 {
                return true;
            }
            if *size > 1 {
                if *stride != expected {
                    return false;
                }
                expected *= *size as isize;
            }
        }
        true
    }

    /// Every position, in logical order.
    pub fn positions(self) -> impl Iterator<Item = usize> {
        let axis = move |axis: usize| (self.sizes[axis], [self.strides[axis]]);
        LayoutWalk::new(self.sizes.len(), [self.offset], axis).map(|[at]| at)
    }
}

/// Axes from the last one on that one step walks: how many are left in front of them, how many elements that
/// step walks, and the step. `axis` gives the length and the stride of an axis.
pub fn joined(axes: usize, axis: impl Fn(usize) -> (usize, isize)) -> (usize, usize, isize) {
    let (mut run, mut step, mut outer) = (1usize, 1isize, axes);
    while outer > 0 {
        match axis(outer - 1) {
            (1, _) => {}
            (size, stride) if run == 1 => (run, step) = (size, stride),
            (size, stride) if stride == step * run as isize => run *= size,
            _ => break,
        }
        outer -= 1;
    }
    (outer, run, step)
}

/// Positions in `N` layouts of the same sizes, side by side, in logical order. `F` gives the length of an
/// axis, and its stride in each of them.
#[derive(Debug, Clone)]
pub struct LayoutWalk<const N: usize, F> {
    axes: usize,
    axis: F,
    at: [isize; N],
    /// Along the last axis.
    inner: usize,
    /// Rows of the last axis that are behind.
    row: usize,
    left: usize,
}

impl<const N: usize, F: Fn(usize) -> (usize, [isize; N])> LayoutWalk<N, F> {
    /// Over all elements; the first lie at `start`.
    pub fn new(axes: usize, start: [usize; N], axis: F) -> LayoutWalk<N, F> {
        let left = (0..axes).map(|i| axis(i).0).product();
        LayoutWalk { axes, axis, at: start.map(|x| x as isize), inner: 0, row: 0, left }
    }

    /// Goes to element `number`.
    #[must_use]
    pub fn from(mut self, number: usize) -> LayoutWalk<N, F> {
        self.left = self.left.saturating_sub(number);
        let mut rest = number;
        for i in (0..self.axes).rev() {
            let (size, strides) = (self.axis)(i);
            let index = rest % size.max(1);
            rest /= size.max(1);
            self.add(strides, index as isize);
            if i + 1 == self.axes {
                (self.inner, self.row) = (index, rest);
            }
        }
        self
    }

    #[inline(always)]
    fn add(&mut self, strides: [isize; N], times: isize) {
        for (at, stride) in self.at.iter_mut().zip(strides) {
            *at += stride * times;
        }
    }

    #[inline]
    fn step(&mut self) {
        let Some(last) = self.axes.checked_sub(1) else { return };
        let (size, strides) = (self.axis)(last);
        self.add(strides, 1);
        self.inner += 1;
        if self.inner < size {
            return;
        }
        self.add(strides, -(size as isize));
        self.inner = 0;
        self.row += 1;
        let mut row = self.row;
        for i in (0..last).rev() {
            let (size, strides) = (self.axis)(i);
            self.add(strides, 1);
            if !row.is_multiple_of(size) {
                return;
            }
            self.add(strides, -(size as isize));
            row /= size;
        }
    }
}

impl<const N: usize, F: Fn(usize) -> (usize, [isize; N])> Iterator for LayoutWalk<N, F> {
    type Item = [usize; N];

    #[inline]
    fn next(&mut self) -> Option<[usize; N]> {
        self.left = self.left.checked_sub(1)?;
        let now = self.at.map(|x| x as usize);
        if self.left > 0 {
            self.step();
        }
        Some(now)
    }
}

/// A layout as runs of even step, as long as its last axes join; a contiguous one is a single run. So one
/// loop serves every view, and goes at copying speed where the elements lie close together.
#[derive(Debug, Clone, Copy)]
pub struct Runs<'a> {
    outer: StridedAxes<'a>,
    run: usize,
    step: isize,
}

impl<'a> Runs<'a> {
    /// Of these axes.
    pub fn new(axes: impl Into<StridedAxes<'a>>) -> Runs<'a> {
        let axes = axes.into();
        let of = |i: usize| (axes.sizes[i], axes.strides[i]);
        let (outer, run, step) = joined(axes.sizes.len(), of);
        Runs { outer: axes.part(0..outer), run, step }
    }

    /// The step between all elements in order, where there is only one.
    pub fn even(self) -> Option<isize> {
        self.outer.sizes.is_empty().then_some(self.step)
    }

    /// Where the first element lies.
    pub fn start(self) -> usize {
        self.outer.offset
    }

    /// Calls `visit(position, step, count)` for every run among the elements `start..start + len`.
    #[inline]
    pub fn for_each(self, start: usize, len: usize, mut visit: impl FnMut(usize, isize, usize)) {
        if len == 0 {
            return;
        }
        let Runs { outer, run, step } = self;
        let (mut skip, mut left) = (start % run, len);
        let axis = |i: usize| (outer.sizes[i], [outer.strides[i]]);
        let runs = LayoutWalk::new(outer.sizes.len(), [outer.offset], axis).from(start / run);
        for [at] in runs {
            let count = left.min(run - skip);
            visit((at as isize + skip as isize * step) as usize, step, count);
            left -= count;
            if left == 0 {
                return;
            }
            skip = 0;
        }
    }
}

/// Rows of even runs: what a loop without any walking reads at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Even {
    /// Where the first element lies.
    pub at: usize,
    /// How many rows.
    pub rows: usize,
    /// From one row to the next.
    pub row_step: isize,
    /// How many elements each row has.
    pub count: usize,
    /// From one element of a row to the next.
    pub step: isize,
}

impl Even {
    /// Where a row starts.
    #[inline(always)]
    pub fn row(&self, row: usize) -> usize {
        (self.at as isize + row as isize * self.row_step) as usize
    }
}

/// A layout as rows of runs: two steps, each of as many axes as join. Where runs are short, as in a tensor whose elements
/// are each repeated twice, it is rows that make a loop long.
#[derive(Debug, Clone, Copy)]
pub struct EvenRows<'a> {
    runs: Runs<'a>,
    outer: StridedAxes<'a>,
    rows: usize,
    row_step: isize,
}

impl<'a> EvenRows<'a> {
    /// Of these axes.
    pub fn new(axes: impl Into<StridedAxes<'a>>) -> EvenRows<'a> {
        let runs = Runs::new(axes);
        let all = runs.outer;
        let (outer, rows, row_step) = joined(all.sizes.len(), |i| (all.sizes[i], all.strides[i]));
        EvenRows { runs, outer: all.part(0..outer), rows, row_step }
    }

    /// The runs alone.
    pub fn runs(self) -> Runs<'a> {
        self.runs
    }

    /// Calls `visit` for all of the elements `start..start + len`, in order.
    #[inline]
    pub fn for_each(self, start: usize, len: usize, mut visit: impl FnMut(Even)) {
        if len == 0 {
            return;
        }
        let EvenRows { runs: Runs { run, step, .. }, outer, rows, row_step } = self;
        let (mut skip, mut left) = (start % (rows * run), len);
        let axis = |i: usize| (outer.sizes[i], [outer.strides[i]]);
        let blocks =
            LayoutWalk::new(outer.sizes.len(), [outer.offset], axis).from(start / (rows * run));
        for [at] in blocks {
            let mut here = left.min(rows * run - skip);
            left -= here;
            // The end of a row, whole rows, the start of one.
            while here > 0 {
                let (row, first) = (skip / run, skip % run);
                let at = at as isize + row as isize * row_step + first as isize * step;
                let (rows, count) = match here / run {
                    whole if first == 0 && whole > 0 => (whole, run),
                    _ => (1, here.min(run - first)),
                };
                visit(Even { at: at as usize, rows, row_step, count, step });
                (skip, here) = (skip + rows * count, here - rows * count);
            }
            if left == 0 {
                return;
            }
            skip = 0;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Slice;

    fn layouts() -> Vec<Layout> {
        let base = Layout::contiguous([3usize, 4, 2].as_slice());
        let part = [
            Slice { start: 2, len: 3, step: -1 },
            Slice { start: 1, len: 2, step: 2 },
            Slice { start: 0, len: 2, step: 1 },
        ];
        let deep = Layout::contiguous([2usize, 3, 1, 2, 2, 1, 3].as_slice());
        vec![
            base.transpose(&[2, 0, 1]),
            base.transpose(&[1, 0, 2]),
            base.slice(&part),
            Layout::contiguous([1usize, 2].as_slice()).broadcast_to(&[5, 2]).unwrap(),
            Layout::contiguous([1usize].as_slice()).broadcast_to(&[2, 3]).unwrap(),
            Layout::contiguous([].as_slice()),
            deep.transpose(&[6, 1, 2, 4, 0, 3, 5]),
            deep.transpose(&[0, 1, 4, 3, 2, 5, 6]),
            Layout::contiguous([2usize, 3, 1].as_slice()).broadcast_to(&[2, 3, 4]).unwrap(),
            base,
        ]
    }

    /// Positions by the index of each axis.
    fn expected(layout: &Layout) -> Vec<usize> {
        let mut indices = vec![vec![]];
        for size in &layout.sizes {
            let longer = |i: &Vec<usize>| (0..*size).map(|n| [&i[..], &[n]].concat()).collect();
            indices = indices.iter().flat_map::<Vec<Vec<usize>>, _>(longer).collect();
        }
        indices.iter().map(|index| layout.position(index)).collect()
    }

    #[test]
    fn walks_runs_and_positions_go_as_the_indices_do() {
        for layout in layouts() {
            let (axes, expected) = (StridedAxes::from(&layout), expected(&layout));
            assert_eq!(axes.positions().collect::<Vec<_>>(), expected, "{layout:?}");
            let one_by_one: Vec<_> = (0..expected.len()).map(|i| axes.at(i)).collect();
            assert_eq!(one_by_one, expected, "{layout:?}");
            for start in 0..=expected.len() {
                for len in 0..=expected.len() - start {
                    let mut found = Vec::new();
                    Runs::new(&layout).for_each(start, len, |at, step, count| {
                        found.extend((0..count).map(|i| (at as isize + i as isize * step) as usize))
                    });
                    assert_eq!(found, expected[start..start + len], "{layout:?} from {start}");
                    found.clear();
                    EvenRows::new(&layout).for_each(start, len, |even| {
                        for row in 0..even.rows {
                            let at = |i| (even.row(row) as isize + i as isize * even.step) as usize;
                            found.extend((0..even.count).map(at));
                        }
                    });
                    assert_eq!(found, expected[start..start + len], "rows of {layout:?}");
                }
            }
        }
    }

    #[test]
    fn nothing_is_walked_where_there_is_nothing() {
        let empty = Layout::contiguous([2usize, 0, 3].as_slice());
        assert_eq!(StridedAxes::from(&empty).positions().count(), 0);
        Runs::new(&empty).for_each(0, 0, |_, _, _| unreachable!("it has no elements"));
    }

    #[test]
    fn one_step_walks_what_lies_evenly() {
        let base = Layout::contiguous([3usize, 4].as_slice());
        assert_eq!(Runs::new(&base).even(), Some(1));
        assert_eq!(Runs::new(&base.transpose(&[1, 0])).even(), None);
        let column =
            base.slice(&[Slice { start: 0, len: 3, step: 1 }, Slice { start: 1, len: 1, step: 1 }]);
        assert_eq!((Runs::new(&column).even(), Runs::new(&column).start()), (Some(4), 1));
    }
}

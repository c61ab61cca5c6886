//! A tensor put into a larger one: what `place` and `pad` share.
//!
//! The output is cut into rows along the last axis on which the part is not the whole; the axes behind that one
//! are copied as they are. Rows are shared among threads, and each is written once.

use tonnage_core::layout::{Layout, Slice};
use tonnage_core::lent::In;
use tonnage_core::walk::StridedAxes;
use tonnage_core::{Element, Result};

use crate::parallel::rows_at_once;
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// Fills `out`, of those sizes, with `fill`, and with the input where the slice of each axis says.
pub fn put<T: Element>(
    input: &In,
    slice: &(dyn Fn(usize) -> Slice + Sync),
    sizes: &[usize],
    fill: T,
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let whole = |axis: usize| slice(axis) == Slice { start: 0, len: sizes[axis], step: 1 };
    let Some(axis) = (0..sizes.len()).rev().find(|axis| !whole(*axis)) else {
        let at_once = crate::parallel::GRAIN;
        return for_each_chunk(workers, out, at_once, &|chunk, out| {
            strided::copy(&input.layout, input.slice::<T>(), chunk * at_once, out);
        });
    };
    let run: usize = sizes[axis + 1..].iter().product();
    let row = sizes[axis] * run;
    let at_once = rows_at_once(row);
    for_each_chunk(workers, out, row * at_once, &|chunk, rows| {
        for (i, row) in rows.chunks_mut(row).enumerate() {
            let offset = outer_offset(&input.layout, slice, sizes, axis, chunk * at_once + i);
            match offset {
                Some(offset) => put_row(input, offset, axis, slice(axis), run, fill, row),
                None => row.fill(fill),
            }
        }
    })
}

/// Where the part's row for the output's row of that number starts, if it has one.
fn outer_offset(
    layout: &Layout,
    slice: &dyn Fn(usize) -> Slice,
    sizes: &[usize],
    axis: usize,
    mut number: usize,
) -> Option<usize> {
    let mut offset = layout.offset as isize;
    for outer in (0..axis).rev() {
        let at = number % sizes[outer];
        number /= sizes[outer];
        offset += inside(slice(outer), at)? as isize * layout.strides[outer];
    }
    Some(offset as usize)
}

/// Which element of the part stands at a position of the whole.
fn inside(slice: Slice, at: usize) -> Option<usize> {
    let distance = at as isize - slice.start as isize;
    let number = distance / slice.step;
    (distance % slice.step == 0 && (0..slice.len as isize).contains(&number))
        .then_some(number as usize)
}

fn put_row<T: Element>(
    input: &In,
    offset: usize,
    axis: usize,
    slice: Slice,
    run: usize,
    fill: T,
    row: &mut [T],
) {
    let (layout, data) = (&input.layout, input.slice::<T>());
    let rank = layout.sizes.len();
    if slice.step == 1 {
        let (before, rest) = row.split_at_mut(slice.start * run);
        let (part, behind) = rest.split_at_mut(slice.len * run);
        before.fill(fill);
        behind.fill(fill);
        let from = StridedAxes { offset, ..strided::axes(layout, axis..rank) };
        return strided::copy(from, data, 0, part);
    }
    row.fill(fill);
    let mut from = strided::axes(layout, axis + 1..rank);
    for i in 0..slice.len {
        from.offset = (offset as isize + i as isize * layout.strides[axis]) as usize;
        let to = (slice.start as isize + i as isize * slice.step) as usize * run;
        strided::copy(from, data, 0, &mut row[to..to + run]);
    }
}

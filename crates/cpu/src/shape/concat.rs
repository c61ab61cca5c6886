//! The kernel of `concat`: each tensor is written straight into its place.

use tonnage_core::Element;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::walk::{Even, Runs};

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::with_width;
use crate::parallel::{GRAIN, rows_at_once};
use crate::strided;
use crate::workers::for_each_chunk;

/// The kernel of [`CONCAT`](tonnage_ops::shape::concat::CONCAT).
pub static CONCAT: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Join { axis, .. } = *k.attrs else { return Ok(()) };
    with_width!(k.outputs[0].dtype, T => join::<T>(k, axis))
}

fn join<T: Element>(k: &mut Kernel, axis: usize) -> Result<()> {
    let inner: usize = k.outputs[0].sizes[axis + 1..].iter().product();
    let row = k.outputs[0].sizes[axis] * inner;
    let (inputs, out) = (k.inputs, k.outputs[0].slice::<T>());
    if row == 0 {
        return Ok(());
    }
    let length = |part: &In| part.layout.sizes[axis] * inner;
    // Long rows are cut as they are; of short ones a piece is many.
    let chunk = if row >= GRAIN { GRAIN } else { row * rows_at_once(row) };
    let single = inputs.iter().all(|part| length(part) == 1);
    for_each_chunk(k.workers, out, chunk, &|number, out| {
        let first = number * chunk;
        if single && interleave(inputs, first / row, out) {
            return;
        }
        let mut at = 0; // where the part starts in a row
        for part in inputs {
            let len = length(part);
            if len > 0 {
                copy_part::<T>(part, len, at, row, first, out);
            }
            at += len;
        }
    })
}

/// Rows of one element from each of a few parts, as of `stack` along a new last axis, all parts at once: one by one each
/// would go through all of the output. False where there are more, or some lie apart.
fn interleave<T: Element>(parts: &[In], first: usize, out: &mut [T]) -> bool {
    fn of<T: Element, const N: usize>(parts: &[In], first: usize, out: &mut [T]) -> bool {
        let rows = out.as_chunks_mut::<N>().0;
        let mut data = [&[] as &[T]; N];
        for (data, part) in data.iter_mut().zip(parts) {
            let Some(all) = part.contiguous::<T>() else { return false };
            *data = &all[first..first + rows.len()];
        }
        for (i, row) in rows.iter_mut().enumerate() {
            for (to, data) in row.iter_mut().zip(data) {
                *to = data[i];
            }
        }
        true
    }
    match parts.len() {
        2 => of::<T, 2>(parts, first, out),
        3 => of::<T, 3>(parts, first, out),
        4 => of::<T, 4>(parts, first, out),
        _ => false,
    }
}

/// Copies those rows of a part that lie in a piece of the output, which starts at element `first`; the part
/// takes `len` elements of each row of `row`, from `at` on.
fn copy_part<T: Element>(
    part: &In,
    len: usize,
    at: usize,
    row: usize,
    first: usize,
    out: &mut [T],
) {
    let data = part.slice::<T>();
    if row < GRAIN {
        return copy_rows(part, len, at, row, first / row, out);
    }
    let contiguous = part.contiguous::<T>();
    let end = first + out.len();
    for r in first / row..end.div_ceil(row) {
        // The part of this row that lies in the piece.
        let start = (r * row + at).max(first);
        let stop = (r * row + at + len).min(end);
        if start >= stop {
            continue;
        }
        let from = r * len + (start - r * row - at);
        let to = &mut out[start - first..stop - first];
        match contiguous {
            Some(data) => to.copy_from_slice(&data[from..from + to.len()]),
            None => strided::copy(&part.layout, data, from, to),
        }
    }
}

/// The same where the piece is whole rows, from the one of number `first` on.
fn copy_rows<T: Element>(
    part: &In,
    len: usize,
    at: usize,
    row: usize,
    first: usize,
    out: &mut [T],
) {
    fn arrays<T: Element, const N: usize>(data: &[T], at: usize, row: usize, out: &mut [T]) {
        for (from, to) in data.as_chunks::<N>().0.iter().zip(out.chunks_exact_mut(row)) {
            to[at..at + N].copy_from_slice(from);
        }
    }
    let rows = out.len() / row;
    let Some(data) = part.contiguous::<T>() else {
        // All elements that are wanted are one walk; a walk for each row would be most of the time.
        let (data, mut row_number, mut done) = (part.slice::<T>(), 0, 0);
        Runs::new(&part.layout).for_each(first * len, rows * len, |from, step, count| {
            let mut taken = 0;
            while taken < count {
                let now = (count - taken).min(len - done);
                let to = &mut out[row_number * row + at + done..][..now];
                let from = (from as isize + taken as isize * step) as usize;
                let even = Even { at: from, rows: 1, row_step: 0, count: now, step };
                strided::copy_even(data, even, to);
                (taken, done) = (taken + now, done + now);
                if done == len {
                    (row_number, done) = (row_number + 1, 0);
                }
            }
        });
        return;
    };
    let data = &data[first * len..(first + rows) * len];
    match len {
        1 => arrays::<T, 1>(data, at, row, out),
        2 => arrays::<T, 2>(data, at, row, out),
        3 => arrays::<T, 3>(data, at, row, out),
        4 => arrays::<T, 4>(data, at, row, out),
        5..=7 => {
            // Too short for a call.
            for (from, to) in data.chunks_exact(len).zip(out.chunks_exact_mut(row)) {
                to[at..at + len].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
        8 => arrays::<T, 8>(data, at, row, out),
        _ => {
            for (from, to) in data.chunks_exact(len).zip(out.chunks_exact_mut(row)) {
                to[at..at + len].copy_from_slice(from);
            }
        }
    }
}

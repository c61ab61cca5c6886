//! The kernel of `fold_padding`.

use smallvec::{SmallVec, smallvec};
use tonnage_core::attrs::{Attrs, PadMode};
use tonnage_core::error::Result;
use tonnage_core::lent::In;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_sum};
use crate::parallel::{rows_at_once, strides};
use crate::workers::{Workers, for_each_chunk};

/// The kernel of [`FOLD_PADDING`](tonnage_ops::shape::fold_padding::FOLD_PADDING).
pub static FOLD_PADDING: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Pad { widths, padding } = k.attrs else { return Ok(()) };
    let (x, out) = (&k.inputs[0], &mut k.outputs[0]);
    with_sum!("fold_padding", x.dtype, T => {
        let (sizes, out) = out.parts::<T>();
        fold::<T>(x, widths, *padding, sizes, out, k.workers)
    })
}

/// Where a padded axis shows element `at` of `n`: once in the middle, and once on either side.
fn shown(at: usize, n: usize, [before, behind]: [usize; 2], padding: PadMode) -> Shown {
    let beside = matches!(padding, PadMode::Symmetric) as usize;
    let mut all: Shown = smallvec![before + at];
    if (at + beside).checked_sub(1).is_some_and(|d| d < before) {
        all.push(before - at - beside);
    }
    // As far from the last element as the mirror shows it beyond.
    let distance = n - 1 - at + beside;
    if (1..=behind).contains(&distance) {
        all.push(before + n - 1 + distance);
    }
    all
}

type Shown = SmallVec<[usize; 3]>;

fn fold<T: Number>(
    x: &In,
    widths: &[[usize; 2]],
    padding: PadMode,
    sizes: &[usize],
    out: &mut [T],
    workers: &dyn Workers,
) -> Result<()> {
    let (layout, data) = (&x.layout, x.slice::<T>());
    let Some(last) = sizes.len().checked_sub(1) else {
        out[0] = data[layout.offset];
        return Ok(());
    };
    let (row, step) = (sizes[last], layout.strides[last]);
    let shown_at = |axis: usize, at: usize| shown(at, sizes[axis], widths[axis], padding);
    let at_once = rows_at_once(row);
    for_each_chunk(workers, out, (row * at_once).max(1), &|chunk, rows| {
        for (i, to) in rows.chunks_mut(row).enumerate() {
            // The rows that are added up here: up to three for every outer axis, the last axis fastest.
            let number = chunk * at_once + i;
            let outer = |each: &mut dyn FnMut(usize, Shown)| {
                let mut rest = number;
                for axis in (0..last).rev() {
                    each(axis, shown_at(axis, rest % sizes[axis]));
                    rest /= sizes[axis];
                }
            };
            let mut combinations = 1;
            outer(&mut |_, shown| combinations *= shown.len());
            to.fill(T::ZERO);
            for which in 0..combinations {
                let (mut start, mut which) = (layout.offset as isize, which);
                outer(&mut |axis, shown| {
                    start += shown[which % shown.len()] as isize * layout.strides[axis];
                    which /= shown.len();
                });
                for range in strides(workers, 0..row, 1) {
                    for (at, to) in range.clone().zip(&mut to[range]) {
                        for at in shown_at(last, at) {
                            *to = to.plus(data[(start + at as isize * step) as usize]);
                        }
                    }
                }
            }
        }
    })
}

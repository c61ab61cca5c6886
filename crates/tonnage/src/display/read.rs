//! The elements that are shown: all of them, or those at the edges of a large tensor.

use smallvec::{SmallVec, smallvec};
use tonnage_core::layout::Slice;
use tonnage_core::{FromScalar, Layout, Result, Scalar, Sizes, with_element};
use tonnage_runtime::Array;

use super::PrintOptions;
use crate::convert::part;

/// The shown elements, close together.
pub(super) struct Shown {
    /// In logical order.
    pub values: Vec<Scalar>,
    /// How many of each axis.
    pub sizes: Sizes,
    /// Which axes have a gap after their first `edge` elements.
    pub cut: SmallVec<[bool; 4]>,
}

/// Reads a part of a tensor, in logical order.
pub(crate) type Fetch<'a> = &'a dyn Fn(&[Slice]) -> Result<Vec<Scalar>>;

/// A run of elements along one axis: where it starts in the tensor and among those that are shown.
#[derive(Clone, Copy)]
struct AxisRun {
    from: usize,
    to: usize,
    len: usize,
}

/// Reads what is shown of a tensor of these sizes, block by block: each axis is one piece, or two edges. `fetch` reads
/// one block.
pub(super) fn read(whole: &[usize], options: PrintOptions, fetch: Fetch) -> Result<Shown> {
    let edge = options.edge;
    let cut_short = whole.iter().product::<usize>() > options.threshold;
    let cut: SmallVec<[bool; 4]> = whole.iter().map(|len| cut_short && *len > 2 * edge).collect();
    let axes: SmallVec<[SmallVec<[AxisRun; 2]>; 4]> = (whole.iter().zip(&cut))
        .map(|(len, cut)| match cut {
            true => smallvec![
                AxisRun { from: 0, to: 0, len: edge },
                AxisRun { from: len - edge, to: edge, len: edge }
            ],
            false => smallvec![AxisRun { from: 0, to: 0, len: *len }],
        })
        .collect();
    let sizes: Sizes =
        axes.iter().map(|pieces| pieces.iter().map(|piece| piece.len).sum::<usize>()).collect();
    let close = Layout::contiguous(sizes.clone());
    let mut values = vec![Scalar::Bool(false); close.count()];
    let blocks: usize = axes.iter().map(|pieces| pieces.len()).product();
    for block in 0..blocks {
        let mut left = block;
        let (mut from, mut to) = (SmallVec::<[Slice; 4]>::new(), SmallVec::<[Slice; 4]>::new());
        for pieces in &axes {
            let piece = pieces[left % pieces.len()];
            left /= pieces.len();
            from.push(Slice { start: piece.from, len: piece.len, step: 1 });
            to.push(Slice { start: piece.to, len: piece.len, step: 1 });
        }
        let mut read = fetch(&from)?.into_iter();
        close.slice(&to).for_each(|at| values[at] = read.next().unwrap_or(values[at]));
    }
    Ok(Shown { values, sizes, cut })
}

/// The elements of a part of a tensor.
pub(super) fn elements(array: &Array, slices: &[Slice]) -> Result<Vec<Scalar>> {
    let array = part(array, slices);
    with_element!(array.dtype(), T => {
        Ok(array.to_vec::<T>()?.into_iter().map(FromScalar::to_scalar).collect())
    })
}

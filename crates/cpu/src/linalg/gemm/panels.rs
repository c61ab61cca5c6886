//! Blocks of operands as micro-kernels read them: where they lie, or packed.

use std::ops::Range;

use tonnage_simd::product::Compute;

use super::band::Band;
use super::operand::{DirectMatrix, GemmOperand};

/// Bytes over which an operand may be spread to be packed by the first tiles that read it: a piece of a file, with the
/// padding of its runs.
const NEAR: usize = (1 << 20) + (1 << 16);

/// A block of an operand as micro-kernels read it: panels, and in them elements at two strides.
pub(super) struct Panels<C> {
    /// Written to only where it is packed.
    pub data: *const C,
    /// From one panel to the next.
    pub panel: isize,
    pub mn_stride: isize,
    pub k_stride: isize,
    /// Steps of K after which elements lie further on by `jump`; for the left operand only.
    pub run: usize,
    pub jump: isize,
    /// Runs before a leap, and from one leap to the next; see [`StridePattern`](super::band::StridePattern).
    pub first: usize,
    pub period: usize,
    pub leap: isize,
}

/// How tiles get at the left operand.
pub(super) enum Left<C> {
    /// In panels of a strip each.
    Panels(Panels<C>),
    /// Each strip is packed before its tiles.
    Strips,
    /// In a band that starts there.
    Band(*const C, Band),
}

/// How tiles get at the right operand.
pub(super) enum Access<'a, C> {
    /// Where it lies: too few strips of tiles read it to pay for packing.
    InPlace(DirectMatrix<'a, C>),
    /// The first strip of tiles reads it where it lies and packs it for the others, if its tiles can.
    PackOnFirstRead(DirectMatrix<'a, C>),
    /// Packed beforehand.
    Packed,
}

/// A block of the right operand, as the first strip of tiles reads it, and where that packs it for the others.
pub(super) struct Right<C> {
    pub first: Panels<C>,
    pub packed_by_first: Option<Panels<C>>,
    /// Whether all of it lies in packing space once the first strip has read it.
    pub packed: bool,
}

impl Band {
    /// The strip that starts at a row.
    pub(super) fn strip<C>(&self, data: *const C, mn: usize) -> Panels<C> {
        let Band { origin, mn: mn_pattern, k: k_pattern } = self;
        Panels {
            data: data.wrapping_add(mn_pattern.at(mn - origin)),
            mn_stride: mn_pattern.step as isize,
            k_stride: k_pattern.step as isize,
            jump: k_pattern.next as isize - (k_pattern.run * k_pattern.step) as isize,
            first: k_pattern.first,
            period: k_pattern.period,
            leap: k_pattern.leap as isize,
            ..Panels::even(k_pattern.run)
        }
    }
}

impl<C> Panels<C> {
    /// Nowhere yet, in runs of that many steps without leaps.
    pub(super) fn even(run: usize) -> Panels<C> {
        Panels {
            data: std::ptr::null(),
            panel: 0,
            mn_stride: 0,
            k_stride: 0,
            run,
            jump: 0,
            first: usize::MAX,
            period: usize::MAX,
            leap: 0,
        }
    }

    /// Panels in packing space.
    pub(super) fn packed(space: &mut [C], k: usize, width: usize) -> Panels<C> {
        let (k, width) = (k as isize, width as isize);
        let data = space.as_mut_ptr();
        Panels { data, panel: width * k, mn_stride: 1, k_stride: width, ..Panels::even(usize::MAX) }
    }
}

impl<C> DirectMatrix<'_, C> {
    /// True where that many steps of K lie close enough together that reading a few columns of each costs no more than
    /// reading them all: in L2, and in pages that are known.
    pub(super) fn is_near(&self, k: usize) -> bool {
        k.saturating_mul(self.k_stride.unsigned_abs()) * size_of::<C>() <= NEAR
    }

    /// Panels of a block that is read where it lies.
    pub(super) fn panels(
        &self,
        mn_range: &Range<usize>,
        k_range: &Range<usize>,
        width: usize,
    ) -> Panels<C> {
        let at = mn_range.start as isize * self.mn_stride + k_range.start as isize * self.k_stride;
        let data = self.data.as_ptr().wrapping_offset(self.start as isize + at);
        let panel = width as isize * self.mn_stride;
        Panels {
            data,
            panel,
            mn_stride: self.mn_stride,
            k_stride: self.k_stride,
            ..Panels::even(usize::MAX)
        }
    }
}

/// A block of an operand, packed into `space`.
pub(super) fn packed<C: Compute>(
    operand: &dyn GemmOperand<C>,
    batch: usize,
    mn_range: Range<usize>,
    k_range: &Range<usize>,
    width: usize,
    space: &mut [C],
) -> Panels<C> {
    let out = &mut space[..mn_range.len().next_multiple_of(width) * k_range.len()];
    operand.pack(batch, mn_range, k_range.clone(), width, out);
    Panels::packed(out, k_range.len(), width)
}

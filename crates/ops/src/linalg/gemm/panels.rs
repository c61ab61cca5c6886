//! Blocks of operands as micro-kernels read them: where they lie, or packed.

use std::ops::Range;

use super::band::Band;
use super::compute::Compute;
use super::operand::{Direct, Operand};

/// Bytes over which an operand may be spread to be packed by the first tiles that read it: a piece of a file, with what keeps its
/// lines apart.
const NEAR: usize = (1 << 20) + (1 << 16);

/// A block of an operand as micro-kernels read it: panels, and in them elements at two strides.
pub(super) struct Panels<C> {
    /// Written to only where it is packed.
    pub data: *const C,
    /// From one panel to the next.
    pub panel: isize,
    pub line: isize,
    pub depth: isize,
    /// Steps of depth after which elements lie further on by `jump`; for the left operand only.
    pub run: usize,
    pub jump: isize,
    /// Runs before a leap, and from one leap to the next; see [`Walk`](super::band::Walk).
    pub first: usize,
    pub turns: usize,
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
    InPlace(Direct<'a, C>),
    /// The first strip of tiles reads it where it lies and packs it for the others, if its tiles can.
    FileValue(Direct<'a, C>),
    /// Packed beforehand.
    Packed,
}

/// A block of the right operand, as the first strip of tiles reads it, and where that packs it for the others.
pub(super) struct Right<C> {
    pub first: Panels<C>,
    pub kept: Option<Panels<C>>,
    /// Whether all of it lies in packing space once the first strip has read it.
    pub packed: bool,
}

impl Band {
    /// The strip that starts at a line.
    pub(super) fn strip<C>(&self, data: *const C, line: usize) -> Panels<C> {
        let Band { origin, lines, depth } = self;
        Panels {
            data: data.wrapping_add(lines.at(line - origin)),
            line: lines.step as isize,
            depth: depth.step as isize,
            jump: depth.next as isize - (depth.run * depth.step) as isize,
            first: depth.first,
            turns: depth.turns,
            leap: depth.leap as isize,
            ..Panels::even(depth.run)
        }
    }
}

impl<C> Panels<C> {
    /// Nowhere yet, in runs of that many steps without leaps.
    pub(super) fn even(run: usize) -> Panels<C> {
        Panels {
            data: std::ptr::null(),
            panel: 0,
            line: 0,
            depth: 0,
            run,
            jump: 0,
            first: usize::MAX,
            turns: usize::MAX,
            leap: 0,
        }
    }

    /// Panels in packing space.
    pub(super) fn packed(space: &mut [C], depth: usize, width: usize) -> Panels<C> {
        let (depth, width) = (depth as isize, width as isize);
        let data = space.as_mut_ptr();
        Panels { data, panel: width * depth, line: 1, depth: width, ..Panels::even(usize::MAX) }
    }
}

impl<C> Direct<'_, C> {
    /// True where that many steps of depth lie close enough together that reading a few columns of each costs no more than
    /// reading them all: in L2, and in pages that are known.
    pub(super) fn is_near(&self, depth: usize) -> bool {
        depth.saturating_mul(self.depth.unsigned_abs()) * size_of::<C>() <= NEAR
    }

    /// Panels of a block that is read where it lies.
    pub(super) fn panels(
        &self,
        lines: &Range<usize>,
        depth: &Range<usize>,
        width: usize,
    ) -> Panels<C> {
        let at = lines.start as isize * self.line + depth.start as isize * self.depth;
        let data = self.data.as_ptr().wrapping_offset(self.start as isize + at);
        let panel = width as isize * self.line;
        Panels { data, panel, line: self.line, depth: self.depth, ..Panels::even(usize::MAX) }
    }
}

/// A block of an operand, packed into `space`.
pub(super) fn packed<C: Compute, X: Operand<C>>(
    operand: &X,
    batch: usize,
    lines: Range<usize>,
    depth: &Range<usize>,
    width: usize,
    space: &mut [C],
) -> Panels<C> {
    let out = &mut space[..lines.len().next_multiple_of(width) * depth.len()];
    operand.pack(batch, lines, depth.clone(), width, out);
    Panels::packed(out, depth.len(), width)
}

//! A graph in pieces along an axis of what comes in: one loop over the pieces, and one more iteration for what is left.
//! The batch in pieces (`variants/batch`) and segments in pieces (`segments`) are made of it.
//!
//! In the order that data flows: `node` says what one node makes of pieces, `parts` which nodes run for every piece,
//! `body` makes those a graph and `build` the loop around it. Only where all of them agree is there a graph in pieces.
//!
//! Decision: `docs/decisions/micro-batches-are-a-loop.md`.

pub mod body;
pub mod build;
pub mod node;
pub mod parts;

use tonnage_core::dim::Dim;

/// A length in pieces: as many of `len` as there are, and what is left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PieceOf {
    /// The length of the axis that is cut.
    pub whole: usize,
    /// The length of a piece.
    pub len: usize,
}

impl PieceOf {
    /// That many equal pieces of a length; `None` where it is not a multiple.
    pub fn equal(whole: usize, pieces: usize) -> Option<PieceOf> {
        let len = whole.checked_div(pieces).filter(|len| *len > 0 && len * pieces == whole)?;
        Some(PieceOf { whole, len })
    }

    /// How many whole pieces there are.
    pub fn count(self) -> usize {
        self.whole / self.len.max(1)
    }

    /// What is left behind them.
    pub fn rest(self) -> Option<PieceOf> {
        let len = self.whole % self.len.max(1);
        (len > 0).then_some(PieceOf { whole: self.whole, len })
    }

    /// The piece of an axis that is cut with the one that this is of: a multiple or an even part of it.
    pub fn part_of(self, dim: &Dim) -> Option<Dim> {
        let part = dim.known()?.checked_mul(self.len)?;
        (part > 0 && part.is_multiple_of(self.whole)).then_some(Dim::Known(part / self.whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_and_what_is_left_make_the_whole() {
        for whole in 1..40 {
            for len in 1..=whole {
                let piece = PieceOf { whole, len };
                let rest = piece.rest().map_or(0, |rest| rest.len);
                assert_eq!(piece.count() * len + rest, whole);
                assert_eq!(piece.part_of(&Dim::Known(3 * whole)), Some(Dim::Known(3 * len)));
                assert_eq!(PieceOf::equal(whole, len).is_some(), whole % len == 0);
            }
        }
        assert_eq!(PieceOf { whole: 10, len: 4 }.part_of(&Dim::Known(5)), Some(Dim::Known(2)));
        assert_eq!(PieceOf { whole: 10, len: 3 }.part_of(&Dim::Known(5)), None);
    }
}

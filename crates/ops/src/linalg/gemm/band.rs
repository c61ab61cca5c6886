//! Bands: a part of the left operand packed once for many strips of tiles, each element for all lines that share it.
//!
//! The lines of neighbours overlap where they are windows of one image. In a band every pixel is there once, and lines
//! and steps of depth both are walks over it.
//!
//! Decision: `docs/decisions/convolution-bands.md`.

/// Places in memory, counted in elements: `step` apart in runs, and runs `next` apart. After the first `first` runs, and
/// then after every `turns` of them, all lies further on by `leap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Walk {
    /// From one place to the next.
    pub step: usize,
    /// How many places are a run; at least 1.
    pub run: usize,
    /// From the start of a run to the start of the next.
    pub next: usize,
    /// Runs before the first leap; at least 1.
    pub first: usize,
    /// Runs from one leap to the next; at least 1.
    pub turns: usize,
    /// What is left out after those runs.
    pub leap: usize,
}

impl Walk {
    /// Runs without leaps.
    pub const fn even(step: usize, run: usize, next: usize) -> Walk {
        Walk { step, run, next, first: usize::MAX, turns: usize::MAX, leap: 0 }
    }

    /// Where place `i` is.
    ///
    /// ```
    /// use tonnage_ops::linalg::gemm::Walk;
    /// let walk = Walk { first: 1, turns: 2, leap: 100, ..Walk::even(1, 2, 10) };
    /// let places: Vec<usize> = (0..8).map(|i| walk.at(i)).collect();
    /// assert_eq!(places, [0, 1, 110, 111, 120, 121, 230, 231]);
    /// ```
    pub fn at(&self, i: usize) -> usize {
        let (runs, within) = (i / self.run, i % self.run);
        let leaps = if runs < self.first { 0 } else { 1 + (runs - self.first) / self.turns };
        within * self.step + runs * self.next + leaps * self.leap
    }
}

/// A part of an operand in packing space: the element of a line and a step of depth lies where both walks are, added.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// The line that stands first in the walk over lines.
    pub origin: usize,
    /// Over lines.
    pub lines: Walk,
    /// Over steps of depth, from the first one that was packed.
    pub depth: Walk,
}

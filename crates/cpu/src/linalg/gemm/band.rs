//! Bands: a part of the left operand packed once for many strips of tiles, each element for all rows that share it.
//!
//! Rows of the im2col matrix overlap where they are windows of one image. In a band every pixel is there once, and rows
//! and steps of K both are stride patterns over it.
//!
//! Decision: `docs/decisions/convolution-bands.md`.

/// Positions in memory, counted in elements: `step` apart in runs, and runs `next` apart. After the first `first` runs, and
/// then after every `period` of them, all lies further on by `leap`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridePattern {
    /// From one position to the next.
    pub step: usize,
    /// How many positions are a run; at least 1.
    pub run: usize,
    /// From the start of a run to the start of the next.
    pub next: usize,
    /// Runs before the first leap; at least 1.
    pub first: usize,
    /// Runs from one leap to the next; at least 1.
    pub period: usize,
    /// What is left out after those runs.
    pub leap: usize,
}

impl StridePattern {
    /// Runs without leaps.
    pub const fn even(step: usize, run: usize, next: usize) -> StridePattern {
        StridePattern { step, run, next, first: usize::MAX, period: usize::MAX, leap: 0 }
    }

    /// Where position `i` is.
    ///
    /// ```
    /// use tonnage_cpu::linalg::gemm::StridePattern;
    /// let pattern = StridePattern { first: 1, period: 2, leap: 100, ..StridePattern::even(1, 2, 10) };
    /// let positions: Vec<usize> = (0..8).map(|i| pattern.at(i)).collect();
    /// assert_eq!(positions, [0, 1, 110, 111, 120, 121, 230, 231]);
    /// ```
    pub fn at(&self, i: usize) -> usize {
        let (runs, within) = (i / self.run, i % self.run);
        let leaps = if runs < self.first { 0 } else { 1 + (runs - self.first) / self.period };
        within * self.step + runs * self.next + leaps * self.leap
    }
}

/// A part of an operand in packing space: the element of a row and a step of K lies at the sum of both patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Band {
    /// The row that stands first in the pattern over rows.
    pub origin: usize,
    /// Over rows.
    pub mn: StridePattern,
    /// Over steps of K, from the first one that was packed.
    pub k: StridePattern,
}

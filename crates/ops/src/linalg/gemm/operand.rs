//! Operands: anything that can write panels of itself into packing space.
//!
//! The left operand's *lines* are its rows, the right one's are its columns; both run along *depth*, the
//! axis that is summed over. So one trait serves both sides, and a transpose is a swap of two strides.

use std::ops::Range;

use tonnage_core::{ErrorKind, Result, bf16};

use super::band::Band;
use super::compute::{Compute, Reads};
use super::kernel::{Level, Stream};
use super::pack;

/// When the left operand is packed. (The right one is packed in blocks of panels.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packs {
    /// Many rows at once, for all columns: where packing is transposing.
    Blocks,
    /// The rows of one strip of tiles right before they are read, from L1: where packing is copying.
    Strips {
        /// Depth is best cut at multiples of it. Where it is more than 1, steps of depth lie side by side.
        unit: usize,
        /// So many lines belong together: strips do not reach from one such row into the next.
        row: usize,
    },
    /// Once for all lines of a block, each element for all lines that share it.
    Band {
        /// The cut along depth.
        deep: usize,
        /// The most lines of a band.
        tall: usize,
        /// So many lines belong together, as above.
        row: usize,
        /// Elements of a band.
        space: usize,
        /// Steps of depth that lie side by side; 1 where lines do.
        along: usize,
    },
}

impl Packs {
    /// How many lines belong together.
    pub(super) fn row(&self) -> usize {
        match *self {
            Packs::Blocks => usize::MAX,
            Packs::Strips { row, .. } | Packs::Band { row, .. } => row.max(1),
        }
    }

    /// Steps of depth that lie side by side where it is packed.
    pub(super) fn along(&self) -> usize {
        match *self {
            Packs::Blocks => 1,
            Packs::Strips { unit: along, .. } | Packs::Band { along, .. } => along,
        }
    }
}

/// How the lines of a strip lie where they were packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// From one line to the next.
    pub line: usize,
    /// From one step of depth to the next.
    pub depth: usize,
    /// Steps of depth, at least 1, after which all lie further on by `jump` besides.
    pub run: usize,
    /// See `run`.
    pub jump: usize,
}

/// One side of a product.
///
/// Implement it to multiply what is not a matrix in memory: the windows of a convolution, a tensor that is
/// still a recipe. Values that are read twice must be the same twice.
pub trait Operand<C: Compute>: Sync {
    /// Writes a block into `out`: panels of `width` lines one after the other, and in each panel, for each
    /// step of depth, its `width` elements side by side. The last panel is filled up with zeros.
    ///
    /// `out` holds `lines.len().div_ceil(width) * width * depth.len()` elements. See [`pack_with`].
    fn pack(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    );

    /// Where the elements of one matrix already lie in memory as `C`: how to read them there.
    fn direct(&self, batch: usize) -> Option<Direct<'_, C>>;

    /// Whether all elements are `bf16`, and where they are. Products of two such operands may be computed in pairs, with
    /// other roundings: so the answer must not depend on where the elements lie.
    fn narrow(&self, _batch: usize) -> Narrow<'_> {
        Narrow::No
    }

    /// Adds up, for each of a few rows, multiples of what lies at each step of depth, widened as it is read: `few` has the
    /// factors, those of a step side by side, and `sums` the rows. False where it does not lie so, or has nothing to widen.
    #[doc(hidden)]
    fn stream(
        &self,
        _level: Level,
        _batch: usize,
        _few: &[C],
        _block: [Range<usize>; 2],
        _sums: &mut [C],
    ) -> bool {
        false
    }

    /// True where the elements of one line are best read one after the other, as where they lie side by side in
    /// memory.
    fn runs_along_depth(&self) -> bool;

    /// How it is best packed where it is the left operand.
    fn packs(&self) -> Packs;

    /// Packs the lines of one strip of tiles, as it likes, into `lines.len() * depth.len()` elements at most. Elements may
    /// be there once for several lines.
    fn strip(&self, batch: usize, lines: Range<usize>, depth: Range<usize>, out: &mut [C])
    -> Strip;

    /// Packs a band for some lines, where it [`packs`](Operand::packs) so and lies so that it can; strips otherwise.
    fn band(
        &self,
        _batch: usize,
        _lines: Range<usize>,
        _depth: Range<usize>,
        _out: &mut [C],
    ) -> Option<Band> {
        None
    }

    /// Refuses sizes that the operand does not have.
    fn check(&self, batch: usize, lines: usize, depth: usize) -> Result<()>;
}

/// What an operand says of `bf16`.
#[derive(Debug, Clone, Copy)]
pub enum Narrow<'a> {
    /// There may be other elements.
    No,
    /// They all are, and lie in memory.
    InMemory(Direct<'a, bf16>),
    /// They all are, and are packed as their values in what is computed in.
    Packed,
}

/// A matrix in memory, in the terms of an [`Operand`]. Strides count elements.
#[derive(Debug, Clone, Copy)]
pub struct Direct<'a, C> {
    /// What the strides walk over.
    pub data: &'a [C],
    /// Where the first element is.
    pub start: usize,
    /// From one line to the next.
    pub line: isize,
    /// From one step of depth to the next.
    pub depth: isize,
}

impl<'a, C> Direct<'a, C> {
    /// A part of a line, where the steps of depth lie side by side.
    pub(super) fn run(&self, line: usize, depth: Range<usize>) -> &'a [C] {
        let at = self.start as isize + line as isize * self.line + depth.start as isize;
        &self.data[at as usize..][..depth.len()]
    }

    /// True where all of `lines` by `depth` lies in the slice.
    pub(super) fn holds(&self, lines: usize, depth: usize) -> bool {
        within(self.data.len(), self.start, &[(lines, self.line), (depth, self.depth)])
    }
}

/// True where every element of a strided block lies in `0..len`; an empty block always does.
fn within(len: usize, start: usize, axes: &[(usize, isize)]) -> bool {
    if axes.iter().any(|&(count, _)| count == 0) {
        return true;
    }
    let (mut low, mut high) = (start as i128, start as i128);
    for &(count, stride) in axes {
        let reach = (count as i128 - 1) * stride as i128;
        low += reach.min(0);
        high += reach.max(0);
    }
    low >= 0 && high < len as i128
}

/// How a batch of matrices lies in a slice. Strides count elements and may be anything: swapped for a
/// transpose, 0 to repeat, negative to reverse.
///
/// ```
/// use tonnage_ops::linalg::gemm::Strides;
/// // A [5, 3] matrix that is read as its transpose.
/// assert_eq!(Strides::rows_of(3).transposed(), Strides { start: 0, batch: 0, row: 1, col: 3 });
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Where the first element of the first matrix is.
    pub start: usize,
    /// From one matrix of the batch to the next.
    pub batch: isize,
    /// From one row to the next.
    pub row: isize,
    /// From one column to the next.
    pub col: isize,
}

impl Strides {
    /// One matrix of rows with `cols` elements, one after the other.
    pub const fn rows_of(cols: usize) -> Strides {
        Strides { start: 0, batch: 0, row: cols as isize, col: 1 }
    }

    /// The same elements with rows and columns swapped.
    #[must_use]
    pub const fn transposed(self) -> Strides {
        Strides { row: self.col, col: self.row, ..self }
    }

    /// The same matrices, `stride` elements apart.
    #[must_use]
    pub const fn every(self, stride: isize) -> Strides {
        Strides { batch: stride, ..self }
    }
}

/// Matrices in memory, at any strides.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a, T> {
    data: &'a [T],
    start: usize,
    batch: isize,
    line: isize,
    depth: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// For the left side: `[rows, depth]`.
    pub const fn left(data: &'a [T], strides: Strides) -> Matrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        Matrix { data, start, batch, line: row, depth: col }
    }

    /// For the right side: `[depth, cols]`.
    pub const fn right(data: &'a [T], strides: Strides) -> Matrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        Matrix { data, start, batch, line: col, depth: row }
    }

    /// Where a matrix of the batch starts.
    fn start_of(&self, batch: usize) -> isize {
        self.start as isize + batch as isize * self.batch
    }
}

impl<C: Compute, T: Reads<C>> Operand<C> for Matrix<'_, T> {
    fn pack(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        let start = self.start_of(batch)
            + lines.start as isize * self.line
            + depth.start as isize * self.depth;
        let source = pack::Source { data: self.data, start, line: self.line, depth: self.depth };
        pack::strided(&source, lines.len(), depth.len(), width, out);
    }

    fn direct(&self, batch: usize) -> Option<Direct<'_, C>> {
        let data = T::as_computed(self.data)?;
        let start = self.start_of(batch) as usize;
        Some(Direct { data, start, line: self.line, depth: self.depth })
    }

    fn narrow(&self, batch: usize) -> Narrow<'_> {
        let start = self.start_of(batch) as usize;
        let at = |data| Direct { data, start, line: self.line, depth: self.depth };
        T::as_narrow(self.data).map_or(Narrow::No, |data| Narrow::InMemory(at(data)))
    }

    fn stream(
        &self,
        level: Level,
        batch: usize,
        few: &[C],
        [lines, depth]: [Range<usize>; 2],
        sums: &mut [C],
    ) -> bool {
        let start = self.start_of(batch) + lines.start as isize + depth.start as isize * self.depth;
        let (count, len) = (few.len() / depth.len().max(1), lines.len());
        let (data, depth_stride, depth) = (self.data, self.depth, depth.len());
        let rows = Stream { few, count, data, start, depth_stride, depth, len };
        self.line == 1 && T::stream(level, &rows, sums)
    }

    fn runs_along_depth(&self) -> bool {
        self.depth == 1
    }

    fn packs(&self) -> Packs {
        Packs::Blocks
    }

    fn strip(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        out: &mut [C],
    ) -> Strip {
        let (count, deep) = (lines.len(), depth.len());
        Operand::<C>::pack(self, batch, lines, depth, count, out);
        Strip { line: 1, depth: count, run: deep.max(1), jump: 0 }
    }

    fn check(&self, batch: usize, lines: usize, depth: usize) -> Result<()> {
        let axes = [(batch, self.batch), (lines, self.line), (depth, self.depth)];
        if within(self.data.len(), self.start, &axes) {
            return Ok(());
        }
        let what = format!(
            "strides {}, {}, {} from {} over {batch} matrices of {lines} by {depth} leave a slice of {} elements",
            self.batch,
            self.line,
            self.depth,
            self.start,
            self.data.len(),
        );
        let help = "use strides that stay inside".to_string();
        Err(ErrorKind::BadArgument { op: "matmul", what, help }.into())
    }
}

/// The layout of [`Operand::pack`], filled element by element: `value(line, depth)`, both counted from the
/// block's start.
///
/// ```
/// use tonnage_ops::linalg::gemm::pack_with;
/// let mut out = [0; 8];
/// pack_with(3, 2, 2, &mut out, |line, depth| 10 * (line as i32 + 1) + depth as i32);
/// assert_eq!(out, [10, 20, 11, 21, 30, 0, 31, 0]);
/// ```
pub fn pack_with<C: Compute>(
    lines: usize,
    depth: usize,
    width: usize,
    out: &mut [C],
    value: impl Fn(usize, usize) -> C,
) {
    if depth == 0 || width == 0 {
        return;
    }
    for (first, panel) in (0..lines).step_by(width).zip(out.chunks_exact_mut(width * depth)) {
        let count = width.min(lines - first);
        for (k, run) in panel.chunks_exact_mut(width).enumerate() {
            for (i, x) in run[..count].iter_mut().enumerate() {
                *x = value(first + i, k);
            }
            run[count..].fill(C::ZERO);
        }
    }
}

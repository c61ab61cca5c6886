//! Operands: anything that can write panels of itself into packing space.
//!
//! Both operands have an *MN* index (rows of the left operand, M; columns of the right one, N) and a *K* index, the
//! axis that is summed over. So one trait serves both sides, and a transpose is a swap of two strides.

use std::ops::Range;

use tonnage_core::{ErrorKind, Result, bf16};
use tonnage_simd::product::{Compute, GemmLevel, GemvStream, Reads};

use super::band::Band;
use super::pack;

/// When the left operand is packed. (The right one is packed in blocks of panels.)
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packs {
    /// Many rows at once, for all columns: where packing is transposing.
    Blocks,
    /// The rows of one strip of tiles right before they are read, from L1: where packing is copying.
    Strips {
        /// K is best cut at multiples of it. Where it is more than 1, steps of K lie side by side.
        unit: usize,
        /// Rows that belong together: strips do not reach from one such group into the next.
        row: usize,
    },
    /// Once for all rows of a block, each element for all rows that share it.
    Band {
        /// The cut along K.
        k_block: usize,
        /// The most rows of a band.
        tall: usize,
        /// Rows that belong together, as above.
        row: usize,
        /// Elements of a band.
        space: usize,
        /// Steps of K that lie side by side; 1 where rows do.
        along: usize,
    },
}

impl Packs {
    /// How many rows belong together.
    pub(super) fn row(&self) -> usize {
        match *self {
            Packs::Blocks => usize::MAX,
            Packs::Strips { row, .. } | Packs::Band { row, .. } => row.max(1),
        }
    }

    /// Steps of K that lie side by side where it is packed.
    pub(super) fn along(&self) -> usize {
        match *self {
            Packs::Blocks => 1,
            Packs::Strips { unit: along, .. } | Packs::Band { along, .. } => along,
        }
    }
}

/// How the rows of a strip lie where they were packed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strip {
    /// From one row or column to the next.
    pub mn_stride: usize,
    /// From one step of K to the next.
    pub k_stride: usize,
    /// Steps of K, at least 1, after which all lie further on by `jump` besides.
    pub run: usize,
    /// See `run`.
    pub jump: usize,
}

/// One side of a product.
///
/// Implement it to multiply what is not a matrix in memory: the windows of a convolution, a tensor that is
/// still a recipe. Values that are read twice must be the same twice.
pub trait GemmOperand<C: Compute>: Sync {
    /// Writes a block into `out`: panels of `width` rows or columns one after the other, and in each panel, for each
    /// step of K, its `width` elements side by side. The last panel is filled up with zeros.
    ///
    /// `out` holds `mn_range.len().div_ceil(width) * width * k_range.len()` elements. See [`pack_with`].
    fn pack(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [C],
    );

    /// Where the elements of one matrix already lie in memory as `C`: how to read them there.
    fn direct(&self, batch: usize) -> Option<DirectMatrix<'_, C>>;

    /// Whether all elements are `bf16`, and where they are. Products of two such operands may be computed by bf16 dot
    /// instructions, with other roundings: so the answer must not depend on where the elements lie.
    fn bf16_source(&self, _batch: usize) -> Bf16Source<'_> {
        Bf16Source::No
    }

    /// Adds up, for each of a few rows, multiples of what lies at each step of K, widened as it is read: `thin` has the
    /// factors, those of a step side by side, and `sums` the rows. False where it does not lie so, or has nothing to widen.
    #[doc(hidden)]
    fn stream(
        &self,
        _level: GemmLevel,
        _batch: usize,
        _thin: &[C],
        _block: [Range<usize>; 2],
        _sums: &mut [C],
    ) -> bool {
        false
    }

    /// True where the elements of one row or column are best read along K, one after the other, as where they lie side by side in
    /// memory.
    fn is_k_major(&self) -> bool;

    /// How it is best packed where it is the left operand.
    fn packs(&self) -> Packs;

    /// Packs the rows of one strip of tiles, as it likes, into `mn_range.len() * k_range.len()` elements at most. Elements may
    /// be there once for several rows.
    fn strip(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        out: &mut [C],
    ) -> Strip;

    /// Packs a band for some rows, where it [`packs`](GemmOperand::packs) so and lies so that it can; strips otherwise.
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
    fn check(&self, batch: usize, mn_len: usize, k: usize) -> Result<()>;
}

/// What an operand says of `bf16`.
#[derive(Debug, Clone, Copy)]
pub enum Bf16Source<'a> {
    /// There may be other elements.
    No,
    /// They all are, and lie in memory.
    InMemory(DirectMatrix<'a, bf16>),
    /// They all are, and are packed as their values in what is computed in.
    Packed,
}

/// A matrix in memory, in the terms of a [`GemmOperand`]. Strides count elements.
#[derive(Debug, Clone, Copy)]
pub struct DirectMatrix<'a, C> {
    /// What the strides walk over.
    pub data: &'a [C],
    /// Where the first element is.
    pub start: usize,
    /// From one row or column to the next.
    pub mn_stride: isize,
    /// From one step of K to the next.
    pub k_stride: isize,
}

impl<'a, C> DirectMatrix<'a, C> {
    /// A part of a row or column of a K-major matrix.
    pub(super) fn run(&self, mn: usize, k_range: Range<usize>) -> &'a [C] {
        let at = self.start as isize + mn as isize * self.mn_stride + k_range.start as isize;
        &self.data[at as usize..][..k_range.len()]
    }

    /// True where all of `mn_len` by `k` lies in the slice.
    pub(super) fn holds(&self, mn_len: usize, k: usize) -> bool {
        within(self.data.len(), self.start, &[(mn_len, self.mn_stride), (k, self.k_stride)])
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
/// use tonnage_cpu::linalg::gemm::Strides;
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
    mn_stride: isize,
    k_stride: isize,
}

impl<'a, T> Matrix<'a, T> {
    /// For the left side: `[rows, k]`.
    pub const fn left(data: &'a [T], strides: Strides) -> Matrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        Matrix { data, start, batch, mn_stride: row, k_stride: col }
    }

    /// For the right side: `[k, cols]`.
    pub const fn right(data: &'a [T], strides: Strides) -> Matrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        Matrix { data, start, batch, mn_stride: col, k_stride: row }
    }

    /// Where a matrix of the batch starts.
    fn start_of(&self, batch: usize) -> isize {
        self.start as isize + batch as isize * self.batch
    }
}

impl<C: Compute, T: Reads<C>> GemmOperand<C> for Matrix<'_, T> {
    fn pack(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        let start = self.start_of(batch)
            + mn_range.start as isize * self.mn_stride
            + k_range.start as isize * self.k_stride;
        let source = pack::StridedSource {
            data: self.data,
            start,
            mn_stride: self.mn_stride,
            k_stride: self.k_stride,
        };
        pack::strided(&source, mn_range.len(), k_range.len(), width, out);
    }

    fn direct(&self, batch: usize) -> Option<DirectMatrix<'_, C>> {
        let data = T::as_computed(self.data)?;
        let start = self.start_of(batch) as usize;
        Some(DirectMatrix { data, start, mn_stride: self.mn_stride, k_stride: self.k_stride })
    }

    fn bf16_source(&self, batch: usize) -> Bf16Source<'_> {
        let start = self.start_of(batch) as usize;
        let at =
            |data| DirectMatrix { data, start, mn_stride: self.mn_stride, k_stride: self.k_stride };
        T::as_bf16(self.data).map_or(Bf16Source::No, |data| Bf16Source::InMemory(at(data)))
    }

    fn stream(
        &self,
        level: GemmLevel,
        batch: usize,
        thin: &[C],
        [mn_range, k_range]: [Range<usize>; 2],
        sums: &mut [C],
    ) -> bool {
        let start =
            self.start_of(batch) + mn_range.start as isize + k_range.start as isize * self.k_stride;
        let (count, len) = (thin.len() / k_range.len().max(1), mn_range.len());
        let (data, k_stride, k) = (self.data, self.k_stride, k_range.len());
        let rows = GemvStream { thin, count, data, start, k_stride, k, len };
        self.mn_stride == 1 && T::stream(level, &rows, sums)
    }

    fn is_k_major(&self) -> bool {
        self.k_stride == 1
    }

    fn packs(&self) -> Packs {
        Packs::Blocks
    }

    fn strip(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        out: &mut [C],
    ) -> Strip {
        let (count, k_block) = (mn_range.len(), k_range.len());
        GemmOperand::<C>::pack(self, batch, mn_range, k_range, count, out);
        Strip { mn_stride: 1, k_stride: count, run: k_block.max(1), jump: 0 }
    }

    fn check(&self, batch: usize, mn_len: usize, k: usize) -> Result<()> {
        let axes = [(batch, self.batch), (mn_len, self.mn_stride), (k, self.k_stride)];
        if within(self.data.len(), self.start, &axes) {
            return Ok(());
        }
        let what = format!(
            "strides {}, {}, {} from {} over {batch} matrices of {mn_len} by {k} leave a slice of {} elements",
            self.batch,
            self.mn_stride,
            self.k_stride,
            self.start,
            self.data.len(),
        );
        let help = "use strides that stay inside".to_string();
        Err(ErrorKind::BadArgument { op: "matmul", what, help }.into())
    }
}

/// The layout of [`GemmOperand::pack`], filled element by element: `value(mn, k)`, both counted from the
/// block's start.
///
/// ```
/// use tonnage_cpu::linalg::gemm::pack_with;
/// let mut out = [0; 8];
/// pack_with(3, 2, 2, &mut out, |mn, k| 10 * (mn as i32 + 1) + k as i32);
/// assert_eq!(out, [10, 20, 11, 21, 30, 0, 31, 0]);
/// ```
pub fn pack_with<C: Compute>(
    mn_len: usize,
    k_len: usize,
    width: usize,
    out: &mut [C],
    value: impl Fn(usize, usize) -> C,
) {
    if k_len == 0 || width == 0 {
        return;
    }
    for (first, panel) in (0..mn_len).step_by(width).zip(out.chunks_exact_mut(width * k_len)) {
        let count = width.min(mn_len - first);
        for (k, run) in panel.chunks_exact_mut(width).enumerate() {
            for (i, x) in run[..count].iter_mut().enumerate() {
                *x = value(first + i, k);
            }
            run[count..].fill(C::ZERO);
        }
    }
}

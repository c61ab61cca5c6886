//! Operands of products that lie in memory, or outside of it and are read as they are packed.
//!
//! What is read goes through 16 KiB on the stack into the packing space, where every operand goes: a product with a matrix in a
//! file takes no more memory than one with a matrix in memory does. The sums are the same to the bit.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::error::Result;
use tonnage_core::recipe::Elements;

use super::gemm::{
    Bf16Source, Compute, DirectMatrix, GemmOperand, Matrix, Packs, Reads, Strides, Strip,
};

/// One side of a product.
pub(super) enum MaybeStored<'a, T> {
    Memory(Matrix<'a, T>),
    Stored(StoredMatrix<'a, T>),
}

/// Matrices outside of memory, MN-major or K-major.
#[derive(Clone, Copy)]
pub(super) struct StoredMatrix<'a, T> {
    from: &'a dyn Elements,
    start: usize,
    batch: isize,
    mn_stride: isize,
    k_stride: isize,
    of: PhantomData<T>,
}

impl<'a, T> StoredMatrix<'a, T> {
    /// For the left side: `[rows, k]`.
    pub fn left(from: &'a dyn Elements, strides: Strides) -> StoredMatrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        StoredMatrix { from, start, batch, mn_stride: row, k_stride: col, of: PhantomData }
    }

    /// For the right side: `[k, cols]`.
    pub fn right(from: &'a dyn Elements, strides: Strides) -> StoredMatrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        StoredMatrix { from, start, batch, mn_stride: col, k_stride: row, of: PhantomData }
    }

    /// Reads a block of `outer` runs of `inner` elements, each `apart` from the one before, and shows it in pieces: of
    /// which run, from which of its elements on.
    fn pieces<C: Compute>(
        &self,
        start: usize,
        (outer, apart): (usize, isize),
        inner: usize,
        mut show: impl FnMut(usize, usize, &[T]),
    ) where
        T: Reads<C>,
    {
        let mut space = [0u64; 2048];
        let space = cast_slice_mut::<u64, u8>(&mut space);
        let most = space.len() / size_of::<T>();
        // Runs that follow each other are one.
        let (runs, len) = match apart == inner as isize {
            true => (1, outer * inner),
            false => (outer, inner),
        };
        for run in 0..runs {
            let from = (start as isize + run as isize * apart) as u64;
            for first in (0..len).step_by(most) {
                let count = most.min(len - first);
                let bytes = &mut space[..count * size_of::<T>()];
                self.from.read(from + first as u64, bytes);
                let mut values: &[T] = cast_slice(bytes);
                let (mut o, mut i) = (run + first / inner, first % inner);
                while !values.is_empty() {
                    let (piece, rest) = values.split_at(values.len().min(inner - i));
                    show(o, i, piece);
                    (values, o, i) = (rest, o + 1, 0);
                }
            }
        }
    }
}

impl<C: Compute, T: Reads<C>> GemmOperand<C> for StoredMatrix<'_, T> {
    fn pack(
        &self,
        batch: usize,
        mn_range: Range<usize>,
        k_range: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        let (count, k_block) = (mn_range.len(), k_range.len());
        if count == 0 || k_block == 0 || width == 0 {
            return;
        }
        let start = self.start as isize
            + batch as isize * self.batch
            + mn_range.start as isize * self.mn_stride
            + k_range.start as isize * self.k_stride;
        let start = start as usize;
        // The last panel is padded.
        let whole = count / width * width;
        if whole < count {
            out[whole * k_block..][..width * k_block].fill(C::ZERO);
        }
        let panel = |mn: usize| mn / width * width * k_block + mn % width;
        if self.k_stride == 1 {
            self.pieces(start, (count, self.mn_stride), k_block, |mn, first, values| {
                let to = &mut out[panel(mn) + first * width..];
                to.iter_mut().step_by(width).zip(values).for_each(|(to, x)| *to = x.read());
            });
        } else {
            self.pieces(start, (k_block, self.k_stride), count, |step, first, mut values| {
                let mut mn = first;
                while !values.is_empty() {
                    let together = (width - mn % width).min(values.len());
                    let (now, rest) = values.split_at(together);
                    let to = &mut out[panel(mn) + step * width..][..together];
                    to.iter_mut().zip(now).for_each(|(to, x)| *to = x.read());
                    (values, mn) = (rest, mn + together);
                }
            });
        }
    }

    fn direct(&self, _: usize) -> Option<DirectMatrix<'_, C>> {
        None
    }

    fn bf16_source(&self, _: usize) -> Bf16Source<'_> {
        T::as_bf16(&[]).map_or(Bf16Source::No, |_| Bf16Source::Packed)
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

    // Whoever reads it knows how long it is.
    fn check(&self, _: usize, _: usize, _: usize) -> Result<()> {
        Ok(())
    }
}

impl<T> MaybeStored<'_, T> {
    /// As products take it.
    pub fn operand<C: Compute>(&self) -> &dyn GemmOperand<C>
    where
        T: Reads<C>,
    {
        match self {
            MaybeStored::Memory(own) => own,
            MaybeStored::Stored(own) => own,
        }
    }
}

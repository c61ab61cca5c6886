//! Operands of products that lie in memory, or outside of it and are read as they are packed.
//!
//! What is read goes through 16 KiB on the stack into the packing space, where every operand goes: a product with a matrix in a
//! file takes no more memory than one with a matrix in memory does. The sums are the same to the bit.

use std::marker::PhantomData;
use std::ops::Range;

use bytemuck::{cast_slice, cast_slice_mut};
use tonnage_core::error::Result;
use tonnage_core::recipe::Elements;

use super::gemm::forced::Level;
use super::gemm::{Compute, Direct, Matrix, Narrow, Operand, Packs, Reads, Strides, Strip};

/// One side of a product.
pub(super) enum Side<'a, T> {
    Memory(Matrix<'a, T>),
    Stored(StoredMatrix<'a, T>),
}

/// Matrices outside of memory, of which lines or depth run along elements.
#[derive(Clone, Copy)]
pub(super) struct StoredMatrix<'a, T> {
    from: &'a dyn Elements,
    start: usize,
    batch: isize,
    line: isize,
    depth: isize,
    of: PhantomData<T>,
}

impl<'a, T> StoredMatrix<'a, T> {
    /// For the left side: `[rows, depth]`.
    pub fn left(from: &'a dyn Elements, strides: Strides) -> StoredMatrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        StoredMatrix { from, start, batch, line: row, depth: col, of: PhantomData }
    }

    /// For the right side: `[depth, cols]`.
    pub fn right(from: &'a dyn Elements, strides: Strides) -> StoredMatrix<'a, T> {
        let Strides { start, batch, row, col } = strides;
        StoredMatrix { from, start, batch, line: col, depth: row, of: PhantomData }
    }

    /// Reads a block of `outer` runs of `inner` elements, each `apart` from the one before, and shows it in pieces: of which run, from
    /// which of its elements on.
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

impl<C: Compute, T: Reads<C>> Operand<C> for StoredMatrix<'_, T> {
    fn pack(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        let (count, deep) = (lines.len(), depth.len());
        if count == 0 || deep == 0 || width == 0 {
            return;
        }
        let start = self.start as isize
            + batch as isize * self.batch
            + lines.start as isize * self.line
            + depth.start as isize * self.depth;
        let start = start as usize;
        // The last panel has lines that are not there.
        let whole = count / width * width;
        if whole < count {
            out[whole * deep..][..width * deep].fill(C::ZERO);
        }
        let panel = |line: usize| line / width * width * deep + line % width;
        if self.depth == 1 {
            self.pieces(start, (count, self.line), deep, |line, first, values| {
                let to = &mut out[panel(line) + first * width..];
                to.iter_mut().step_by(width).zip(values).for_each(|(to, x)| *to = x.read());
            });
        } else {
            self.pieces(start, (deep, self.depth), count, |step, first, mut values| {
                let mut line = first;
                while !values.is_empty() {
                    let together = (width - line % width).min(values.len());
                    let (now, rest) = values.split_at(together);
                    let to = &mut out[panel(line) + step * width..][..together];
                    to.iter_mut().zip(now).for_each(|(to, x)| *to = x.read());
                    (values, line) = (rest, line + together);
                }
            });
        }
    }

    fn direct(&self, _: usize) -> Option<Direct<'_, C>> {
        None
    }

    fn narrow(&self, _: usize) -> Narrow<'_> {
        T::as_narrow(&[]).map_or(Narrow::No, |_| Narrow::Packed)
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

    // Whoever reads it knows how long it is.
    fn check(&self, _: usize, _: usize, _: usize) -> Result<()> {
        Ok(())
    }
}

macro_rules! either {
    ($side:expr, $own:ident => $call:expr) => {
        match $side {
            Side::Memory($own) => $call,
            Side::Stored($own) => $call,
        }
    };
}

impl<C: Compute, T: Reads<C>> Operand<C> for Side<'_, T> {
    fn pack(
        &self,
        batch: usize,
        lines: Range<usize>,
        depth: Range<usize>,
        width: usize,
        out: &mut [C],
    ) {
        either!(self, own => Operand::<C>::pack(own, batch, lines, depth, width, out))
    }

    fn direct(&self, batch: usize) -> Option<Direct<'_, C>> {
        either!(self, own => Operand::<C>::direct(own, batch))
    }

    fn narrow(&self, batch: usize) -> Narrow<'_> {
        either!(self, own => Operand::<C>::narrow(own, batch))
    }

    fn stream(
        &self,
        level: Level,
        batch: usize,
        few: &[C],
        block: [Range<usize>; 2],
        sums: &mut [C],
    ) -> bool {
        either!(self, own => Operand::<C>::stream(own, level, batch, few, block, sums))
    }

    fn runs_along_depth(&self) -> bool {
        either!(self, own => Operand::<C>::runs_along_depth(own))
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
        either!(self, own => Operand::<C>::strip(own, batch, lines, depth, out))
    }

    fn check(&self, batch: usize, lines: usize, depth: usize) -> Result<()> {
        either!(self, own => Operand::<C>::check(own, batch, lines, depth))
    }
}

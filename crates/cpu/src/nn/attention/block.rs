//! What forward and backward share: a call's sizes and inputs, and the scores of one block of queries with one of keys.
//!
//! Scores lie with keys as rows and queries as columns. So keys and values are read where they lie, weights are the left
//! operand of both products without a copy, and maxima and sums of all queries run side by side in vectors. The queries
//! alone are transposed, once a block.

use std::ops::Range;

use tonnage_core::lent::In;
use tonnage_core::{Attrs, Bool, DType, Layout, Result};
use tonnage_ops::linalg::Size;
use tonnage_ops::nn::attention::attrs;

use crate::linalg::gemm::{
    Compute, Matrix, NoEpilogue, Reads, StridedSource, Strides, Target, gemm, pack_strided,
};
use crate::nn::float::{Float, Wide};
use crate::workers::{Workers, for_each_chunk};

/// Queries of a block.
pub(super) const QUERIES: usize = 128;

/// Keys of a block.
pub(super) const KEYS: usize = 256;

/// Sizes of a call.
#[derive(Debug, Clone, Copy)]
pub(super) struct AttentionSizes {
    pub batch: usize,
    pub heads: usize,
    /// Heads of queries for each head of keys.
    pub group: usize,
    pub queries: usize,
    pub keys: usize,
    /// Of queries and keys.
    pub width: usize,
    /// Of values.
    pub values: usize,
}

impl AttentionSizes {
    pub fn of(q: &[usize], k: &[usize], v: &[usize]) -> AttentionSizes {
        AttentionSizes {
            batch: q[0],
            heads: q[1],
            group: q[1].checked_div(k[1]).unwrap_or(0),
            queries: q[2],
            keys: k[2],
            width: q[3],
            values: v[3],
        }
    }

    /// Queries and keys of the largest blocks.
    pub fn block(&self) -> (usize, usize) {
        (self.queries.min(QUERIES), self.keys.min(KEYS))
    }
}

/// Elements cut off the front.
pub(super) fn front<'a, T>(of: &mut &'a mut [T], len: usize) -> &'a mut [T] {
    let (front, rest) = std::mem::take(of).split_at_mut(len);
    *of = rest;
    front
}

/// Heads of an input, at any strides.
#[derive(Clone, Copy)]
pub(super) struct HeadRows<'a, T> {
    pub data: &'a [T],
    start: usize,
    strides: [isize; 4],
}

impl<'a, T: tonnage_core::Element> HeadRows<'a, T> {
    pub fn of(input: &'a In) -> HeadRows<'a, T> {
        let strides = std::array::from_fn(|i| input.layout.strides.get(i).copied().unwrap_or(0));
        HeadRows { data: input.slice::<T>(), start: input.layout.offset, strides }
    }

    /// Rows from `row` on of one head, as a matrix.
    pub fn matrix(&self, batch: usize, head: usize, row: usize) -> Strides {
        let [b, h, t, d] = self.strides;
        let at = batch as isize * b + head as isize * h + row as isize * t;
        Strides { start: (self.start as isize + at) as usize, batch: 0, row: t, col: d }
    }

    /// Some rows of one head, transposed: `out` has a row for each element of theirs, each times `factor`.
    pub fn transposed<C>(
        &self,
        (batch, head): (usize, usize),
        rows: Range<usize>,
        width: usize,
        factor: C,
        out: &mut [C],
    ) where
        C: Compute + Wide,
        T: Reads<C>,
    {
        let Strides { start, row, col, .. } = self.matrix(batch, head, rows.start);
        let source =
            StridedSource { data: self.data, start: start as isize, mn_stride: row, k_stride: col };
        pack_strided(&source, rows.len(), width, rows.len(), out);
        out.iter_mut().for_each(|x| *x = *x * factor);
    }
}

/// What hides keys, or is added to scores; broadcast to `[batch, heads, queries, keys]`.
pub(super) struct AttentionMask<'a> {
    input: &'a In<'a>,
    layout: Layout,
}

/// The inputs of a call.
pub(super) struct AttentionInputs<'a, T> {
    pub lengths: AttentionSizes,
    pub q: HeadRows<'a, T>,
    pub k: HeadRows<'a, T>,
    pub v: HeadRows<'a, T>,
    pub mask: Option<AttentionMask<'a>>,
    pub scale: f64,
    causal: bool,
}

impl<'a, T: Float> AttentionInputs<'a, T> {
    pub fn of(op: &'static str, inputs: &'a [In], with: &Attrs) -> Result<AttentionInputs<'a, T>> {
        let (scale, causal, masked) = attrs(op, with)?;
        let sizes = |i: usize| &inputs[i].layout.sizes;
        let lengths = AttentionSizes::of(sizes(0), sizes(1), sizes(2));
        let AttentionSizes { batch, heads, queries, keys, .. } = lengths;
        let mask = inputs.last().filter(|_| masked).and_then(|input| {
            let layout = input.layout.broadcast_to(&[batch, heads, queries, keys])?;
            Some(AttentionMask { input, layout })
        });
        let [q, k, v] = std::array::from_fn(|i| HeadRows::of(&inputs[i]));
        Ok(AttentionInputs { lengths, q, k, v, mask, scale, causal })
    }

    /// How many keys, from the first on, a query sees.
    fn seen(&self, query: usize) -> usize {
        match self.causal {
            false => self.lengths.keys,
            true => (query + 1 + self.lengths.keys).saturating_sub(self.lengths.queries),
        }
    }

    /// Blocks of the keys that any of these queries sees.
    pub fn blocks(&self, queries: &Range<usize>) -> impl Iterator<Item = Range<usize>> + use<T> {
        let end = queries.end.checked_sub(1).map_or(0, |last| self.seen(last));
        let end = end.min(self.lengths.keys);
        (0..end).step_by(KEYS).map(move |first| first..end.min(first + KEYS))
    }

    /// Scores of a head's queries, which come transposed and scaled, with some of its keys.
    #[allow(clippy::too_many_arguments, reason = "where, what, to where, and with what")]
    pub fn scores(
        &self,
        (batch, head): (usize, usize),
        queries: &Range<usize>,
        keys: &Range<usize>,
        transposed: &[T::Compute],
        out: &mut [T::Compute],
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let width = queries.len();
        let size = Size::single(keys.len(), width, self.lengths.width);
        let rows = self.k.matrix(batch, head / self.lengths.group.max(1), keys.start);
        let left = Matrix::left(self.k.data, rows);
        let right = Matrix::right(transposed, Strides::rows_of(width));
        gemm(size, &left, &right, Target::new(out, size), &NoEpilogue, scratch, workers)?;
        if self.causal && keys.end > self.seen(queries.start) {
            // Row `key` is hidden from the queries before the first that sees it.
            for (row, key) in out.chunks_exact_mut(width).zip(keys.clone()) {
                let first = (key + self.lengths.queries).saturating_sub(self.lengths.keys);
                let hidden = first.saturating_sub(queries.start).min(width);
                row[..hidden].fill(T::Compute::LOWEST);
            }
        }
        if let Some(mask) = &self.mask {
            self.add_mask(mask, (batch, head), queries, keys, out, workers)?;
        }
        Ok(())
    }

    fn add_mask(
        &self,
        mask: &AttentionMask,
        (batch, head): (usize, usize),
        queries: &Range<usize>,
        keys: &Range<usize>,
        out: &mut [T::Compute],
        workers: &dyn Workers,
    ) -> Result<()> {
        let start = mask.layout.position(&[batch, head, queries.start, keys.start]) as isize;
        let (step, next) = (mask.layout.strides[2], mask.layout.strides[3]);
        let width = queries.len();
        // Some keys at a time, so that a whole cache line is used whichever way the mask runs.
        const AT_ONCE: usize = 16;
        for_each_chunk(workers, out, AT_ONCE * width, &|chunk, out| {
            let start = start + (chunk * AT_ONCE) as isize * next;
            let keys = out.len() / width;
            let at = |query: usize, key: usize| {
                (start + query as isize * step + key as isize * next) as usize
            };
            match mask.input.dtype {
                DType::Bool => {
                    let data = mask.input.slice::<Bool>();
                    for query in 0..width {
                        for key in 0..keys {
                            if !data[at(query, key)].get() {
                                out[key * width + query] = T::Compute::LOWEST;
                            }
                        }
                    }
                }
                _ => {
                    let data = mask.input.slice::<T>();
                    for query in 0..width {
                        for key in 0..keys {
                            let score = &mut out[key * width + query];
                            *score = *score + data[at(query, key)].read();
                        }
                    }
                }
            }
        })
    }
}

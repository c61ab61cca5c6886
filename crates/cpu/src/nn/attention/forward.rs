//! The kernel of `scaled_dot_product_attention`: the sum of the weights is found as the keys pass by. The largest score
//! so far is subtracted, and what was added up before is scaled down when it grows (an online softmax).

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, DType, Element};
use tonnage_ops::linalg::Size;
use tonnage_ops::nn::attention::computed;
use tonnage_ops::nn::attention::forward::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::block::{AttentionInputs, AttentionSizes, QUERIES, front};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::{
    Compute, Matrix, NoEpilogue, RowLayout, Strides, Target, gemm, scratch_bytes_within,
};
use crate::nn::float::{Float, Wide, with_float};
use crate::parallel::{cut, cut_bytes, for_each_item};
use crate::workers::{Single, Workers};

/// The kernel of [`ATTENTION`](tonnage_ops::nn::attention::forward::ATTENTION).
pub static ATTENTION: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Elements of a thread's scratch: transposed queries, scores, sums of values, and three numbers for each query.
fn parts(of: &AttentionSizes) -> [usize; 4] {
    let (queries, keys) = of.block();
    [of.width * queries, keys * queries, queries * of.values, 3 * queries]
}

/// Bytes of a thread's scratch, without and with what products take.
fn slot(of: &AttentionSizes, computed: DType) -> usize {
    let (queries, keys) = of.block();
    let within = Size::single(keys.max(queries), queries.max(of.values), of.width.max(keys));
    let product = scratch_bytes_within(within, computed, 1).as_usize();
    let element = |count: usize| match computed.size() {
        8 => cut_bytes::<f64>(count),
        _ => cut_bytes::<f32>(count),
    };
    parts(of).map(element).iter().sum::<usize>() + product.next_multiple_of(64)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let sizes = |i: usize| call.inputs.get(i).and_then(|ty| ty.shape.most());
    let (Some(q), Some(k), Some(v)) = (sizes(0), sizes(1), sizes(2)) else { return Bytes::ZERO };
    let of = AttentionSizes::of(&q, &k, &v);
    let blocks = of.batch * of.heads * of.queries.div_ceil(QUERIES);
    let slot = slot(&of, computed(call.inputs[0].dtype));
    Bytes::of(slot.saturating_mul(threads.min(blocks)))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let inputs = AttentionInputs::<T>::of(NAME, k.inputs, k.attrs)?;
    let of = inputs.lengths;
    let [means, lse, lost] = &mut k.outputs[..] else { return Ok(()) };
    let (means, lse, lost) = (means.slice(), lse.slice(), lost.slice());
    let blocks = QueryBlocks { of, means, lse, lost, head: 0, first: 0 };
    let slot = slot(&of, <T::Compute as Element>::DTYPE);
    for_each_item(k.workers, blocks, k.scratch, slot, &|block, slot| {
        attend(&inputs, block, slot, &Single(k.workers))
    })
}

/// A block of one head's queries, and where its results go.
struct QueryBlock<'a, T: Float> {
    batch_head: (usize, usize),
    queries: std::ops::Range<usize>,
    means: &'a mut [T],
    lse: &'a mut [T::Compute],
    lost: &'a mut [T::Compute],
}

/// All blocks, one after the other.
struct QueryBlocks<'a, T: Float> {
    of: AttentionSizes,
    means: &'a mut [T],
    lse: &'a mut [T::Compute],
    lost: &'a mut [T::Compute],
    head: usize,
    first: usize,
}

impl<'a, T: Float> Iterator for QueryBlocks<'a, T> {
    type Item = QueryBlock<'a, T>;

    fn next(&mut self) -> Option<QueryBlock<'a, T>> {
        let count = QUERIES.min(self.of.queries - self.first).min(self.lse.len());
        if count == 0 {
            return None;
        }
        let batch_head = (self.head / self.of.heads, self.head % self.of.heads);
        let queries = self.first..self.first + count;
        let means = front(&mut self.means, count * self.of.values);
        let (lse, lost) = (front(&mut self.lse, count), front(&mut self.lost, count));
        self.first = queries.end;
        if self.first == self.of.queries {
            (self.first, self.head) = (0, self.head + 1);
        }
        Some(QueryBlock { batch_head, queries, means, lse, lost })
    }
}

fn attend<T: Float>(
    inputs: &AttentionInputs<T>,
    block: QueryBlock<T>,
    mut slot: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let of = inputs.lengths;
    let (batch_head, count) = (block.batch_head, block.queries.len());
    let [transposed, scores, sums, stats] = parts(&of).map(|len| cut::<T::Compute>(&mut slot, len));
    let transposed = &mut transposed[..of.width * count];
    let sums = &mut sums[..count * of.values];
    let (largest, rest) = stats.split_at_mut(count);
    let (total, rest) = rest.split_at_mut(count);
    let shrink = &mut rest[..count];
    inputs.q.transposed(
        batch_head,
        block.queries.clone(),
        of.width,
        T::Compute::of(inputs.scale),
        transposed,
    );
    largest.fill(T::Compute::LOWEST);
    total.fill(T::Compute::ZERO);
    sums.fill(T::Compute::ZERO);
    for keys in inputs.blocks(&block.queries) {
        let scores = &mut scores[..keys.len() * count];
        inputs.scores(batch_head, &block.queries, &keys, transposed, scores, slot, workers)?;
        level().run(Weigh::<T::Compute> { scores, largest, total, shrink });
        if keys.start > 0 {
            for (sums, by) in sums.chunks_exact_mut(of.values).zip(&*shrink) {
                sums.iter_mut().for_each(|sum| *sum = *sum * *by);
            }
        }
        let size = Size::single(count, of.values, keys.len());
        let values = inputs.v.matrix(batch_head.0, batch_head.1 / of.group, keys.start);
        let left = Matrix::left(&*scores, Strides::rows_of(count).transposed());
        let right = Matrix::right(inputs.v.data, values);
        let add = keys.start > 0;
        let target =
            Target { data: &mut *sums, batch_stride: 0, rows: RowLayout::Every(of.values), add };
        gemm(size, &left, &right, target, &NoEpilogue, slot, workers)?;
    }
    let QueryBlock { means, lse, lost, .. } = block;
    level().run(Finish::<T> { sums, largest, total, means, lse, lost });
    Ok(())
}

/// Makes weights of scores, relative to the largest so far, and adds them up.
struct Weigh<'a, C> {
    /// A row for each key, a column for each query.
    scores: &'a mut [C],
    largest: &'a mut [C],
    total: &'a mut [C],
    /// What earlier weights have to be multiplied by.
    shrink: &'a mut [C],
}

/// Queries whose columns stay in L1 from one pass to the next.
const COLUMNS: usize = 32;

impl<C: Wide> SimdKernel for Weigh<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let Weigh { scores, largest, total, shrink } = self;
        let width = largest.len().max(1);
        for first in (0..largest.len()).step_by(COLUMNS) {
            let columns = first..width.min(first + COLUMNS);
            let count = columns.len();
            let (largest, total) = (&mut largest[columns.clone()], &mut total[columns.clone()]);
            let shrink = &mut shrink[columns.clone()];
            let mut most = [C::LOWEST; COLUMNS];
            let most = &mut most[..count];
            most.copy_from_slice(largest);
            for row in scores.chunks_exact(width) {
                for (most, x) in most.iter_mut().zip(&row[columns.clone()]) {
                    // NaN is passed over here, and shows in the sum.
                    *most = if *x > *most { *x } else { *most };
                }
            }
            let (mut base, mut sums) = ([C::ZERO; COLUMNS], [C::ZERO; COLUMNS]);
            let (base, sums) = (&mut base[..count], &mut sums[..count]);
            for i in 0..count {
                base[i] = if most[i] == C::LOWEST { C::ZERO } else { most[i] };
                shrink[i] = (largest[i] - base[i]).exp::<I>();
                sums[i] = total[i] * shrink[i];
            }
            for row in scores.chunks_exact_mut(width) {
                let row = &mut row[columns.clone()];
                for ((x, base), sum) in row.iter_mut().zip(&*base).zip(&mut *sums) {
                    let weight = (*x - *base).exp::<I>();
                    *x = weight;
                    *sum = *sum + weight;
                }
            }
            largest.copy_from_slice(most);
            total.copy_from_slice(sums);
        }
    }
}

/// Divides sums by those of their weights.
struct Finish<'a, T: Float> {
    sums: &'a mut [T::Compute],
    largest: &'a [T::Compute],
    total: &'a [T::Compute],
    means: &'a mut [T],
    lse: &'a mut [T::Compute],
    lost: &'a mut [T::Compute],
}

impl<T: Float> SimdKernel for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let width = self.sums.len() / self.lse.len().max(1);
        let rows = self.sums.chunks_exact_mut(width.max(1));
        let rows = rows.zip(self.means.chunks_exact_mut(width.max(1)));
        for ((sums, means), total) in rows.zip(self.total) {
            // Nothing was seen: nothing is there to be divided.
            let share = match *total == T::Compute::ZERO {
                true => T::Compute::ZERO,
                false => T::Compute::ONE / *total,
            };
            sums.iter_mut().for_each(|sum| *sum = *sum * share);
            T::store(sums, means);
        }
        let results = self.lse.iter_mut().zip(self.lost);
        for ((lse, lost), (largest, total)) in results.zip(self.largest.iter().zip(self.total)) {
            let log = total.ln::<I>();
            let sum = *largest + log;
            let part = sum - *largest;
            let exact = (*largest - (sum - part)) + (log - part);
            // Of an infinity nothing is lost.
            (*lse, *lost) = (sum, if sum.is_finite() { exact } else { T::Compute::ZERO });
        }
    }
}

//! `scaled_dot_product_attention`: means of values, weighed by how queries and keys agree.
//!
//! Weights are e to the power of scores, divided by their sum, which is found as the keys pass by: the largest score so far
//! is subtracted, and what was added up before is scaled down when it grows (an online softmax). A query that sees no key
//! gets zeros. NaN in a score that is seen makes its query's result NaN.
//!
//! The gradient recomputes the weights from the logarithm of their sum. Beside a large score, such as one that a mask adds
//! -1e9 to, that logarithm has lost its digits, so what its rounding lost is a result as well.

use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::workers::Single;
use tonnage_core::{Bytes, Call, DType, Element, Emit, OpDef, TensorType, Workers};

use super::block::{AttentionInputs, AttentionSizes, QUERIES, front};
use super::grad::ATTENTION_GRAD;
use super::{attrs, check, check_mask, computed, per_query, quadratic, runs, types_of};
use crate::emit;
use crate::linalg::gemm::{
    Compute, Matrix, NoEpilogue, RowLayout, Size, Strides, Target, gemm, scratch_bytes_within,
};
use crate::nn::float::{Float, Wide, with_float};
use crate::parallel::{cut, cut_bytes, for_each_item};
use crate::rules;
use crate::simd::{self, Isa};

const NAME: &str = "scaled_dot_product_attention";

/// `(q [b, h, t, d], k [b, g, s, d], v [b, g, s, e], mask?) -> (means [b, h, t, e], log-sum-exp of scores [b, h, t], what
/// its rounding lost [b, h, t])`; the rest as `Attrs::Attention`.
pub static ATTENTION: OpDef = OpDef {
    name: NAME,
    doc: "Means of values weighed by how queries and keys agree, and the logarithms of their sums in two parts.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch,
    saves: Saves::one_of(&[&[
        Save::Inputs.always(),
        Save::Output(0).always(),
        Save::Output(1).always(),
        Save::Output(2).always(),
    ]]),
    remat: Remat::Costly,
    cost: |call| super::costs(call, 2, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |case: super::Case| super::sample(&case.types(), case.mask(), case.attrs());
        super::cases().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let (_, _, masked) = attrs(NAME, call.attrs)?;
    rules::infer::count(call, 3 + masked as usize)?;
    let (q, k, v) = (&call.inputs[0], &call.inputs[1], &call.inputs[2]);
    check(NAME, q, k, v)?;
    if masked {
        check_mask(NAME, q, k, &call.inputs[3])?;
    }
    let made = [&q.shape[..3], &v.shape[3..]].concat();
    let means = TensorType { dtype: q.dtype, shape: made.into_iter().collect() };
    types_of([means, per_query(q), per_query(q)])
}

fn axes(call: &Call) -> AxisMap {
    let of = runs(call, &[0], &[1, 2]);
    let along = [of.batch, of.heads, of.queries];
    let values = AxisOf::Along(smallvec::smallvec![(2, 3)]);
    let means = along.iter().cloned().chain([values]).collect();
    super::axes(vec![means, along.to_vec(), along.to_vec()])
}

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

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (_, _, masked) = attrs(NAME, call.attrs)?;
    let [q, k, v] = [call.input(0)?, call.input(1)?, call.input(2)?];
    let (lse, lost) = (call.output(1)?, call.output(2)?);
    let means = &call.outputs[0];
    let g = match &call.grads[0] {
        Some(g) => g.clone(),
        None => emit::zeros(e, means)?,
    };
    // What each query's result has to do with all of its weights.
    let dtype = lse.ty().dtype;
    let wide = [emit::cast(e, g.clone(), dtype)?, emit::cast(e, call.output(0)?, dtype)?];
    let [g_wide, means] = wide;
    let product = emit::mul(e, g_wide, means)?;
    let mut shared = emit::sum(e, product, smallvec::smallvec![3], false)?;
    if let Some(g) = &call.grads[1] {
        shared = emit::sub(e, shared, g.clone())?;
    }
    // What rounding lost has no slope: nothing comes back from it.
    let mut inputs = vec![q, k, v, lse, lost, shared, g];
    if masked {
        inputs.push(call.input(3)?);
    }
    let mut grads = vec![None; call.inputs.len()];
    if masked && call.needs[3] && call.inputs[3].dtype.is_float() {
        let made = quadratic::mask_grad(e, &inputs, call.attrs)?;
        grads[3] = emit::dense(emit::sum_to(e, made, &call.inputs[3])?);
    }
    if call.needs[..3].contains(&true) {
        let made = e.emit(&ATTENTION_GRAD, inputs, call.attrs.clone(), Vec::new(), false)?;
        for (i, made) in made.into_iter().enumerate().filter(|(i, _)| call.needs[*i]) {
            grads[i] = emit::dense(made);
        }
    }
    Ok(grads)
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
        simd::level().run(Weigh::<T::Compute> { scores, largest, total, shrink });
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
    simd::level().run(Finish::<T> { sums, largest, total, means, lse, lost });
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

impl<C: Wide> simd::SimdKernel for Weigh<'_, C> {
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

impl<T: Float> simd::SimdKernel for Finish<'_, T> {
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

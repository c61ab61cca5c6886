//! The kernel of `attention_grad`: weights are recomputed block by block.
//!
//! A head of keys is one thread's, with all heads of queries that share it, so that every sum is added up in the same
//! order at any number of threads; with fewer heads than threads, all of them work on each product. Sums of 16-bit floats
//! are kept in f32 until they are complete.

use std::ops::Range;

use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::{Bytes, Call, DType};
use tonnage_ops::linalg::Size;
use tonnage_ops::nn::attention::computed;
use tonnage_ops::nn::attention::grad::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::block::{AttentionInputs, AttentionSizes, HeadRows, QUERIES, front};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::gemm::{
    self, Compute, Matrix, NoEpilogue, Strides, Target, gemm, scratch_bytes_within,
};
use crate::nn::float::{Float, Wide, with_float};
use crate::parallel::{ChunkedPair, cut, cut_bytes, for_each_item, for_each_pair};
use crate::workers::{Single, Workers, for_each_chunk};

/// The kernel of [`ATTENTION_GRAD`](tonnage_ops::nn::attention::grad::ATTENTION_GRAD).
pub static ATTENTION_GRAD: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Elements of the scratch that is used by one thread at a time: transposed queries and gradients, two blocks of scores, three
/// numbers for each query; and, where results are rounded, sums of queries, keys and values.
fn parts(of: &AttentionSizes, rounds: bool) -> [usize; 8] {
    let (queries, keys) = of.block();
    let sums = match rounds {
        true => [queries * of.width, of.keys * of.width, of.keys * of.values],
        false => [0; 3],
    };
    let scores = keys * queries;
    let transposed = [of.width * queries, of.values * queries];
    [transposed[0], transposed[1], scores, scores, 3 * queries, sums[0], sums[1], sums[2]]
}

/// Bytes of a slot whose products have this many threads.
fn slot(of: &AttentionSizes, dtype: DType, threads: usize) -> usize {
    let (queries, keys) = of.block();
    let (most, wide) = (keys.max(queries), of.width.max(of.values));
    let within = Size::single(most, most.max(wide), most.max(wide));
    let product = scratch_bytes_within(within, computed(dtype), threads).as_usize();
    let element = |count: usize| match dtype {
        DType::F64 => cut_bytes::<f64>(count),
        _ => cut_bytes::<f32>(count),
    };
    let rounds = dtype != computed(dtype);
    parts(of, rounds).map(element).iter().sum::<usize>() + product.next_multiple_of(64)
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let sizes = |i: usize| call.inputs.get(i).and_then(|ty| ty.shape.most());
    let (Some(q), Some(k), Some(v)) = (sizes(0), sizes(1), sizes(2)) else { return Bytes::ZERO };
    let (of, dtype) = (AttentionSizes::of(&q, &k, &v), call.inputs[0].dtype);
    let heads = of.batch * k[1];
    match heads >= threads {
        true => Bytes::of(slot(&of, dtype, 1).saturating_mul(threads)),
        false => Bytes::of(slot(&of, dtype, threads)),
    }
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let inputs = AttentionInputs::<T>::of(NAME, k.inputs, k.attrs)?;
    let of = inputs.lengths;
    let [dq, dk, dv] = &mut k.outputs[..] else { return Ok(()) };
    let heads = of.batch * of.heads.checked_div(of.group).unwrap_or(0);
    let numbers = [3, 4, 5].map(|i| &k.inputs[i]);
    let all = AttentionGradInputs { inputs: &inputs, numbers, g: HeadRows::of(&k.inputs[6]) };
    let items = KeyHeads {
        of,
        number: 0..heads,
        dq: dq.slice::<T>(),
        dk: dk.slice::<T>(),
        dv: dv.slice::<T>(),
    };
    if heads >= k.workers.threads() {
        let slot = slot(&of, T::DTYPE, 1);
        return for_each_item(k.workers, items, k.scratch, slot, &|head, slot| {
            all.head(head, slot, &Single(k.workers))
        });
    }
    for head in items {
        all.head(head, k.scratch, k.workers)?;
    }
    Ok(())
}

/// A head of keys with the heads of queries that share it, and where their gradients go.
struct Head<'a, T> {
    /// Which batch, and which head of keys.
    batch_head: (usize, usize),
    dq: &'a mut [T],
    dk: &'a mut [T],
    dv: &'a mut [T],
}

/// All heads of keys, one after the other.
struct KeyHeads<'a, T> {
    of: AttentionSizes,
    number: Range<usize>,
    dq: &'a mut [T],
    dk: &'a mut [T],
    dv: &'a mut [T],
}

impl<'a, T> Iterator for KeyHeads<'a, T> {
    type Item = Head<'a, T>;

    fn next(&mut self) -> Option<Head<'a, T>> {
        let (number, of) = (self.number.next()?, &self.of);
        let of_keys = of.heads / of.group;
        Some(Head {
            batch_head: (number / of_keys, number % of_keys),
            dq: front(&mut self.dq, of.group * of.queries * of.width),
            dk: front(&mut self.dk, of.keys * of.width),
            dv: front(&mut self.dv, of.keys * of.values),
        })
    }
}

/// What all heads read.
struct AttentionGradInputs<'a, T> {
    inputs: &'a AttentionInputs<'a, T>,
    /// The logarithms of sums, what their rounding lost, and what all weights of a query share.
    numbers: [&'a In<'a>; 3],
    g: HeadRows<'a, T>,
}

/// Where sums are accumulated: in the result, or in scratch where that has another dtype.
fn accumulator<'a, T: Float>(
    result: &'a mut [T],
    scratch: &'a mut [T::Compute],
) -> &'a mut [T::Compute] {
    match T::IS_COMPUTE {
        true => bytemuck::cast_slice_mut(result),
        false => scratch,
    }
}

/// A product that is added to rows of `sums`, or overwrites them.
fn product<A: gemm::Reads<C>, B: gemm::Reads<C>, C: Compute + gemm::GemmOutput<Compute = C>>(
    size: Size,
    (a, rows): (&[A], Strides),
    (b, cols): (&[B], Strides),
    (sums, add): (&mut [C], bool),
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    let (left, right) = (Matrix::left(a, rows), Matrix::right(b, cols));
    let target = Target::new(sums, size);
    let target = if add { target.adding() } else { target };
    gemm(size, &left, &right, target, &NoEpilogue, scratch, workers)
}

impl<T: Float> AttentionGradInputs<'_, T> {
    fn head(&self, head: Head<T>, mut slot: &mut [u8], workers: &dyn Workers) -> Result<()> {
        let of = self.inputs.lengths;
        let parts = parts(&of, !T::IS_COMPUTE).map(|len| cut::<T::Compute>(&mut slot, len));
        let [transposed, g_transposed, weights, slopes, stats, q_sums, k_sums, v_sums] = parts;
        let (batch, of_keys) = head.batch_head;
        {
            let dk = accumulator(&mut *head.dk, &mut *k_sums);
            let dv = accumulator(&mut *head.dv, &mut *v_sums);
            dk.fill(T::Compute::ZERO);
            dv.fill(T::Compute::ZERO);
            for (number, first) in (0..of.group)
                .flat_map(|number| (0..of.queries).step_by(QUERIES).map(move |f| (number, f)))
            {
                let batch_head = (batch, of_keys * of.group + number);
                let queries = first..of.queries.min(first + QUERIES);
                let count = queries.len();
                let start = (number * of.queries + first) * of.width;
                let dq = &mut head.dq[start..start + count * of.width];
                let sums = count * of.width * usize::from(!T::IS_COMPUTE);
                let mut block = BlockScratch {
                    transposed: &mut transposed[..of.width * count],
                    g_transposed: &mut g_transposed[..of.values * count],
                    weights: &mut *weights,
                    slopes: &mut *slopes,
                    stats: &mut stats[..3 * count],
                    dq: accumulator(&mut *dq, &mut q_sums[..sums]),
                    dk: &mut *dk,
                    dv: &mut *dv,
                };
                self.block(batch_head, queries, &mut block, slot, workers)?;
                if !T::IS_COMPUTE {
                    T::store(&q_sums[..sums], dq);
                }
            }
        }
        if !T::IS_COMPUTE {
            T::store(k_sums, head.dk);
            T::store(v_sums, head.dv);
        }
        Ok(())
    }

    /// One number for each query of a block.
    fn numbers(&self, of: &In, (batch, head): (usize, usize), first: usize, to: &mut [T::Compute]) {
        let (layout, data) = (&of.layout, of.slice::<T::Compute>());
        let start = layout.position(&[batch, head, first]) as isize;
        for (i, to) in to.iter_mut().enumerate() {
            *to = data[(start + i as isize * layout.strides[2]) as usize];
        }
    }

    fn block(
        &self,
        batch_head: (usize, usize),
        queries: Range<usize>,
        block: &mut BlockScratch<T::Compute>,
        scratch: &mut [u8],
        workers: &dyn Workers,
    ) -> Result<()> {
        let (inputs, of) = (self.inputs, self.inputs.lengths);
        let (count, scale) = (queries.len(), T::Compute::of(inputs.scale));
        inputs.q.transposed(batch_head, queries.clone(), of.width, scale, block.transposed);
        self.g.transposed(
            batch_head,
            queries.clone(),
            of.values,
            T::Compute::ONE,
            block.g_transposed,
        );
        for (of, to) in self.numbers.iter().zip(block.stats.chunks_exact_mut(count)) {
            self.numbers(of, batch_head, queries.start, to);
        }
        let (lse, rest) = block.stats.split_at_mut(count);
        let (lost, shared) = rest.split_at(count);
        // A query that sees nothing has no weights: e to the power of minus infinity, not of NaN.
        let nothing = -T::Compute::LOWEST;
        lse.iter_mut().filter(|x| **x == T::Compute::LOWEST).for_each(|x| *x = nothing);
        let lse = &*lse;
        let of_keys = batch_head.1 / of.group;
        let q = (inputs.q.data, inputs.q.matrix(batch_head.0, batch_head.1, queries.start));
        let g = (self.g.data, self.g.matrix(batch_head.0, batch_head.1, queries.start));
        let mut seen = false;
        for keys in inputs.blocks(&queries) {
            let rows = keys.len();
            let weights = &mut block.weights[..rows * count];
            let slopes = &mut block.slopes[..rows * count];
            let k = (inputs.k.data, inputs.k.matrix(batch_head.0, of_keys, keys.start));
            let v = (inputs.v.data, inputs.v.matrix(batch_head.0, of_keys, keys.start));
            inputs.scores(
                batch_head,
                &queries,
                &keys,
                block.transposed,
                weights,
                scratch,
                workers,
            )?;
            for_each_chunk(workers, weights, AT_ONCE * count, &|_, weights| {
                level().run(Weights { weights, lse, lost });
            })?;
            let plain = Strides::rows_of(count);
            let dv = &mut block.dv[keys.start * of.values..][..rows * of.values];
            let size = Size::single(rows, of.values, count);
            product(size, (&*weights, plain), g, (dv, true), scratch, workers)?;
            let size = Size::single(rows, count, of.values);
            let transposed = (&*block.g_transposed, plain);
            product(size, v, transposed, (&mut *slopes, false), scratch, workers)?;
            let chunk = AT_ONCE * count;
            let pair = ChunkedPair { a: slopes, chunk_a: chunk, b: weights, chunk_b: chunk };
            for_each_pair(workers, pair, &|_, slopes, weights| {
                level().run(Slopes { slopes, weights, shared, scale });
            })?;
            let slopes = &block.slopes[..rows * count];
            let dk = &mut block.dk[keys.start * of.width..][..rows * of.width];
            let size = Size::single(rows, of.width, count);
            product(size, (slopes, plain), q, (dk, true), scratch, workers)?;
            let size = Size::single(count, of.width, rows);
            let transposed = (slopes, plain.transposed());
            product(size, transposed, k, (&mut *block.dq, seen), scratch, workers)?;
            seen = true;
        }
        if !seen {
            block.dq.fill(T::Compute::ZERO);
        }
        Ok(())
    }
}

/// Rows of scores that are worth handing to another thread.
const AT_ONCE: usize = 64;

/// What a block of queries works with.
struct BlockScratch<'a, C> {
    transposed: &'a mut [C],
    g_transposed: &'a mut [C],
    weights: &'a mut [C],
    slopes: &'a mut [C],
    stats: &'a mut [C],
    dq: &'a mut [C],
    dk: &'a mut [C],
    dv: &'a mut [C],
}

/// Scores to weights, a row for each key.
struct Weights<'a, C> {
    weights: &'a mut [C],
    lse: &'a [C],
    lost: &'a [C],
}

impl<C: Wide> SimdKernel for Weights<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for row in self.weights.chunks_exact_mut(self.lse.len().max(1)) {
            for ((x, lse), lost) in row.iter_mut().zip(self.lse).zip(self.lost) {
                *x = ((*x - *lse) - *lost).exp::<I>();
            }
        }
    }
}

/// Gradients of weights to those of products of queries and keys.
struct Slopes<'a, C> {
    slopes: &'a mut [C],
    weights: &'a [C],
    shared: &'a [C],
    scale: C,
}

impl<C: Wide> SimdKernel for Slopes<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let width = self.shared.len().max(1);
        let rows = self.slopes.chunks_exact_mut(width).zip(self.weights.chunks_exact(width));
        for (slopes, weights) in rows {
            for ((slope, weight), shared) in slopes.iter_mut().zip(weights).zip(self.shared) {
                *slope = *weight * (*slope - *shared) * self.scale;
            }
        }
    }
}

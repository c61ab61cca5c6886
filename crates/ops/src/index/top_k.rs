//! `top_k`: the k largest elements of each row of the last axis, largest first, and where they stand.
//!
//! NaN counts as larger than everything, so that it shows; of equal elements (0 and -0 are equal, and so
//! are NaNs) the one with the lower index comes first. The k best so far are a heap in the outputs
//! themselves, the worst on top, which is sorted in place at the end: no scratch, one pass over the row.

use smallvec::smallvec;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, no_scratch,
};
use tonnage_core::{Attrs, Call, DType, Dim, Emit, OpDef, TensorType, Workers};

use super::along::leading_axes;
use super::put_along_axis::PUT_ALONG_AXIS;
use crate::infer::{bad_attrs, cost, elements, inputs, joined, number, rank_at_least};
use crate::number::{Number, with_number};
use crate::parallel::{ChunkedPair, for_each_pair, rows_at_once, strides};
use crate::strided::{self, Positions};

/// `x [.., n] -> (values [.., k], indices i32 [.., k])`; k as [`Attrs::Count`].
pub static TOP_K: OpDef = OpDef {
    name: "top_k",
    doc: "The k largest elements of each row of the last axis, largest first, and their indices.",
    infer,
    axes: |call| {
        let axes = leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed);
        AxisMap { outputs: vec![axes.clone(), axes], summed: Vec::new() }
    },
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Save::Output(1).always()]]),
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.first().map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("top_k", call)?;
    let Attrs::Count(k) = call.attrs else {
        return Err(bad_attrs("top_k", call.attrs, "how many to keep"));
    };
    number("top_k", x)?;
    rank_at_least("top_k", x, 1, "it ranks along the last axis")?;
    let (leading, last) = x.shape.split_at(x.shape.rank() - 1);
    if let Some(n) = last[0].known() {
        fits(*k, n)?;
    }
    let shape = joined(&[leading, &[Dim::Known(*k)]]);
    Ok(smallvec![TensorType::new(x.dtype, &shape), TensorType::new(DType::I32, shape)])
}

fn fits(k: usize, n: usize) -> Result<()> {
    if k > n {
        let what = format!("k is {k}, but the last axis has {n} elements");
        return Err(bad_argument("top_k", what, "pass a k that is at most that"));
    }
    if i32::try_from(n).is_err() {
        let what = format!("the last axis has {n} elements, and indices are i32");
        return Err(bad_argument("top_k", what, "cut it into parts of less than 2^31"));
    }
    Ok(())
}

fn grad(emit: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let last = call.inputs[0].shape.last().cloned();
    let length = Attrs::Shape(last.into_iter().collect());
    let put = emit.apply(&PUT_ALONG_AXIS, vec![call.output(1)?, call.grad()?], length)?;
    Ok(vec![Some(Cotangent::Dense(put))])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let x = &k.inputs[0];
    let [values, indices] = &mut *k.outputs else {
        return Err(bad_argument("top_k", "the kernel was lent no two outputs", "report this"));
    };
    let count = values.sizes.last().copied().unwrap_or(0);
    // Where the axis was open, the type rule could not tell.
    fits(count, x.layout.sizes.last().copied().unwrap_or(0))?;
    with_number!("top_k", x.dtype, T => {
        top_k::<T>(x, values.slice(), indices.slice(), count, k.workers)
    })
}

fn top_k<T: Number>(
    x: &In,
    values: &mut [T],
    indices: &mut [i32],
    k: usize,
    workers: &dyn Workers,
) -> Result<()> {
    if k == 0 {
        return Ok(());
    }
    let (data, last) = (x.slice::<T>(), x.layout.sizes.len() - 1);
    let (n, step) = (x.layout.sizes[last], x.layout.strides[last]);
    let outer = strided::axes(&x.layout, 0..last);
    let (starts, at_once) = (Positions::of(outer), rows_at_once(n));
    let chunk = k * at_once;
    let pair = ChunkedPair { a: values, chunk_a: chunk, b: indices, chunk_b: chunk };
    for_each_pair(workers, pair, &|chunk, values, indices| {
        let rows = values.chunks_mut(k).zip(indices.chunks_mut(k));
        for (i, (values, indices)) in rows.enumerate() {
            let start = starts.at(chunk * at_once + i) as isize;
            let mut best = TopKHeap { values, indices };
            best.of(n, |j| data[(start + j as isize * step) as usize], workers);
        }
    })
}

/// The best elements of a row so far: a heap with the worst of them at 0.
struct TopKHeap<'a, T> {
    values: &'a mut [T],
    indices: &'a mut [i32],
}

impl<T: Number> TopKHeap<'_, T> {
    /// Finds them among `n`, as far as it is not stopped.
    fn of(&mut self, n: usize, element: impl Fn(usize) -> T, workers: &dyn Workers) {
        let k = self.values.len();
        for range in strides(workers, 0..n, 1) {
            for i in range {
                let x = element(i);
                if i < k {
                    (self.values[i], self.indices[i]) = (x, i as i32);
                    if i + 1 == k {
                        (0..k / 2).rev().for_each(|at| self.sink(at, k));
                    }
                } else if x.above(self.values[0]) {
                    (self.values[0], self.indices[0]) = (x, i as i32);
                    self.sink(0, k);
                }
            }
        }
        for sorted in strides(workers, 1..k, 1).flatten() {
            let end = k - sorted;
            self.swap(0, end);
            self.sink(0, end);
        }
    }

    /// Lets the element at `at` sink below those of the first `len` that rank worse.
    fn sink(&mut self, mut at: usize, len: usize) {
        loop {
            let mut worst = at;
            for child in [2 * at + 1, 2 * at + 2] {
                if child < len && self.better(worst, child) {
                    worst = child;
                }
            }
            if worst == at {
                return;
            }
            self.swap(at, worst);
            at = worst;
        }
    }

    fn better(&self, a: usize, b: usize) -> bool {
        let (x, y) = (self.values[a], self.values[b]);
        x.above(y) || (!y.above(x) && self.indices[a] < self.indices[b])
    }

    fn swap(&mut self, a: usize, b: usize) {
        self.values.swap(a, b);
        self.indices.swap(a, b);
    }
}

fn samples() -> Vec<Sample> {
    let of = |dtype, x: &[usize], k| Sample::of(&[TensorType::new(dtype, x)], Attrs::Count(k));
    vec![
        of(DType::F64, &[3, 7], 3),
        of(DType::F64, &[2, 2, 5], 5),
        of(DType::F32, &[9], 1),
        of(DType::F32, &[4, 1023], 17),
        of(DType::F32, &[2, 1024], 1024),
        of(DType::F32, &[1025, 4], 2),
        of(DType::F16, &[2, 9], 4),
        of(DType::BF16, &[2, 9], 4),
        of(DType::I64, &[2, 30], 9),
        of(DType::I8, &[40], 12),
        of(DType::U8, &[3, 8], 3),
        of(DType::U32, &[3, 8], 3),
        of(DType::F32, &[3, 4], 0),
        of(DType::F32, &[0, 4], 2),
        of(DType::F32, &[3, 0], 0),
    ]
}

//! The kernel of `top_k`. The k best so far are a heap in the outputs themselves, the worst on top, which is sorted in
//! place at the end: no scratch, one pass over the row.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::lent::In;
use tonnage_ops::index::top_k::fits;

use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::number::{Number, with_number};
use crate::parallel::{ChunkedPair, for_each_pair, rows_at_once, strides};
use crate::strided::{self, Positions};
use crate::workers::Workers;

/// The kernel of [`TOP_K`](tonnage_ops::index::top_k::TOP_K).
pub static TOP_K: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

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

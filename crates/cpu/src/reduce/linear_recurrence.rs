//! The kernel of `linear_recurrence`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::lent::{Data, In};
use tonnage_core::{DType, bf16, f16};

use super::scan::Running;
use crate::kernel::{Kernel, KernelDef, no_scratch};
use crate::parallel::{rows_at_once, strides};
use crate::strided;
use crate::workers::{Workers, for_each_chunk};

/// Columns that run side by side.
const WIDTH: usize = 128;

/// The kernel of [`LINEAR_RECURRENCE`](tonnage_ops::reduce::linear_recurrence::LINEAR_RECURRENCE).
pub static LINEAR_RECURRENCE: KernelDef =
    KernelDef { run: kernel, scratch: no_scratch, has_epilogue: false, streaming: None };

fn kernel(k: &mut Kernel) -> Result<()> {
    match k.outputs[0].dtype {
        DType::F64 => run::<f64>(k),
        DType::F16 => run::<f16>(k),
        DType::BF16 => run::<bf16>(k),
        // The type rule lets floats through alone.
        _ => run::<f32>(k),
    }
}

fn run<T: Running<Wide = f64>>(k: &mut Kernel) -> Result<()> {
    let Attrs::Scan { axis, exclusive, reverse } = *k.attrs else { return Ok(()) };
    let (a, b) = (&k.inputs[0], &k.inputs[1]);
    let (sizes, out) = k.outputs[0].parts::<T>();
    let n = sizes[axis];
    let inner: usize = sizes[axis + 1..].iter().product();
    if out.is_empty() {
        return Ok(());
    }
    let at_once = rows_at_once(n * inner);
    for_each_chunk(k.workers, out, n * inner * at_once, &|chunk, blocks| {
        for (i, block) in blocks.chunks_mut(n * inner).enumerate() {
            let first = (chunk * at_once + i) * n * inner;
            let job = RecurrenceJob { a, b, n, inner, exclusive, reverse, workers: k.workers };
            job.run::<T>(first, block);
        }
    })
}

struct RecurrenceJob<'a> {
    a: &'a In<'a>,
    b: &'a In<'a>,
    n: usize,
    inner: usize,
    exclusive: bool,
    reverse: bool,
    workers: &'a dyn Workers,
}

impl RecurrenceJob<'_> {
    fn run<T: Running<Wide = f64>>(&self, first: usize, block: &mut [T]) {
        let mut factors = [T::narrow(0.0); WIDTH];
        let mut column = 0;
        while column < self.inner {
            let count = WIDTH.min(self.inner - column);
            let mut held = [0.0; WIDTH];
            for range in strides(self.workers, 0..self.n, count) {
                for i in range {
                    let i = if self.reverse { self.n - 1 - i } else { i };
                    let at = i * self.inner + column;
                    let row = &mut block[at..at + count];
                    if let Data::Slice(_) = self.b.data {
                        strided::copy(&self.b.layout, self.b.slice::<T>(), first + at, row);
                    }
                    let factors = &mut factors[..count];
                    strided::copy(&self.a.layout, self.a.slice::<T>(), first + at, factors);
                    for ((x, factor), held) in row.iter_mut().zip(factors).zip(&mut held) {
                        let factor = factor.wide();
                        // An exclusive factor waits for the next value.
                        let made = x.wide() + if self.exclusive { *held } else { factor * *held };
                        *x = T::narrow(made);
                        *held = if self.exclusive { factor * made } else { made };
                    }
                }
            }
            column += count;
        }
    }
}

//! The kernel of `log_softmax`.

use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::log::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{SoftmaxRow, each_row, powers_of, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};

/// The kernel of [`LOG_SOFTMAX`](tonnage_ops::nn::softmax::log::LOG_SOFTMAX).
pub static LOG_SOFTMAX: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 2, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 1>(k, &|row| level().run(LogSoftmax(row)))
    })
}

struct LogSoftmax<'a, T: Float>(SoftmaxRow<'a, T, 1>);

impl<T: Float> SimdKernel for LogSoftmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [x], work, out } = self.0;
        let (base, sum) = powers_of::<I, T::Compute>(x, work);
        let log = sum.ln::<I>();
        work.iter_mut().zip(x).for_each(|(made, x)| *made = (*x - base) - log);
        T::store(work, out);
    }
}

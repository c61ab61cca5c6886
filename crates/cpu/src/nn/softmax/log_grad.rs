//! The kernel of `log_softmax_grad`.

use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::log_grad::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{SoftmaxRow, each_row, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::sum1;

/// The kernel of [`LOG_SOFTMAX_GRAD`](tonnage_ops::nn::softmax::log_grad::LOG_SOFTMAX_GRAD).
pub static LOG_SOFTMAX_GRAD: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 3, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 2>(k, &|row| level().run(LogSoftmaxGradRow(row)))
    })
}

struct LogSoftmaxGradRow<'a, T: Float>(SoftmaxRow<'a, T, 2>);

impl<T: Float> SimdKernel for LogSoftmaxGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [g, y], work, out } = self.0;
        let sum = sum1(g, |g| g);
        for ((made, g), y) in work.iter_mut().zip(g).zip(y) {
            *made = *g - y.exp::<I>() * sum;
        }
        T::store(work, out);
    }
}

//! The kernel of `softmax_grad`.

use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::plain_grad::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{SoftmaxRow, each_row, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, with_float};
use crate::nn::rows::sum2;

/// The kernel of [`SOFTMAX_GRAD`](tonnage_ops::nn::softmax::plain_grad::SOFTMAX_GRAD).
pub static SOFTMAX_GRAD: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 3, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 2>(k, &|row| level().run(SoftmaxGradRow(row)))
    })
}

struct SoftmaxGradRow<'a, T: Float>(SoftmaxRow<'a, T, 2>);

impl<T: Float> SimdKernel for SoftmaxGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [g, y], work, out } = self.0;
        let shared = sum2(g, y, |g, y| g * y);
        for ((made, g), y) in work.iter_mut().zip(g).zip(y) {
            *made = *y * (*g - shared);
        }
        T::store(work, out);
    }
}

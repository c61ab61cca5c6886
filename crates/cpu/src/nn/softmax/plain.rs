//! The kernel of `softmax`.

use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::plain::NAME;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{SoftmaxRow, each_row, powers_of, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};

/// The kernel of [`SOFTMAX`](tonnage_ops::nn::softmax::plain::SOFTMAX).
pub static SOFTMAX: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 2, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 1>(k, &|row| level().run(Softmax(row)))
    })
}

struct Softmax<'a, T: Float>(SoftmaxRow<'a, T, 1>);

impl<T: Float> SimdKernel for Softmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [x], work, out } = self.0;
        let (_, sum) = powers_of::<I, T::Compute>(x, work);
        let share = T::Compute::ONE / sum;
        work.iter_mut().for_each(|power| *power = *power * share);
        T::store(work, out);
    }
}

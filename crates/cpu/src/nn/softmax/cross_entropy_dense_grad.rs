//! The kernel of `cross_entropy_dense_grad`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::cross_entropy_dense_grad::NAME;
use tonnage_ops::nn::softmax::smoothing;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{powers_of, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows, sum1};
use crate::parallel::{cut, for_each_item, rows_at_once};
use crate::strided::Positions;

/// The kernel of [`CROSS_ENTROPY_DENSE_GRAD`](tonnage_ops::nn::softmax::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD).
pub static CROSS_ENTROPY_DENSE_GRAD: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 3, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let share = smoothing(NAME, k.attrs)?;
    let [x, targets] = [0, 1].map(|i| StridedRows::<T>::of(&k.inputs[i]));
    let (width, at_once) = (x.width, rows_at_once(x.width));
    let g = &k.inputs[2];
    let places = Positions::of(&g.layout);
    let out = k.outputs[0].slice::<T>().chunks_mut((at_once * width).max(1)).enumerate();
    let slot = bytes_of_rows(3, width, <T::Compute as Element>::DTYPE);
    let (certain, even) =
        (T::Compute::of(1.0 - share), T::Compute::of(share / (width as f64).max(1.0)));
    for_each_item(k.workers, out, k.scratch, slot, &|(number, out), mut slot| {
        let [of_x, of_t, work] = [(); 3].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let row = number * at_once + i;
            let g: T::Compute = g.slice::<T>()[places.at(row)].read();
            let (x, targets) = (x.row_or(row, out, of_x), targets.row(row, of_t));
            let (share, work) = (T::Compute::of(share), &mut *work);
            level().run(DenseCrossEntropyGradRow { x, targets, g, share, certain, even, work });
            T::store(work, out);
        }
        Ok(())
    })
}

/// `softmax(x) * g * sum - g * t` with `t = certain * targets + even` and `sum` theirs.
struct DenseCrossEntropyGradRow<'a, C> {
    x: &'a [C],
    targets: &'a [C],
    g: C,
    share: C,
    certain: C,
    even: C,
    work: &'a mut [C],
}

impl<C: Wide> SimdKernel for DenseCrossEntropyGradRow<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (_, whole) = powers_of::<I, C>(self.x, self.work);
        let sum = sum1(self.targets, |t| t) * self.certain + self.share;
        let by = self.g * sum / whole;
        for (made, t) in self.work.iter_mut().zip(self.targets) {
            *made = *made * by - self.g * t.fma::<I>(self.certain, self.even);
        }
    }
}

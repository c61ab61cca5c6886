//! The kernel of `cross_entropy_dense`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::cross_entropy_dense::NAME;
use tonnage_ops::nn::softmax::smoothing;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{powers_of, rows_scratch};
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows, sum2};
use crate::parallel::{cut, for_each_item, rows_at_once};

/// The kernel of [`CROSS_ENTROPY_DENSE`](tonnage_ops::nn::softmax::cross_entropy_dense::CROSS_ENTROPY_DENSE).
pub static CROSS_ENTROPY_DENSE: KernelDef = KernelDef {
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
    let items = k.outputs[0].slice::<T>().chunks_mut(at_once).enumerate();
    let slot = bytes_of_rows(3, width, <T::Compute as Element>::DTYPE);
    let (certain, even) =
        (T::Compute::of(1.0 - share), T::Compute::of(share / (width as f64).max(1.0)));
    for_each_item(k.workers, items, k.scratch, slot, &|(number, losses), mut slot| {
        let [of_x, of_t, powers] = [(); 3].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, loss) in losses.iter_mut().enumerate() {
            let row = number * at_once + i;
            let (x, targets) = (x.row(row, of_x), targets.row(row, of_t));
            let powers = &mut *powers;
            let made = level().run(DenseCrossEntropyRow { x, targets, certain, even, powers });
            T::store(&[made], std::slice::from_mut(loss));
        }
        Ok(())
    })
}

/// What the logarithm of the sum of powers has more than the logits, each times its target, all relative to the largest.
struct DenseCrossEntropyRow<'a, C> {
    x: &'a [C],
    targets: &'a [C],
    certain: C,
    even: C,
    powers: &'a mut [C],
}

impl<C: Wide> SimdKernel for DenseCrossEntropyRow<'_, C> {
    type Output = C;

    #[inline(always)]
    fn run<I: Isa>(self) -> C {
        let DenseCrossEntropyRow { x, targets, certain, even, powers } = self;
        let (base, sum) = powers_of::<I, C>(x, powers);
        let log = sum.ln::<I>();
        sum2(x, targets, |x, t| t.fma::<I>(certain, even) * (log - (x - base)))
    }
}

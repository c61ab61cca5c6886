//! The kernel of `cross_entropy`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::cross_entropy::NAME;
use tonnage_ops::nn::softmax::smoothing;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{powers_of, rows_scratch};
use crate::index::indices::Indices;
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows, sum1};
use crate::parallel::{cut, for_each_item, rows_at_once};

/// The kernel of [`CROSS_ENTROPY`](tonnage_ops::nn::softmax::cross_entropy::CROSS_ENTROPY).
pub static CROSS_ENTROPY: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 2, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.inputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let share = smoothing(NAME, k.attrs)?;
    let x = StridedRows::<T>::of(&k.inputs[0]);
    let (width, at_once) = (x.width, rows_at_once(x.width));
    let labels = Indices::checked(NAME, &k.inputs[1], width)?;
    let items = k.outputs[0].slice::<T::Compute>().chunks_mut(at_once).enumerate();
    let slot = bytes_of_rows(2, width, <T::Compute as Element>::DTYPE);
    for_each_item(k.workers, items, k.scratch, slot, &|(number, losses), mut slot| {
        let [buffer, powers] = [(); 2].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, loss) in losses.iter_mut().enumerate() {
            let row = number * at_once + i;
            let x = x.row(row, buffer);
            let label = x[labels.get(row)];
            *loss = level().run(CrossEntropyRow { x, label, share, powers: &mut *powers });
        }
        Ok(())
    })
}

/// What the logarithm of the sum of powers has more than the label's logit, both relative to the largest.
struct CrossEntropyRow<'a, C> {
    x: &'a [C],
    label: C,
    share: f64,
    powers: &'a mut [C],
}

impl<C: Wide> SimdKernel for CrossEntropyRow<'_, C> {
    type Output = C;

    #[inline(always)]
    fn run<I: Isa>(self) -> C {
        let (base, sum) = powers_of::<I, C>(self.x, self.powers);
        let mut expected = self.label - base;
        if self.share > 0.0 {
            let mean = sum1(self.x, |x| x - base) / C::of(self.x.len() as f64);
            expected = expected + C::of(self.share) * (mean - expected);
        }
        sum.ln::<I>() - expected
    }
}

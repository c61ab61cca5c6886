//! The kernel of `cross_entropy_grad`.

use tonnage_core::Element;
use tonnage_core::error::Result;
use tonnage_ops::nn::softmax::cross_entropy_grad::NAME;
use tonnage_ops::nn::softmax::smoothing;
use tonnage_simd::{Isa, SimdKernel, level};

use super::{powers_of, rows_scratch};
use crate::index::indices::Indices;
use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows};
use crate::parallel::{cut, for_each_item, rows_at_once};
use crate::strided::Positions;

/// The kernel of [`CROSS_ENTROPY_GRAD`](tonnage_ops::nn::softmax::cross_entropy_grad::CROSS_ENTROPY_GRAD).
pub static CROSS_ENTROPY_GRAD: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| rows_scratch(call, 2, threads),
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let share = smoothing(NAME, k.attrs)?;
    let x = StridedRows::<T>::of(&k.inputs[0]);
    let (width, at_once) = (x.width, rows_at_once(x.width));
    let labels = Indices::checked(NAME, &k.inputs[1], width)?;
    let g = &k.inputs[2];
    let places = Positions::of(&g.layout);
    let out = k.outputs[0].slice::<T>().chunks_mut((at_once * width).max(1)).enumerate();
    let slot = bytes_of_rows(2, width, <T::Compute as Element>::DTYPE);
    for_each_item(k.workers, out, k.scratch, slot, &|(number, out), mut slot| {
        let [buffer, work] = [(); 2].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let row = number * at_once + i;
            let g = g.slice::<T::Compute>()[places.at(row)];
            let less = g * T::Compute::of(share / width as f64);
            let x = x.row_or(row, out, buffer);
            level().run(Shares { x, by: g, less, work: &mut *work });
            let label = &mut work[labels.get(row)];
            *label = *label - g * T::Compute::of(1.0 - share);
            T::store(work, out);
        }
        Ok(())
    })
}

/// `softmax(x) * by - less`
struct Shares<'a, C> {
    x: &'a [C],
    by: C,
    less: C,
    work: &'a mut [C],
}

impl<C: Wide> SimdKernel for Shares<'_, C> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (_, sum) = powers_of::<I, C>(self.x, self.work);
        let by = self.by / sum;
        self.work.iter_mut().for_each(|made| *made = *made * by - self.less);
    }
}

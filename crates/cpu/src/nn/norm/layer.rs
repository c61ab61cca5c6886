//! The kernel of `layer_norm`: one row at a time, in two passes that find it in cache.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, DType, Element};
use tonnage_ops::nn::norm::layer::NAME;
use tonnage_ops::nn::norm::{NormSpec, computed, how};
use tonnage_simd::{Isa, SimdKernel, level};

use crate::kernel::{Kernel, KernelDef};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{LANES, StridedRows, sum1};
use crate::parallel::{cut, cut_bytes, for_each_item, rows_at_once};

/// The kernel of [`LAYER_NORM`](tonnage_ops::nn::norm::layer::LAYER_NORM).
pub static LAYER_NORM: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Bytes of a thread's scratch: a row, the scale and the bias, where they have to be copied.
fn slot(width: usize, computed: DType) -> usize {
    match computed {
        DType::F64 => 3 * cut_bytes::<f64>(width),
        _ => 3 * cut_bytes::<f32>(width),
    }
}

fn scratch(call: &Call, threads: usize) -> Bytes {
    let width = call.inputs.get(1).map_or(0, |ty| super::most(&ty.shape));
    Bytes::of(slot(width, computed(call.inputs[0].dtype)).saturating_mul(threads))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let how = how(NAME, k.attrs)?;
    let [x, scale, bias] = [0, 1, 2].map(|i| StridedRows::<T>::of(&k.inputs[i]));
    let (width, at_once) = (x.width, rows_at_once(x.width));
    let out = k.outputs[0].slice::<T>().chunks_mut((at_once * width).max(1)).enumerate();
    let slot = slot(width, <T::Compute as Element>::DTYPE);
    for_each_item(k.workers, out, k.scratch, slot, &|(number, out), mut slot| {
        let [buffer, of_scale, of_bias] = [(); 3].map(|()| cut::<T::Compute>(&mut slot, width));
        let (scale, bias) = (scale.row(0, of_scale), bias.row(0, of_bias));
        for (i, out) in out.chunks_exact_mut(width).enumerate() {
            let x = x.row(number * at_once + i, buffer);
            level().run(LayerNormRow::<T> { x, scale, bias, how, out });
        }
        Ok(())
    })
}

/// The mean of a row, 0 where it is not centered, and what its differences from it are multiplied by.
#[inline(always)]
pub(super) fn statistics<C: Wide>(x: &[C], how: &NormSpec) -> (C, C) {
    let share = C::ONE / C::of(x.len() as f64);
    let mean = if how.centered { sum1(x, |x| x) * share } else { C::ZERO };
    let variance = sum1(x, |x| (x - mean) * (x - mean)) * share;
    (mean, C::ONE / (variance + C::of(how.epsilon)).root())
}

/// One row.
struct LayerNormRow<'a, T: Float> {
    x: &'a [T::Compute],
    scale: &'a [T::Compute],
    bias: &'a [T::Compute],
    how: NormSpec,
    out: &'a mut [T],
}

impl<T: Float> SimdKernel for LayerNormRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let (mean, by) = statistics(self.x, &self.how);
        let inputs =
            self.x.chunks(LANES).zip(self.scale.chunks(LANES)).zip(self.bias.chunks(LANES));
        for (((x, scale), bias), out) in inputs.zip(self.out.chunks_mut(LANES)) {
            let mut made = [<T::Compute as crate::linalg::gemm::Compute>::ZERO; LANES];
            let made = &mut made[..out.len()];
            for (((made, x), scale), bias) in made.iter_mut().zip(x).zip(scale).zip(bias) {
                *made = ((*x - mean) * by).fma::<I>(*scale, *bias);
            }
            T::store(made, out);
        }
    }
}

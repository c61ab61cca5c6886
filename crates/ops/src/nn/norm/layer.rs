//! `layer_norm`: each row brought to a mean of 0 and a deviation of 1, or (not centered: `rms_norm`) to a mean square of
//! 1; then scaled and shifted, a number for each column.
//!
//! `(x - mean) / sqrt(variance + epsilon) * scale + bias`. One row at a time, in two passes that find it in cache.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    AxisMap, AxisOf, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::{Bytes, Call, DType, Element, Emit, OpDef, TensorType};

use super::layer_grad::LAYER_NORM_GRAD;
use super::{NormSpec, check, computed, how, rows_to_test};
use crate::infer::{along, cost, each, inputs};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{LANES, StridedRows, sum1};
use crate::parallel::{cut, cut_bytes, for_each_item, rows_at_once};
use crate::simd::{self, Isa};

const NAME: &str = "layer_norm";

/// `(x [..., n], scale [n], bias [n]) -> [..., n]`; the rest as [`Attrs::Normalize`](tonnage_core::Attrs::Normalize).
pub static LAYER_NORM: OpDef = OpDef {
    name: NAME,
    doc: "Each row brought to a mean of 0 and a deviation of 1, then scaled and shifted.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(each(&made, 8), made.iter().chain(call.inputs))
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(x, attrs): (TensorType, _)| {
            let last = TensorType::new(
                x.dtype,
                &x.shape.sizes().unwrap_or_default()[x.shape.rank() - 1..],
            );
            Sample::of(&[x, last.clone(), last], attrs)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, scale, bias] = inputs(NAME, call)?;
    how(NAME, call.attrs)?;
    check(NAME, x, &[scale, bias])?;
    Ok(smallvec![x.clone()])
}

fn axes(call: &Call) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let mut axes: Vec<AxisOf> = (0..rank).map(|axis| along(&[(0, axis)])).collect();
    axes[rank - 1] = AxisOf::Mixed;
    AxisMap { outputs: vec![axes], summed: Vec::new() }
}

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

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.input(0)?, call.input(1)?, call.grad()?];
    let made = e.emit(&LAYER_NORM_GRAD, inputs, call.attrs.clone(), Vec::new(), false)?;
    let wanted = |(made, needed): (_, &bool)| needed.then_some(Cotangent::Dense(made));
    Ok(made.into_iter().zip(call.needs).map(wanted).collect())
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
            simd::level().run(LayerNormRow::<T> { x, scale, bias, how, out });
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

impl<T: Float> simd::SimdKernel for LayerNormRow<'_, T> {
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

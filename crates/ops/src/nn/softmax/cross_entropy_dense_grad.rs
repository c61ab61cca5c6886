//! The gradient of `cross_entropy_dense` for its logits: probabilities, which are recomputed, times the sum of the targets,
//! less the targets; each row times the gradient of its loss. May take over the logits' bytes.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Element, OpDef};

use super::cross_entropy::losses;
use super::cross_entropy_dense::targets_to_test;
use super::cross_entropy_grad::{beside, check_grad, shares};
use super::{check_rows, computed, costs, powers_of, rows_axes, rows_scratch, smoothing};
use crate::derive::by_formula;
use crate::emit;
use crate::infer::{inputs, same_dtype, shape};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows, sum1};
use crate::parallel::{cut, for_each_item, rows_at_once};
use crate::simd::{self, Isa};
use crate::strided::Positions;

const NAME: &str = "cross_entropy_dense_grad";

/// `(logits, targets, g) -> gradient of the logits`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_DENSE_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "The gradient of cross_entropy_dense for its logits.",
    infer,
    axes: |call| rows_axes(call, &[0, 1, 2], true),
    mem: Mem::Reuse(&[0]),
    scratch: |call, threads| rows_scratch(call, 3, threads),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |mut sample: Sample| {
            let g = losses(&sample.inputs[0].ty);
            sample.inputs.extend(Sample::of(&[g], Attrs::None).inputs);
            sample
        };
        targets_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x, targets, g] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    same_dtype(NAME, x, targets)?;
    shape(NAME, &targets.shape, &x.shape, "pass a probability for every logit")?;
    check_grad(NAME, x, g)?;
    Ok(smallvec![x.clone()])
}

fn formula(e: &mut dyn Emit, attrs: &Attrs, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let share = smoothing(NAME, attrs)?;
    let [x, targets, g] = &inputs[..] else { return Ok(Vec::new()) };
    let (ty, wide) = (x.ty().clone(), computed(x.ty().dtype));
    let last = ty.shape.rank() - 1;
    let g = beside(e, g, wide)?;
    let count = emit::size(e, &ty.shape[last], wide)?;
    let even = emit::number(e, share, wide)?;
    let even = emit::div(e, even, count)?;
    let targets = emit::cast(e, targets.clone(), wide)?;
    let targets = emit::scale(e, targets, 1.0 - share)?;
    let targets = emit::add(e, targets, even)?;
    let sum = emit::sum(e, targets.clone(), smallvec![last], true)?;
    let by = emit::mul(e, g.clone(), sum)?;
    let made = shares(e, x, by)?;
    let less = emit::mul(e, targets, g)?;
    let made = emit::sub(e, made, less)?;
    Ok(vec![emit::cast(e, made, ty.dtype)?])
}

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
            simd::level().run(DenseCrossEntropyGradRow {
                x,
                targets,
                g,
                share,
                certain,
                even,
                work,
            });
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

impl<C: Wide> simd::SimdKernel for DenseCrossEntropyGradRow<'_, C> {
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

//! `cross_entropy_dense`: how surprised logits are by probabilities: `sum(t * (lse - x))`, with `lse` the logarithm of the sum
//! of the powers of e. With smoothing a share of the probabilities is spread evenly over all classes.
//!
//! For the gradient it keeps logits, targets and one number a row.

use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, Call, Element, Emit, OpDef, Scalar, TensorType};

use super::cross_entropy::{axes, back_inputs, results};
use super::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD;
use super::cross_entropy_grad::beside;
use super::{check_rows, costs, log_sum_exp, rows_scratch, rows_to_test, smoothing};
use crate::emit;
use crate::infer::{inputs, same_dtype, shape};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{Rows, bytes_of_rows, sum2};
use crate::parallel::{cut, for_each_item, rows_at_once};
use crate::simd::{self, Isa};

const NAME: &str = "cross_entropy_dense";

/// `(logits [..., n], targets [..., n]) -> (losses [...], log-sum-exp [...])`; the share that is spread as
/// [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_DENSE: OpDef = OpDef {
    name: NAME,
    doc: "How surprised logits are by probabilities, and the logarithms of the sums of their powers of e.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch: |call, threads| rows_scratch(call, 3, threads),
    saves: Saves::one_of(&[&[
        Keep::Input(0).always(),
        Keep::Input(1).always(),
        Keep::Output(1).always(),
    ]]),
    remat: Remat::Costly,
    cost: |call| costs(call, 20, &infer(call).unwrap_or_default()),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || targets_to_test(),
};

fn infer(call: &Call) -> Result<Types> {
    let [x, targets] = inputs(NAME, call)?;
    smoothing(NAME, call.attrs)?;
    check_rows(NAME, x)?;
    same_dtype(NAME, x, targets)?;
    shape(NAME, &targets.shape, &x.shape, "pass a probability for every logit")?;
    Ok(results(x))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = back_inputs(e, call)?;
    let mut grads = vec![None, None];
    if call.needs[1] {
        let (share, wide) = (smoothing(NAME, call.attrs)?, inputs[2].ty().dtype);
        let x = emit::cast(e, inputs[0].clone(), wide)?;
        let (lse, g) = (beside(e, &inputs[2], wide)?, beside(e, &inputs[3], wide)?);
        let off = emit::sub(e, lse, x)?;
        let g = emit::scale(e, g, 1.0 - share)?;
        let made = emit::mul(e, off, g)?;
        grads[1] = emit::dense(emit::cast(e, made, call.inputs[1].dtype)?);
    }
    if call.needs[0] {
        let made = e.apply(&CROSS_ENTROPY_DENSE_GRAD, inputs, call.attrs.clone())?;
        grads[0] = emit::dense(made);
    }
    Ok(grads)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => run::<T>(k))
}

fn run<T: Float>(k: &mut Kernel) -> Result<()> {
    let share = smoothing(NAME, k.attrs)?;
    let [x, targets] = [0, 1].map(|i| Rows::<T>::of(&k.inputs[i]));
    let (width, at_once) = (x.width, rows_at_once(x.width));
    let [losses, lse] = &mut k.outputs[..] else { return Ok(()) };
    let (losses, lse) = (losses.slice::<T>(), lse.slice::<T::Compute>());
    let items = losses.chunks_mut(at_once).zip(lse.chunks_mut(at_once)).enumerate();
    let slot = bytes_of_rows(3, width, <T::Compute as Element>::DTYPE);
    let (certain, even) =
        (T::Compute::of(1.0 - share), T::Compute::of(share / (width as f64).max(1.0)));
    for_each_item(k.workers, items, k.scratch, slot, &|(number, (losses, lse)), mut slot| {
        let [of_x, of_t, powers] = [(); 3].map(|()| cut::<T::Compute>(&mut slot, width));
        for (i, (loss, lse)) in losses.iter_mut().zip(lse).enumerate() {
            let row = number * at_once + i;
            let (x, targets) = (x.row(row, of_x), targets.row(row, of_t));
            let powers = &mut *powers;
            let (all, sum) = simd::level().run(Surprise { x, targets, certain, even, powers });
            *lse = all;
            T::store(&[sum], std::slice::from_mut(loss));
        }
        Ok(())
    })
}

/// The logarithm of the sum of powers, and what it has more than the logits, each times its target.
struct Surprise<'a, C> {
    x: &'a [C],
    targets: &'a [C],
    certain: C,
    even: C,
    powers: &'a mut [C],
}

impl<C: Wide> simd::Kernel for Surprise<'_, C> {
    type Output = (C, C);

    #[inline(always)]
    fn run<I: Isa>(self) -> (C, C) {
        let Surprise { x, targets, certain, even, powers } = self;
        let (lse, _) = log_sum_exp::<I, C>(x, powers);
        (lse, sum2(x, targets, |x, t| t.fma::<I>(certain, even) * (lse - x)))
    }
}

pub(super) fn targets_to_test() -> Vec<Sample> {
    let of = |(i, (dtype, sizes)): (usize, (_, tonnage_core::Sizes))| {
        let ty = TensorType::new(dtype, &sizes[..]);
        let share = Scalar::Float(if i % 2 == 1 { 0.2 } else { 0.0 });
        let between = tonnage_core::row::Values::Between(0.0, 1.0);
        Sample::of(&[ty.clone(), ty], Attrs::Smoothing(share)).with(1, between)
    };
    rows_to_test().into_iter().enumerate().map(of).collect()
}

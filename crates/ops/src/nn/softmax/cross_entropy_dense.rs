//! `cross_entropy_dense`: how surprised logits are by probabilities: `sum(t * (lse - x))`, with `lse` the logarithm of the sum
//! of the powers of e. With smoothing a share of the probabilities is spread evenly over all classes.
//!
//! For the backward pass it saves logits and targets.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Element, Emit, OpDef, Scalar, TensorType};

use super::cross_entropy::losses;
use super::cross_entropy_dense_grad::CROSS_ENTROPY_DENSE_GRAD;
use super::cross_entropy_grad::beside;
use super::log::LOG_SOFTMAX;
use super::{
    check_rows, computed, costs, powers_of, rows_axes, rows_scratch, rows_to_test, smoothing,
};
use crate::emit;
use crate::infer::{inputs, same_dtype, shape};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::{StridedRows, bytes_of_rows, sum2};
use crate::parallel::{cut, for_each_item, rows_at_once};
use crate::simd::{self, Isa};

const NAME: &str = "cross_entropy_dense";

/// `(logits [..., n], targets [..., n]) -> losses [...]`; the share that is spread as [`Attrs::Smoothing`].
pub static CROSS_ENTROPY_DENSE: OpDef = OpDef {
    name: NAME,
    doc: "How surprised logits are by probabilities: -sum(targets * log_softmax(logits)).",
    infer,
    axes: |call| rows_axes(call, &[0, 1], false),
    mem: Mem::Alloc,
    scratch: |call, threads| rows_scratch(call, 3, threads),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
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
    Ok(smallvec![losses(x)])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.input(0)?, call.input(1)?, call.grad()?];
    let mut grads = vec![None, None];
    if call.needs[1] {
        let (share, wide) = (smoothing(NAME, call.attrs)?, computed(call.inputs[0].dtype));
        let x = emit::cast(e, inputs[0].clone(), wide)?;
        let logs = emit::unary(e, &LOG_SOFTMAX, x)?;
        let g = beside(e, &inputs[2], wide)?;
        let g = emit::scale(e, g, share - 1.0)?;
        let made = emit::mul(e, logs, g)?;
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
            let made =
                simd::level().run(DenseCrossEntropyRow { x, targets, certain, even, powers });
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

impl<C: Wide> simd::SimdKernel for DenseCrossEntropyRow<'_, C> {
    type Output = C;

    #[inline(always)]
    fn run<I: Isa>(self) -> C {
        let DenseCrossEntropyRow { x, targets, certain, even, powers } = self;
        let (base, sum) = powers_of::<I, C>(x, powers);
        let log = sum.ln::<I>();
        sum2(x, targets, |x, t| t.fma::<I>(certain, even) * (log - (x - base)))
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

//! `softmax`: positive numbers that add up to 1 along the last axis.
//!
//! A row of minus infinities is NaN, as the quotient 0 / 0 is.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef, TensorType};

use super::plain_grad::SOFTMAX_GRAD;
use super::{SoftmaxRow, check, costs, each_row, powers_of, rows_axes, rows_scratch, rows_to_test};
use crate::infer::inputs;
use crate::nn::float::{Float, Wide, with_float};
use crate::simd::{self, Isa};

const NAME: &str = "softmax";

/// Positive numbers that add up to 1 along the last axis.
pub static SOFTMAX: OpDef = OpDef {
    name: NAME,
    doc: "Positive numbers that add up to 1 along the last axis: exp(x) / sum(exp(x)).",
    infer,
    axes: |call| rows_axes(call, &[0], true),
    mem: Mem::Reuse(&[0]),
    scratch: |call, threads| rows_scratch(call, 2, threads),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(dtype, sizes): (_, tonnage_core::Sizes)| {
            Sample::of(&[TensorType::new(dtype, &sizes[..])], Attrs::None)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs(NAME, call)?;
    check(NAME, call, x)?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.grad()?, call.output(0)?];
    Ok(vec![crate::emit::dense(e.apply(&SOFTMAX_GRAD, inputs, Attrs::None)?)])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 1>(k, &|row| simd::level().run(Softmax(row)))
    })
}

struct Softmax<'a, T: Float>(SoftmaxRow<'a, T, 1>);

impl<T: Float> simd::SimdKernel for Softmax<'_, T> {
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

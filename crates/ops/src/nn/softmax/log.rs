//! `log_softmax`: the logarithm of softmax along the last axis, exact also where that is too small to be a number:
//! `(x - largest) - log(sum(exp(x - largest)))`.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, Emit, OpDef};

use super::log_grad::LOG_SOFTMAX_GRAD;
use super::plain::SOFTMAX;
use super::{SoftmaxRow, check, costs, each_row, powers_of, rows_axes, rows_scratch};
use crate::infer::inputs;
use crate::nn::float::{Float, Wide, with_float};
use crate::simd::{self, Isa};

const NAME: &str = "log_softmax";

/// The logarithm of softmax along the last axis.
pub static LOG_SOFTMAX: OpDef = OpDef {
    name: NAME,
    doc: "The logarithm of softmax along the last axis: x - log(sum(exp(x))).",
    infer,
    axes: |call| rows_axes(call, &[0], true),
    mem: Mem::Reuse(&[0]),
    scratch: |call, threads| rows_scratch(call, 2, threads),
    saves: Saves::one_of(&[&[Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || (SOFTMAX.samples)(),
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs(NAME, call)?;
    check(NAME, call, x)?;
    Ok(smallvec![x.clone()])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let inputs = vec![call.grad()?, call.output(0)?];
    Ok(vec![crate::emit::dense(e.apply(&LOG_SOFTMAX_GRAD, inputs, Attrs::None)?)])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 1>(k, &|row| simd::level().run(LogSoftmax(row)))
    })
}

struct LogSoftmax<'a, T: Float>(SoftmaxRow<'a, T, 1>);

impl<T: Float> simd::SimdKernel for LogSoftmax<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [x], work, out } = self.0;
        let (base, sum) = powers_of::<I, T::Compute>(x, work);
        let log = sum.ln::<I>();
        work.iter_mut().zip(x).for_each(|(made, x)| *made = (*x - base) - log);
        T::store(work, out);
    }
}

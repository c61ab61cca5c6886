//! The gradient of `log_softmax`, from its result: `g - exp(y) * sum(g)`, row by row.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, Call, OpDef};

use super::plain_grad::SOFTMAX_GRAD;
use super::{SoftmaxRow, check, costs, each_row, rows_axes, rows_scratch};
use crate::derive::by_formula;
use crate::infer::{inputs, same_dtype, shape};
use crate::nn::float::{Float, Wide, with_float};
use crate::nn::rows::sum1;
use crate::simd::{self, Isa};
use crate::{emit, math};

const NAME: &str = "log_softmax_grad";

/// `(g, y) -> g - exp(y) * sum(g)`
pub static LOG_SOFTMAX_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "The gradient of log_softmax, from its result.",
    infer,
    axes: |call| rows_axes(call, &[0, 1], true),
    mem: Mem::Reuse(&[0]),
    scratch: |call, threads| rows_scratch(call, 3, threads),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 15, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || (SOFTMAX_GRAD.samples)(),
};

fn infer(call: &Call) -> Result<Types> {
    let [g, y] = inputs(NAME, call)?;
    check(NAME, call, g)?;
    same_dtype(NAME, g, y)?;
    shape(NAME, &g.shape, &y.shape, "pass a gradient for every element")?;
    Ok(smallvec![g.clone()])
}

fn formula(e: &mut dyn Emit, _: &Attrs, inputs: Vec<Value>) -> Result<Vec<Value>> {
    let [g, y] = &inputs[..] else { return Ok(Vec::new()) };
    let last = g.ty().shape.rank() - 1;
    let sum = emit::sum(e, g.clone(), smallvec![last], true)?;
    let share = emit::unary(e, &math::exp::EXP, y.clone())?;
    let shared = emit::mul(e, share, sum)?;
    Ok(vec![emit::sub(e, g.clone(), shared)?])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 2>(k, &|row| simd::level().run(LogSoftmaxGradRow(row)))
    })
}

struct LogSoftmaxGradRow<'a, T: Float>(SoftmaxRow<'a, T, 2>);

impl<T: Float> simd::SimdKernel for LogSoftmaxGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [g, y], work, out } = self.0;
        let sum = sum1(g, |g| g);
        for ((made, g), y) in work.iter_mut().zip(g).zip(y) {
            *made = *g - y.exp::<I>() * sum;
        }
        T::store(work, out);
    }
}

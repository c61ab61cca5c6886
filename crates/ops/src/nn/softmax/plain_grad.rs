//! The gradient of `softmax`, from its result: `y * (g - sum(g * y))`, row by row.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, OpDef, TensorType};

use super::{SoftmaxRow, check, costs, each_row, rows_axes, rows_scratch, rows_to_test};
use crate::derive::by_formula;
use crate::emit;
use crate::infer::{inputs, same_dtype, shape};
use crate::nn::float::{Float, with_float};
use crate::nn::rows::sum2;
use crate::simd::{self, Isa};

const NAME: &str = "softmax_grad";

/// `(g, y) -> y * (g - sum(g * y))`
pub static SOFTMAX_GRAD: OpDef = OpDef {
    name: NAME,
    doc: "The gradient of softmax, from its result.",
    infer,
    axes: |call| rows_axes(call, &[0, 1], true),
    mem: Mem::Reuse(&[0]),
    scratch: |call, threads| rows_scratch(call, 3, threads),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 4, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples: || {
        let sample = |(dtype, sizes): (_, tonnage_core::Sizes)| {
            let ty = TensorType::new(dtype, &sizes[..]);
            Sample::of(&[ty.clone(), ty], Attrs::None)
        };
        rows_to_test().into_iter().map(sample).collect()
    },
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
    let product = emit::mul(e, g.clone(), y.clone())?;
    let last = g.ty().shape.rank() - 1;
    let sum = emit::sum(e, product, smallvec![last], true)?;
    let rest = emit::sub(e, g.clone(), sum)?;
    Ok(vec![emit::mul(e, y.clone(), rest)?])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    with_float!(NAME, k.outputs[0].dtype, T => {
        each_row::<T, 2>(k, &|row| simd::level().run(SoftmaxGradRow(row)))
    })
}

struct SoftmaxGradRow<'a, T: Float>(SoftmaxRow<'a, T, 2>);

impl<T: Float> simd::SimdKernel for SoftmaxGradRow<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let SoftmaxRow { inputs: [g, y], work, out } = self.0;
        let shared = sum2(g, y, |g, y| g * y);
        for ((made, g), y) in work.iter_mut().zip(g).zip(y) {
            *made = *y * (*g - shared);
        }
        T::store(work, out);
    }
}

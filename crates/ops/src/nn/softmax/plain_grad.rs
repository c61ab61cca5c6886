//! The gradient of `softmax`, from its result: `y * (g - sum(g * y))`, row by row.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::{Attrs, Call, OpDef, TensorType};

use super::{check, costs, rows_axes, rows_to_test};
use crate::derive::by_formula;
use crate::infer::{inputs, same_dtype, shape};
use crate::{OpId, emit};

/// The op's name, for errors.
pub const NAME: &str = "softmax_grad";

/// `(g, y) -> y * (g - sum(g * y))`
pub static SOFTMAX_GRAD: OpDef = OpDef {
    id: OpId::SoftmaxGrad as u16,
    name: NAME,
    doc: "The gradient of softmax, from its result.",
    infer,
    axes: |call| rows_axes(call, &[0, 1], true),
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Cheap,
    cost: |call| costs(call, 4, &call.inputs[..1]),
    grad: Grad::Rule(|e, call| by_formula(e, call, formula)),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
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

//! `div`: The quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where the divisor is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall, JvpCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// The quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where the divisor is 0.
pub static DIV: OpDef = OpDef {
    name: "div",
    doc: "The quotient of two tensors, broadcast; integers are cut off towards zero, and 0 where the divisor is 0.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(1).always(), Keep::Output(0).needed_by(1)]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::binary_divisor(),
};

fn cost(call: &Call) -> Cost {
    let outputs = rules::infer::binary_number(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, Prim::Div.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let (a, b) = (call.inputs[0].dtype, call.inputs[1].dtype);
    let dtype = rules::infer::promoted(call, a, b)?;
    Ok(TileProgram::single(Prim::Div, &[a, b], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    // Of the quotient y = a / b: g / b, and -(g / b) * y. The output serves where a itself would.
    let part = {
        let (g, b) = (call.grad()?, call.input(1)?);
        emit::div(e, g, b)?
    };
    let right = match call.needs[1] {
        true => {
            let y = call.output(0)?;
            let product = emit::mul(e, part.clone(), y)?;
            let product = emit::neg(e, product)?;
            emit::dense(emit::sum_to(e, product, &call.inputs[1])?)
        }
        false => None,
    };
    let left = match call.needs[0] {
        true => emit::dense(emit::sum_to(e, part, &call.inputs[0])?),
        false => None,
    };
    Ok(vec![left, right])
}

// Of the quotient y = a / b: (ta - y tb) / b.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let (b, y) = (call.inputs[1].clone(), call.outputs[0].clone());
    let through = match &call.tangents[1] {
        Some(tb) => Some(emit::mul(e, y, tb.clone())?),
        None => None,
    };
    let top = match (call.tangents[0].clone(), through) {
        (Some(ta), Some(through)) => emit::sub(e, ta, through)?,
        (Some(ta), None) => ta,
        (None, Some(through)) => emit::neg(e, through)?,
        (None, None) => return Ok(vec![None]),
    };
    Ok(vec![Some(emit::div(e, top, b)?)])
}

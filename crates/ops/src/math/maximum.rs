//! `maximum`: The larger of two tensors, broadcast; NaN wins.

use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{emit, rules, samples};

/// The larger of two tensors, broadcast; NaN wins.
pub static MAXIMUM: OpDef = OpDef {
    name: "maximum",
    doc: "The larger of two tensors, broadcast; NaN wins.",
    infer: rules::infer::binary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1]),
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(0).always(), Keep::Input(1).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::binary_number(),
};

fn cost(call: &Call) -> Cost {
    let outputs = rules::infer::binary_number(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, Prim::Max.flops())
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let (a, b) = (call.inputs[0].dtype, call.inputs[1].dtype);
    let dtype = rules::infer::promoted(call, a, b)?;
    Ok(TileProgram::single(Prim::Max, &[a, b], dtype, dtype))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    // Where both are equal the left one gets all of the gradient, so that it is counted once.
    let (a, b) = (call.input(0)?, call.input(1)?);
    let right_wins = emit::binary(e, &crate::math::less::LESS, a, b)?;
    let mut grads = Vec::new();
    for i in 0..2 {
        grads.push(match call.needs[i] {
            true => {
                let g = call.grad()?;
                let zero = emit::number(e, 0, g.ty().dtype)?;
                let mut inputs = vec![right_wins.clone(), zero, g];
                if i == 1 {
                    inputs.swap(1, 2);
                }
                let part = e.apply(&crate::math::where_::WHERE, inputs, Attrs::None)?;
                emit::dense(emit::sum_to(e, part, &call.inputs[i])?)
            }
            false => None,
        });
    }
    Ok(grads)
}

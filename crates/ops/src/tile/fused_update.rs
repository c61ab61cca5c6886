//! `fused_update`: a chain of elementwise ops that ends in the update of a variable, in one pass over it.
//!
//! The planner makes it; users never see it. The first input is the variable.

use tonnage_core::error::Result;
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Call, OpDef};

use super::fused;
use crate::OpId;
use crate::infer::shape;

/// A chain of elementwise ops that ends in the update of its first input.
pub static FUSED_UPDATE: OpDef = OpDef {
    id: OpId::FusedUpdate as u16,
    name: "fused_update",
    doc: "A chain of elementwise ops that ends in the update of a variable, in one pass over it.",
    infer,
    axes: fused::axes,
    mem: Mem::Update(0),
    saves: Saves::NOTHING,
    remat: Remat::Never,
    cost: fused::cost,
    grad: Grad::Stop("gradients are taken before ops are fused"),
    jvp: Jvp::Stop("gradients are taken before ops are fused"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| fused::program(call).cloned()),
    samples,
};

/// What is written is the variable: nothing else may broadcast it.
fn infer(call: &Call) -> Result<Types> {
    let made = fused::infer(call)?;
    match (call.inputs.first(), made.first()) {
        (Some(variable), Some(written)) => {
            let help = "an update has the variable's shape, or one that broadcasts to it";
            shape(call.op, &written.shape, &variable.shape, help)?;
            Ok(made)
        }
        _ => Ok(made),
    }
}

fn samples() -> Vec<Sample> {
    use tonnage_core::attrs::Attrs;
    use tonnage_core::tile::{Prim, TileProgram};
    use tonnage_core::{DType, TensorType};

    // A step of gradient descent: v - g / 8.
    let mut step = TileProgram::loading(&[DType::F32, DType::F32]);
    let rate = step.constant(0.125, DType::F32);
    let change = step.push(Prim::Mul, &[1, rate]);
    let after = step.push(Prim::Sub, &[0, change]);
    step.store(after, DType::F32);
    let of = |shape: &[usize]| {
        let ty = TensorType::new(DType::F32, shape);
        Sample::of(&[ty.clone(), ty], Attrs::Tile(Box::new(step.clone())))
    };
    vec![of(&[3, 5]), of(&[]), of(&[0]), of(&[1025])]
}

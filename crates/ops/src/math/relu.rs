//! `relu`: every element, or 0 where it is negative.
//!
//! NaN stays NaN. The slope at 0 is 0. The gradient needs to know the sign alone: a bit an element, or
//! the output where that is saved anyway.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use super::relu_grad::{RELU_GRAD, bits_type};
use crate::{OpId, emit, rules, samples};

/// Every element, or 0 where it is negative.
pub static RELU: OpDef = OpDef {
    id: OpId::Relu as u16,
    name: "relu",
    doc: "Every element, or 0 where it is negative; NaN stays NaN.",
    infer: rules::infer::unary_number,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves { alternatives: &[&[Save::Output(0).always()], &[Save::Aux(0).always()]], aux },
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples: || samples::unary_number(),
};

fn aux(call: &Call) -> Result<Types> {
    Ok(smallvec![bits_type(&call.inputs[0])])
}

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 1)
}

fn tile(call: &Call, bits: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype]);
    let zero = program.constant(0, dtype);
    let positive = program.push(Prim::Max, &[0, zero]);
    program.store(positive, dtype);
    if bits {
        let sign = program.push(Prim::Gt, &[0, zero]);
        program.store_bits(sign);
    }
    Ok(program)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let bits = match call.saves(Save::Aux(0)) {
        true => call.aux(0)?,
        false => {
            // The output is saved anyway: positive there is what the bit would say.
            let y = call.output(0)?;
            let zero: TensorType = TensorType::new(y.ty().dtype, ());
            let zero = emit::zeros(e, &zero)?;
            let positive = emit::binary(e, &super::comparison::LESS, zero, y)?;
            let g = call.grad()?;
            let zero = emit::number(e, 0, g.ty().dtype)?;
            let inputs = vec![positive, g, zero];
            let made = e.apply(&super::where_::WHERE, inputs, Attrs::None)?;
            return Ok(vec![emit::dense(made)]);
        }
    };
    debug_assert_eq!(bits.ty().dtype, DType::U8);
    let g = call.grad()?;
    Ok(vec![emit::dense(emit::binary(e, &RELU_GRAD, g, bits)?)])
}

//! `cast`: every element in another dtype.
//!
//! As Rust's `as`: floats are cut off towards zero and kept within the range of an integer, NaN becomes
//! 0, integers keep their low bits; anything but 0 is true.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{OpId, emit, rules};

/// Every element in another dtype.
pub static CAST: OpDef = OpDef {
    id: OpId::Cast as u16,
    name: "cast",
    doc: "Every element in another dtype.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let Attrs::DType(dtype) = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    Ok(smallvec![TensorType { dtype: *dtype, shape: call.inputs[0].shape.clone() }])
}

fn cost(call: &Call) -> Cost {
    let outputs = infer(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, 1)
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let Attrs::DType(to) = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    let mut program = TileProgram::loading(&[call.inputs[0].dtype]);
    let reg = match program.register(0) == to.compute() {
        true => 0,
        false => program.push(Prim::Cast(*to), &[0]),
    };
    program.store(reg, *to);
    Ok(program)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    if !call.outputs[0].dtype.is_float() {
        return Ok(vec![None]);
    }
    let g = call.grad()?;
    Ok(vec![emit::dense(emit::cast(e, g, call.inputs[0].dtype)?)])
}

fn samples() -> Vec<Sample> {
    let mut all = Vec::new();
    for from in DType::ALL {
        for to in DType::ALL {
            all.push(Sample::of(&[TensorType::new(from, [2, 3])], Attrs::DType(to)));
        }
    }
    for shape in [vec![], vec![0], vec![1023], vec![1025]] {
        all.push(Sample::of(&[TensorType::new(DType::F32, shape)], Attrs::DType(DType::F64)));
    }
    all
}

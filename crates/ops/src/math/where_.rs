//! `where`: one of two tensors, element by element, as a boolean says.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::tile::{Prim, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{OpId, emit, rules};

/// One of two tensors, element by element, as a boolean says.
pub static WHERE: OpDef = OpDef {
    id: OpId::Where as u16,
    name: "where",
    doc: "One of two tensors, element by element, as a boolean says; all three are broadcast.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[1, 2]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[1, 2]]),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 3)?;
    let (choice, a, b) = (&call.inputs[0], &call.inputs[1], &call.inputs[2]);
    rules::infer::boolean(call, choice)?;
    let dtype = rules::infer::promoted(call, a.dtype, b.dtype)?;
    let shape = a.shape.broadcast(&b.shape, call.op)?.broadcast(&choice.shape, call.op)?;
    Ok(smallvec![TensorType { dtype, shape }])
}

fn cost(call: &Call) -> Cost {
    let outputs = infer(call).unwrap_or_default();
    rules::cost::elementwise(call, &outputs, 1)
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let (a, b) = (call.inputs[1].dtype, call.inputs[2].dtype);
    let dtype = rules::infer::promoted(call, a, b)?;
    let mut program = TileProgram::loading(&[DType::Bool, a, b]);
    let mut sides = [1, 2];
    for side in &mut sides {
        if program.register(*side) != dtype.compute() {
            *side = program.push(Prim::Cast(dtype.compute()), &[*side]);
        }
    }
    let chosen = program.push(Prim::Select, &[0, sides[0], sides[1]]);
    program.store(chosen, dtype);
    Ok(program)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let mut grads = vec![None];
    for side in 1..3 {
        grads.push(match call.needs[side] {
            true => {
                let (g, choice) = (call.grad()?, call.input(0)?);
                let zero = emit::number(e, 0, g.ty().dtype)?;
                let mut inputs = vec![choice, g, zero];
                if side == 2 {
                    inputs.swap(1, 2);
                }
                let part = e.apply(&WHERE, inputs, Attrs::None)?;
                emit::dense(emit::sum_to(e, part, &call.inputs[side])?)
            }
            false => None,
        });
    }
    Ok(grads)
}

fn samples() -> Vec<Sample> {
    let of = |choice: &[usize], a: &[usize], b: &[usize], dtype| {
        let types = [
            TensorType::new(DType::Bool, choice),
            TensorType::new(dtype, a),
            TensorType::new(dtype, b),
        ];
        Sample::of(&types, Attrs::None).with(0, Values::Below(2))
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|dtype| of(&[2, 3], &[2, 3], &[2, 3], dtype)).collect();
    all.extend([
        of(&[2, 3], &[3], &[], DType::F32),
        of(&[1, 3], &[2, 1], &[4, 1, 1], DType::F32),
        of(&[0], &[1], &[0], DType::F32),
        of(&[1025], &[1025], &[1], DType::F32),
    ]);
    all
}

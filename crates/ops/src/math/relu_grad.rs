//! `relu_grad`: a gradient where a bit is set, 0 elsewhere.
//!
//! The bits stand eight to a byte in the logical order of the gradient's elements, in a `u8` tensor of
//! rank 1.

use smallvec::smallvec;
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::tile::{Form, Prim, TileProgram};
use tonnage_core::{Attrs, DType, Dim, OpDef, TensorType};

use crate::{OpId, emit, rules};

/// A gradient where a bit is set, 0 elsewhere.
pub static RELU_GRAD: OpDef = OpDef {
    id: OpId::ReluGrad as u16,
    name: "relu_grad",
    doc: "A gradient where a bit is set, 0 elsewhere.",
    infer,
    axes: |call| AxisMap { ..rules::axes::mixed(&[call.inputs[0].shape.rank()]) },
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Linear(&[&[0]]),
    fails: Fails::Never,
    lower: Lower::Tile(tile),
    samples,
};

/// The type of the bits for a tensor of that type.
pub fn bits_type(of: &TensorType) -> TensorType {
    let bytes = of.shape.elements().plus(&Dim::from(7)).divided_by(&Dim::from(8));
    TensorType { dtype: DType::U8, shape: [bytes].into_iter().collect() }
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    let (g, bits) = (&call.inputs[0], &call.inputs[1]);
    let expected = bits_type(g);
    if *bits != expected {
        let help = format!("the bits of {g} are {expected}");
        let (left, right) = (g.shape.clone(), bits.shape.clone());
        return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
    }
    Ok(smallvec![g.clone()])
}

fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 1)
}

fn tile(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype]);
    program.loads.push(Form::Bits);
    let zero = program.constant(0, dtype);
    let chosen = program.push(Prim::Select, &[1, 0, zero]);
    program.store(chosen, dtype);
    Ok(program)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, bits) = (call.grad()?, call.input(1)?);
    Ok(vec![emit::dense(emit::binary(e, &RELU_GRAD, g, bits)?), None])
}

fn samples() -> Vec<Sample> {
    [vec![3, 5], vec![0], vec![], vec![1024], vec![1025], vec![8, 16]]
        .into_iter()
        .map(|shape| {
            let g = TensorType::new(DType::F32, shape);
            let bits = bits_type(&g);
            Sample::of(&[g, bits], Attrs::None).with(1, Values::Below(256))
        })
        .collect()
}

//! `fma`: the product of two tensors and a third added to it, broadcast; rounded once where the machine can.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types};
use tonnage_core::tile::TileProgram;
use tonnage_core::{DType, OpDef, TensorType};

use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules};

/// The product of two tensors and a third added to it.
pub static FMA: OpDef = OpDef {
    id: OpId::Fma as u16,
    name: "fma",
    doc: "a * b + c, broadcast; rounded once where the machine can.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0, 1, 2]),
    saves: Saves::one_of(&[&[Save::Input(1).needed_by(0), Save::Input(0).needed_by(1)]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, infer, 2),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(program),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 3)?;
    let mut made = call.inputs[0].clone();
    for ty in call.inputs {
        rules::infer::number(call, ty)?;
        made.dtype = rules::infer::promoted(call, made.dtype, ty.dtype)?;
        made.shape = made.shape.broadcast(&ty.shape, call.op)?;
    }
    Ok(smallvec![made])
}

fn program(call: &Call, _: bool) -> Result<TileProgram> {
    let dtype = infer(call)?[0].dtype;
    let loads = [call.inputs[0].dtype, call.inputs[1].dtype, call.inputs[2].dtype];
    Ok(Chain::program(loads, dtype, |p, loads| {
        let [a, b, c] = loads.map(|reg| p.cast(reg, dtype));
        (p.fma(a, b, c), None)
    }))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    Ok(vec![
        slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(1)], |p, [g, b]| p.mul(g, b))?,
        slope(e, call, 1, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, a]| p.mul(g, a))?,
        slope(e, call, 2, [RuleInput::Grad], |_, [g]| g)?,
    ])
}

fn samples() -> Vec<Sample> {
    let of = |dtypes: [DType; 3], shapes: [&[usize]; 3]| {
        let types: Vec<_> =
            dtypes.iter().zip(shapes).map(|(d, s)| TensorType::new(*d, s)).collect();
        Sample::of(&types, Attrs::None)
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|d| of([d; 3], [&[2, 3]; 3])).collect();
    let f32 = [DType::F32; 3];
    all.extend([
        of(f32, [&[], &[], &[]]),
        of(f32, [&[2, 3], &[3], &[2, 1]]),
        of(f32, [&[0, 3], &[1], &[3]]),
        of(f32, [&[1025], &[1025], &[1]]),
        of([DType::F16, DType::F32, DType::F16], [&[3], &[2, 1], &[]]),
    ]);
    all
}

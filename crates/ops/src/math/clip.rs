//! `clip`: every element kept between two bounds, all broadcast.
//!
//! NaN stays NaN; where the bounds cross, the upper one wins. The gradient goes to the element where it lies
//! between the bounds or on one, and to the bound that it lies beyond elsewhere. Where the bounds' gradients are
//! not wanted a bit an element is enough.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types, Values,
};
use tonnage_core::tile::{Prim, Reg, TileProgram};
use tonnage_core::{DType, OpDef, TensorType};

use super::relu_grad::bits_type;
use crate::tile::{Chain, RuleInput, slope};
use crate::{OpId, rules};

/// `(x, low, high) -> ` every element kept between the bounds.
pub static CLIP: OpDef = OpDef {
    id: OpId::Clip as u16,
    name: "clip",
    doc: "Every element kept between two bounds, all broadcast; NaN stays NaN.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves {
        alternatives: &[
            &[Save::Input(0).always(), Save::Input(1).always(), Save::Input(2).always()],
            &[
                Save::Aux(0).needed_by(0),
                Save::Input(0).needed_by(1),
                Save::Input(1).needed_by(1),
                Save::Input(2).needed_by(1),
                Save::Input(0).needed_by(2),
                Save::Input(1).needed_by(2),
                Save::Input(2).needed_by(2),
            ],
        ],
        aux,
    },
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

fn aux(call: &Call) -> Result<Types> {
    Ok(infer(call)?.iter().map(bits_type).collect())
}

fn program(call: &Call, bits: bool) -> Result<TileProgram> {
    let dtype = infer(call)?[0].dtype;
    let loads = [call.inputs[0].dtype, call.inputs[1].dtype, call.inputs[2].dtype];
    Ok(Chain::program(loads, dtype, |p, loads| {
        let [x, low, high] = loads.map(|reg| p.cast(reg, dtype));
        let raised = p.two(Prim::Max, x, low);
        let made = p.two(Prim::Min, raised, high);
        (made, bits.then(|| inside(p, x, low, high)))
    }))
}

/// Where an element is left as it is.
fn inside(p: &mut Chain, x: Reg, low: Reg, high: Reg) -> Reg {
    let (above, below) = (p.two(Prim::Ge, x, low), p.two(Prim::Le, x, high));
    p.two(Prim::And, above, below)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let all = [RuleInput::Grad, RuleInput::Input(0), RuleInput::Input(1), RuleInput::Input(2)];
    let of_x = match call.saves(Save::Aux(0)) {
        true => slope(e, call, 0, [RuleInput::Grad, RuleInput::Bits(0)], |p, [g, inside]| {
            p.or_zero(inside, g)
        })?,
        false => slope(e, call, 0, all, |p, [g, x, low, high]| {
            let inside = inside(p, x, low, high);
            p.or_zero(inside, g)
        })?,
    };
    let of_low = slope(e, call, 1, all, |p, [g, x, low, high]| {
        let raised = p.two(Prim::Lt, x, low);
        let kept = p.two(Prim::Le, low, high);
        let taken = p.two(Prim::And, raised, kept);
        p.or_zero(taken, g)
    })?;
    let of_high = slope(e, call, 2, all, |p, [g, x, low, high]| {
        let raised = p.two(Prim::Max, x, low);
        let taken = p.two(Prim::Gt, raised, high);
        p.or_zero(taken, g)
    })?;
    Ok(vec![of_x, of_low, of_high])
}

fn samples() -> Vec<Sample> {
    let of = |dtypes: [DType; 3], shapes: [&[usize]; 3]| {
        let types: Vec<_> =
            dtypes.iter().zip(shapes).map(|(d, s)| TensorType::new(*d, s)).collect();
        Sample::of(&types, Attrs::None)
            .with(0, Values::Between(0.0, 9.0))
            .with(1, Values::Between(1.0, 4.0))
            .with(2, Values::Between(5.0, 8.0))
    };
    let numbers = DType::ALL.into_iter().filter(|d| *d != DType::Bool);
    let mut all: Vec<Sample> = numbers.map(|d| of([d; 3], [&[2, 3], &[], &[]])).collect();
    let f32 = [DType::F32; 3];
    all.extend([
        of(f32, [&[], &[], &[]]),
        of(f32, [&[2, 3], &[3], &[2, 1]]),
        of(f32, [&[0, 3], &[1], &[3]]),
        of(f32, [&[1025], &[], &[1]]),
        of([DType::F16, DType::F32, DType::F16], [&[3], &[2, 1], &[]]),
    ]);
    all
}

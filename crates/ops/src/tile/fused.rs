//! `fused`: a chain of elementwise ops, with its broadcasts, casts and closing fold, in one pass.
//!
//! The planner makes it; users never see it. Its program is its attribute.

use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
};
use tonnage_core::tile::{Close, Form, Prim, Reg, TileProgram};
use tonnage_core::{DType, Dim, OpDef, TensorType};

use crate::rules;

/// A chain of elementwise ops in one pass.
pub static FUSED: OpDef = OpDef {
    name: "fused",
    doc: "A chain of elementwise ops, with its broadcasts, casts and closing fold, in one pass.",
    infer,
    axes,
    mem: Mem::Reuse(&[0, 1, 2, 3, 4, 5, 6, 7]),
    scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost,
    grad: Grad::Stop("gradients are taken before ops are fused"),
    jvp: Jvp::Stop("gradients are taken before ops are fused"),
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| program(call).cloned()),
    samples,
};

pub(super) fn program<'a>(call: &Call<'a>) -> Result<&'a TileProgram> {
    match call.attrs {
        Attrs::Tile(program) => Ok(program),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

pub(super) fn infer(call: &Call) -> Result<Types> {
    let program = program(call)?;
    rules::infer::count(call, program.loads.len())?;
    let domain = super::domain(call, program)?;
    for (ty, form) in call.inputs.iter().zip(&program.loads) {
        let expected = match form {
            Form::Elements(dtype) => *dtype,
            Form::Bits => DType::U8,
        };
        if ty.dtype != expected {
            let (op, help) = (call.op, "a fused program loads what it was made for".into());
            return Err(
                ErrorKind::DTypeMismatch { op, left: ty.dtype, right: expected, help }.into()
            );
        }
    }
    check(call, program, domain.rank())?;
    let of = |form: &Form| match (form, &program.close) {
        (Form::Bits, _) => {
            let bytes = domain.elements().plus(&Dim::from(7)).divided_by(&Dim::from(8));
            TensorType { dtype: DType::U8, shape: [bytes].into_iter().collect() }
        }
        (Form::Elements(dtype), Close::Store) => TensorType::new(*dtype, &domain),
        (Form::Elements(dtype), Close::Fold { axes, .. }) => {
            let kept = domain.iter().enumerate().filter(|(i, _)| !axes.contains(i));
            TensorType { dtype: *dtype, shape: kept.map(|(_, d)| d.clone()).collect() }
        }
    };
    Ok(program.stores.iter().map(|(_, form)| of(form)).collect())
}

/// Refuses a program that reads what it has not made, or means bits as another dtype than they are.
fn check(call: &Call, program: &TileProgram, rank: usize) -> Result<()> {
    let bad = |what: String| -> Result<()> {
        Err(bad_argument(call.op, what, "make programs with the methods of TileProgram"))
    };
    for (i, instr) in program.code.iter().enumerate() {
        let reg = program.loads.len() + i;
        let made_before = instr.args.iter().all(|arg| usize::from(*arg) < reg);
        if instr.args.len() != instr.prim.arity() || !made_before {
            return bad(format!("{:?} of the registers {:?}", instr.prim, instr.args));
        }
        let fits = |(n, arg): (usize, &Reg)| {
            let chooses = instr.prim == Prim::Select && n == 0;
            program.register(*arg) == if chooses { DType::Bool } else { instr.dtype }
        };
        if !instr.args.iter().enumerate().all(fits) {
            return bad(format!("{:?} in {} of another dtype", instr.prim, instr.dtype));
        }
    }
    let count = program.loads.len() + program.code.len();
    for (reg, form) in &program.stores {
        let folds = matches!(program.close, Close::Fold { .. });
        let fits = usize::from(*reg) < count
            && match (form, program.register(*reg)) {
                (Form::Bits, held) => held == DType::Bool && !folds,
                // A fold's result is cut to its dtype, not converted.
                (Form::Elements(dtype), held) => !folds || dtype.class() == held.class(),
            };
        if !fits {
            return bad(format!("a store of register {reg} as {form:?}"));
        }
    }
    match &program.close {
        Close::Store => Ok(()),
        Close::Fold { axes, .. }
            if program.stores.len() != 1 || !axes.is_sorted_by(|a, b| a < b) =>
        {
            bad(format!("a fold of {} stores over {axes:?}", program.stores.len()))
        }
        Close::Fold { axes, .. } => match axes.last().filter(|axis| **axis >= rank) {
            Some(axis) => bad(format!("a fold over axis {axis} of {rank}")),
            None => Ok(()),
        },
    }
}

// Bits stand eight to a byte over the whole domain: nothing that could be cut.
pub(super) fn axes(call: &Call) -> AxisMap {
    let (Ok(program), Ok(made)) = (program(call), infer(call)) else { return AxisMap::default() };
    let ranks: Vec<usize> = made.iter().map(|ty| ty.shape.rank()).collect();
    match &program.close {
        _ if program.loads.contains(&Form::Bits) => rules::axes::mixed(&ranks),
        Close::Store => {
            let one = rules::axes::elementwise(call).outputs.swap_remove(0);
            let of = |(_, form): &(Reg, Form)| match form {
                Form::Bits => vec![AxisOf::Mixed],
                Form::Elements(_) => one.clone(),
            };
            AxisMap { outputs: program.stores.iter().map(of).collect(), summed: Vec::new() }
        }
        Close::Fold { axes, .. } => {
            let mut all = rules::axes::elementwise(call).outputs.swap_remove(0);
            for axis in axes.iter().rev() {
                all.remove(*axis);
            }
            AxisMap { outputs: vec![all], summed: Vec::new() }
        }
    }
}

pub(super) fn scratch(call: &Call, _: usize) -> Bytes {
    let Ok(program) = program(call) else { return Bytes::ZERO };
    let domain = super::domain(call, program).ok().and_then(|d| d.most());
    domain.map_or(Bytes::ZERO, |domain| super::scratch(program, &domain))
}

pub(super) fn cost(call: &Call) -> Cost {
    let flops = program(call).map_or(0, TileProgram::flops);
    rules::cost::elementwise(call, &infer(call).unwrap_or_default(), flops)
}

fn samples() -> Vec<Sample> {
    // relu(a * b + 1) as f16, with the bits of its sign; and the sum of squares over the last axis.
    let mut chain = TileProgram::loading(&[DType::F32, DType::F32]);
    let one = chain.constant(1, DType::F32);
    let product = chain.push(Prim::Mul, &[0, 1]);
    let sum = chain.push(Prim::Add, &[product, one]);
    let zero = chain.constant(0, DType::F32);
    let relu = chain.push(Prim::Max, &[sum, zero]);
    chain.store(relu, DType::F16);
    let sign = chain.push(Prim::Gt, &[sum, zero]);
    chain.store_bits(sign);
    let mut squares = TileProgram::loading(&[DType::F32]);
    let square = squares.push(Prim::Square, &[0]);
    squares.store(square, DType::F32);
    squares.fold(tonnage_core::tile::Fold::Sum, &[1]);
    let ty = |shape: &[usize]| TensorType::new(DType::F32, shape);
    vec![
        Sample::of(&[ty(&[3, 5]), ty(&[5])], Attrs::Tile(Box::new(chain.clone()))),
        Sample::of(&[ty(&[1025]), ty(&[1])], Attrs::Tile(Box::new(chain))),
        Sample::of(&[ty(&[7, 1025])], Attrs::Tile(Box::new(squares))),
    ]
}

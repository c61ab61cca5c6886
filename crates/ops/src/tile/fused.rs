//! `fused`: a chain of elementwise ops, with its broadcasts, casts and closing reduction, in one pass.
//!
//! The planner makes it of others' programs, and gradient rules and composites of their own (`chain`); users
//! never see it. Its program is its attribute, and its gradient another program (`derive`).

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
    Values,
};
use tonnage_core::tile::{Close, Form, Prim, Reduction, Reg, TileProgram};
use tonnage_core::{DType, Dim, OpDef, Shape, TensorType};

use super::chain::sum_to;
use super::derive::derive;
use crate::{OpId, emit, rules};

/// A chain of elementwise ops in one pass.
pub static FUSED: OpDef = OpDef {
    id: OpId::Fused as u16,
    name: "fused",
    doc: "A chain of elementwise ops, with its broadcasts, casts and closing reduction, in one pass.",
    infer,
    axes,
    mem: Mem::Reuse(&[0, 1, 2, 3, 4, 5, 6, 7]),
    saves: Saves::one_of(&[&[Save::Inputs.always()]]),
    remat: Remat::Cheap,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
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
        (Form::Elements(dtype), Close::Reduce { axes, .. }) => {
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
        let reduces = matches!(program.close, Close::Reduce { .. });
        let fits = usize::from(*reg) < count
            && match (form, program.register(*reg)) {
                (Form::Bits, held) => held == DType::Bool && !reduces,
                // A reduction's result is cut to its dtype, not converted; a mean is a float.
                (Form::Elements(dtype), held) => {
                    let mean =
                        matches!(program.close, Close::Reduce { reduction: Reduction::Mean, .. });
                    (!reduces || dtype.class() == held.class()) && (!mean || held.is_float())
                }
            };
        if !fits {
            return bad(format!("a store of register {reg} as {form:?}"));
        }
    }
    match &program.close {
        Close::Store => Ok(()),
        Close::Reduce { axes, .. }
            if program.stores.len() != 1 || !axes.is_sorted_by(|a, b| a < b) =>
        {
            bad(format!("a reduction of {} stores over {axes:?}", program.stores.len()))
        }
        Close::Reduce { axes, .. } => match axes.last().filter(|axis| **axis >= rank) {
            Some(axis) => bad(format!("a reduction over axis {axis} of {rank}")),
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
        Close::Reduce { axes, .. } => {
            let mut all = rules::axes::elementwise(call).outputs.swap_remove(0);
            for axis in axes.iter().rev() {
                all.remove(*axis);
            }
            AxisMap { outputs: vec![all], summed: Vec::new() }
        }
    }
}

pub(super) fn cost(call: &Call) -> Cost {
    let flops = program(call).map_or(0, TileProgram::flops);
    rules::cost::elementwise(call, &infer(call).unwrap_or_default(), flops)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let program = program(&call.call())?;
    let domain = super::domain(&call.call(), program)?;
    let mut grads = Vec::new();
    for grad in call.grads {
        grads.push(grad.clone().map(|g| broadcast_back(e, program, g, &domain)).transpose()?);
    }
    let graded: Vec<bool> = grads.iter().map(Option::is_some).collect();
    let mut made = Vec::new();
    for (i, ty) in call.inputs.iter().enumerate() {
        let float = call.needs[i] && program.loads[i] == Form::Elements(ty.dtype);
        let derived = if float { derive(program, &graded, i)? } else { None };
        let Some(mut derived) = derived else {
            made.push(None);
            continue;
        };
        sum_to(&mut derived.program, &domain, &ty.shape);
        let mut reads = Vec::new();
        for read in derived.reads {
            reads.push(match read.checked_sub(call.inputs.len()) {
                None => call.input(read)?,
                Some(k) => {
                    grads[k].clone().ok_or_else(|| rules::infer::wrong_attrs(&call.call()))?
                }
            });
        }
        let grad = e.apply(&FUSED, reads, Attrs::Tile(Box::new(derived.program)))?;
        made.push(emit::dense(emit::reshape(e, grad, &ty.shape)?));
    }
    Ok(made)
}

/// The gradient of what a program stores, over its whole domain: that of a reduction, broadcast back.
fn broadcast_back(
    e: &mut dyn Emit,
    program: &TileProgram,
    g: Value,
    domain: &Shape,
) -> Result<Value> {
    let Close::Reduce { reduction, axes } = &program.close else { return Ok(g) };
    let count = axes.iter().fold(Dim::Known(1), |n, axis| n.times(&domain[*axis]));
    let g = match reduction {
        Reduction::Sum => g,
        Reduction::Mean => {
            let count = emit::size(e, &count, g.ty().dtype)?;
            emit::div(e, g, count)?
        }
        reduction => {
            let why = format!(
                "a reduction that ends in {reduction:?} was fused before it was differentiated"
            );
            return Err(ErrorKind::NoGradient { op: "fused", why }.into());
        }
    };
    let kept = |(i, d): (usize, &Dim)| if axes.contains(&i) { 1.into() } else { d.clone() };
    let kept: Shape = domain.iter().enumerate().map(kept).collect();
    let g = emit::reshape(e, g, &kept)?;
    emit::broadcast_to(e, g, domain)
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
    squares.close = Close::Reduce { reduction: Reduction::Sum, axes: [1].as_slice().into() };
    let mut mean = squares.clone();
    mean.close = Close::Reduce { reduction: Reduction::Mean, axes: [0].as_slice().into() };
    let ty = |shape: &[usize]| TensorType::new(DType::F32, shape);
    let every = every_slope().into_iter().map(|program| {
        Sample::of(&[ty(&[7]), ty(&[2, 1])], Attrs::Tile(Box::new(program)))
            .with(0, Values::Between(1.2, 1.7))
            .with(1, Values::Between(0.3, 0.8))
    });
    let mut all = vec![
        Sample::of(&[ty(&[5, 6])], Attrs::Tile(Box::new(mean))),
        Sample::of(&[ty(&[3, 5]), ty(&[5])], Attrs::Tile(Box::new(chain.clone()))),
        Sample::of(&[ty(&[1025]), ty(&[1])], Attrs::Tile(Box::new(chain))),
        Sample::of(&[ty(&[7, 1025])], Attrs::Tile(Box::new(squares))),
    ];
    all.extend(every);
    all
}

/// Programs of one primitive each, for all that have two slopes: of an `a` between 1 and 2, or of a `b` between 0 and 1
/// where the primitive needs that.
fn every_slope() -> Vec<TileProgram> {
    use Prim::*;
    let of_a = [
        Neg, Abs, Sqrt, Rsqrt, Square, Reciprocal, Exp, Expm1, Log, Log1p, Sin, Cos, Tan, Atan,
        Sinh, Cosh, Tanh, Asinh, Acosh, Sigmoid, Softplus, Silu, Gelu, GeluTanh, Erf, Erfc, Lgamma,
        Digamma,
    ];
    let of_b = [Asin, Acos, Atanh];
    let of_both = [Add, Sub, Mul, Div, Mod, Pow, Max, Min, Atan2, Hypot];
    let with = |build: &dyn Fn(&mut TileProgram) -> Reg| {
        let mut program = TileProgram::loading(&[DType::F32, DType::F32]);
        let made = build(&mut program);
        // Both are part of it, so that each has a gradient.
        let made = program.push(Fma, &[made, 1, 0]);
        program.store(made, DType::F32);
        program
    };
    let mut all: Vec<TileProgram> =
        of_a.into_iter().map(|prim| with(&|p: &mut TileProgram| p.push(prim, &[0]))).collect();
    all.extend(of_b.into_iter().map(|prim| with(&|p: &mut TileProgram| p.push(prim, &[1]))));
    all.extend(of_both.into_iter().map(|prim| with(&|p: &mut TileProgram| p.push(prim, &[0, 1]))));
    all.push(with(&|p: &mut TileProgram| {
        let middle = p.constant(1.4, DType::F32);
        let choice = p.push(Gt, &[0, middle]);
        let wide = p.push(Cast(DType::F64), &[0]);
        let back = p.push(Cast(DType::F32), &[wide]);
        p.push(Select, &[choice, back, 1])
    }));
    all
}

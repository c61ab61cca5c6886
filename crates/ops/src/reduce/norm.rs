//! `norm`: the length of vectors over some axes: Euclid's, the sum of absolute values, the largest of them, or
//! that of any power of 1 and more.
//!
//! The length of nothing is 0. At 0 it has a kink, and the gradient there is 0; so it is for all but the
//! largest of the maximum norm, which share it evenly.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{
    AxisMap, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Types,
};
use tonnage_core::tile::{Prim, Reduction, Reg};
use tonnage_core::{OpDef, Scalar, Sizes, TensorType};

use crate::tile::{Chain, Ending, pass};
use crate::{OpId, emit, rules};

/// The length of vectors over some axes.
pub static NORM: OpDef = OpDef {
    id: OpId::Norm as u16,
    name: "norm",
    doc: "The length of vectors over some axes: the p-th root of the sum of p-th powers.",
    infer,
    axes,
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, infer, 3),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples,
};

/// Which power: 1, 2 and infinity have ways of their own.
#[derive(Clone, Copy)]
enum Power {
    One,
    Two,
    Infinite,
    Other(f64),
}

fn asked<'a>(call: &Call<'a>) -> Result<(&'a Sizes, bool, Power)> {
    let Attrs::Norm { axes, keep_dims, power } = call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    let power = match power.to_f64() {
        1.0 => Power::One,
        2.0 => Power::Two,
        f64::INFINITY => Power::Infinite,
        p if p > 1.0 => Power::Other(p),
        p => {
            let what = format!("the power {p}");
            return Err(bad_argument(call.op, what, "use 1 or more; below that it is no length"));
        }
    };
    Ok((axes, *keep_dims, power))
}

fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    let (axes, keep_dims, _) = asked(call)?;
    let ty = &call.inputs[0];
    rules::infer::float(call, ty)?;
    let attrs = Attrs::Reduce { axes: axes.clone(), keep_dims };
    let shape = rules::infer::reduced(&Call { attrs: &attrs, ..*call }, ty)?;
    Ok(smallvec![TensorType { dtype: ty.dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Ok((axes, keep_dims, _)) = asked(call) else { return AxisMap::default() };
    let attrs = Attrs::Reduce { axes: axes.clone(), keep_dims };
    rules::axes::reduction(&Call { attrs: &attrs, ..*call }, false)
}

fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let (axes, keep_dims, power) = asked(call)?;
    let x = inputs.swap_remove(0);
    let (dtype, wide) = (x.ty().dtype, x.ty().dtype.compute());
    let reduction = if matches!(power, Power::Infinite) { Reduction::Max } else { Reduction::Sum };
    let ending = Ending::Reduce { reduction, axes, keep_dims, dtype: wide };
    let reduced = pass(e, [x], ending, |p, [x]| match power {
        Power::Two => p.one(Prim::Square, x),
        Power::One | Power::Infinite => p.one(Prim::Abs, x),
        Power::Other(power) => {
            let size = p.one(Prim::Abs, x);
            p.with(Prim::Pow, size, power)
        }
    })?;
    let made = pass(e, [reduced], Ending::Store(dtype), |p, [sum]| match power {
        Power::Two => p.one(Prim::Sqrt, sum),
        Power::One => sum,
        // The largest of nothing is minus infinity.
        Power::Infinite => p.with(Prim::Max, sum, 0),
        Power::Other(power) => p.with(Prim::Pow, sum, 1.0 / power),
    })?;
    Ok(vec![made])
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _, power) = asked(&call.call())?;
    let (g, x, y) = (call.grad()?, call.input(0)?, call.output(0)?);
    let kept = super::keep_dims_shape(&call.inputs[0].shape, axes);
    let (g, y) = (emit::reshape(e, g, &kept)?, emit::reshape(e, y, &kept)?);
    let ending = Ending::SumTo(&call.inputs[0]);
    let made = match power {
        Power::One => pass(e, [g, x], ending, |p, [g, x]| {
            let sign = p.one(Prim::Sign, x);
            p.mul(g, sign)
        })?,
        Power::Two => pass(e, [g, x, y], ending, |p, [g, x, y]| {
            let share = share(p, x, y);
            p.mul(g, share)
        })?,
        Power::Infinite => {
            let dtype = x.ty().dtype.compute();
            let hits = Ending::Reduce { reduction: Reduction::Sum, axes, keep_dims: true, dtype };
            let hits = pass(e, [x.clone(), y.clone()], hits, |p, [x, y]| {
                let hit = largest(p, x, y);
                p.cast(hit, dtype)
            })?;
            let part = emit::div(e, g, hits)?;
            pass(e, [part, x, y], ending, |p, [part, x, y]| {
                let hit = largest(p, x, y);
                let sign = p.one(Prim::Sign, x);
                let part = p.cast(part, dtype);
                let signed = p.mul(part, sign);
                p.or_zero(hit, signed)
            })?
        }
        // sign(x) * (|x| / y)^(power - 1)
        Power::Other(power) => pass(e, [g, x, y], ending, |p, [g, x, y]| {
            let size = p.one(Prim::Abs, x);
            let share = share(p, size, y);
            let slope = p.with(Prim::Pow, share, power - 1.0);
            let sign = p.one(Prim::Sign, x);
            let signed = p.mul(slope, sign);
            p.mul(g, signed)
        })?,
    };
    Ok(vec![emit::dense(made)])
}

/// `x / y`, and 0 where y is.
fn share(p: &mut Chain, x: Reg, y: Reg) -> Reg {
    let share = p.div(x, y);
    let nothing = p.with(Prim::Eq, y, 0);
    p.zero_or(nothing, share)
}

fn largest(p: &mut Chain, x: Reg, y: Reg) -> Reg {
    let size = p.one(Prim::Abs, x);
    p.two(Prim::Eq, size, y)
}

fn samples() -> Vec<Sample> {
    let power = |power: f64| {
        super::float_samples().into_iter().filter_map(move |sample| match sample.attrs {
            Attrs::Reduce { axes, keep_dims } => {
                let attrs = Attrs::Norm { axes, keep_dims, power: Scalar::Float(power) };
                Some(Sample { attrs, ..sample })
            }
            _ => None,
        })
    };
    let all = [1.0, f64::INFINITY, 3.0].into_iter().flat_map(|p| power(p).take(10));
    power(2.0).chain(all).collect()
}

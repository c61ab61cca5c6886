//! `logsumexp`: the logarithm of the sum of exponentials over some axes.
//!
//! The largest element is taken out first, so that nothing overflows. Of nothing, and of minus infinities
//! alone, it is minus infinity, and the gradient there is 0.

use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Keep, Lower, Mem, Remat, Saves, no_scratch};
use tonnage_core::tile::{Fold, Prim};
use tonnage_core::{DType, OpDef};

use crate::tile::{Ending, pass};
use crate::{emit, rules};

/// The logarithm of the sum of exponentials over some axes.
pub static LOGSUMEXP: OpDef = OpDef {
    name: "logsumexp",
    doc: "The logarithm of the sum of exponentials over some axes, without overflow on the way.",
    infer: super::of_float,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Input(0).always(), Keep::Output(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_float, 12),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples: super::float_samples,
};

fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let x = inputs.swap_remove(0);
    let dtype = x.ty().dtype;
    let made = log_sum(e, call, x, dtype)?;
    let shape = rules::infer::reduced(call, &call.inputs[0])?;
    Ok(vec![emit::reshape(e, made, &shape)?])
}

/// The result in that dtype, its axes kept.
fn log_sum(e: &mut dyn Emit, call: &Call, x: Value, dtype: DType) -> Result<Value> {
    let (axes, _) = super::reduced(call)?;
    let wide = x.ty().dtype.compute();
    let most = Ending::Fold { fold: Fold::Max, axes, keep_dims: true, dtype: wide };
    let most = pass(e, [x.clone()], most, |_, [x]| x)?;
    // An infinity taken away from itself would be NaN.
    let most = pass(e, [most], Ending::Store(wide), |p, [most]| {
        let finite = p.one(Prim::IsFinite, most);
        p.or_zero(finite, most)
    })?;
    let sum = Ending::Fold { fold: Fold::Sum, axes, keep_dims: true, dtype: wide };
    let sum = pass(e, [x, most.clone()], sum, |p, [x, most]| {
        let less = p.sub(x, most);
        p.one(Prim::Exp, less)
    })?;
    pass(e, [sum, most], Ending::Store(dtype), |p, [sum, most]| {
        let log = p.one(Prim::Log, sum);
        p.add(log, most)
    })
}

/// `g * exp(x - y)`
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let (g, x) = (call.grad()?, call.input(0)?);
    let kept = super::kept(&call.inputs[0].shape, axes);
    let g = emit::reshape(e, g, &kept)?;
    let wide = x.ty().dtype.compute();
    // A result of 16 bits is too rough for an exponent: it is made again from the input.
    let y = match wide == x.ty().dtype {
        true => {
            let y = call.output(0)?;
            emit::reshape(e, y, &kept)?
        }
        false => log_sum(e, &call.call(), x.clone(), wide)?,
    };
    let made = pass(e, [g, x, y], Ending::SumTo(&call.inputs[0]), |p, [g, x, y]| {
        let less = p.sub(x, y);
        let share = p.one(Prim::Exp, less);
        let nothing = p.with(Prim::Eq, y, f64::NEG_INFINITY);
        let share = p.zero_or(nothing, share);
        p.mul(g, share)
    })?;
    Ok(vec![emit::dense(made)])
}

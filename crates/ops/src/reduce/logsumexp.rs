//! `logsumexp`: the logarithm of the sum of exponentials over some axes.
//!
//! The largest element is taken out first, so that nothing overflows. Of nothing, and of minus infinities
//! alone, it is minus infinity, and the gradient there is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reduction};

use crate::math::stop_gradient::STOP_GRADIENT;
use crate::tile::{Ending, pass};
use crate::{OpId, emit, rules};

/// The logarithm of the sum of exponentials over some axes.
pub static LOGSUMEXP: OpDef = OpDef {
    id: OpId::Logsumexp as u16,
    name: "logsumexp",
    doc: "The logarithm of the sum of exponentials over some axes, without overflow on the way.",
    infer: super::of_float,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
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
    let most = largest(e, call, x.clone())?;
    let sum = sum_of_powers(e, call, x, most.clone())?;
    let made = pass(e, [sum, most], Ending::Store(dtype), |p, [sum, most]| {
        let log = p.one(Prim::Log, sum);
        p.add(log, most)
    })?;
    let shape = rules::infer::reduced(call, &call.inputs[0])?;
    Ok(vec![emit::reshape(e, made, &shape)?])
}

/// The largest elements, their axes kept; 0 where that is infinite or NaN.
fn largest(e: &mut dyn Emit, call: &Call, x: Value) -> Result<Value> {
    let (axes, _) = super::reduced(call)?;
    let wide = x.ty().dtype.compute();
    let most = Ending::Reduce { reduction: Reduction::Max, axes, keep_dims: true, dtype: wide };
    let most = pass(e, [x], most, |_, [x]| x)?;
    // An infinity taken away from itself would be NaN.
    pass(e, [most], Ending::Store(wide), |p, [most]| {
        let finite = p.one(Prim::IsFinite, most);
        p.or_zero(finite, most)
    })
}

/// The sums of the powers of e relative to the largest elements.
fn sum_of_powers(e: &mut dyn Emit, call: &Call, x: Value, most: Value) -> Result<Value> {
    let (axes, _) = super::reduced(call)?;
    let wide = x.ty().dtype.compute();
    let sum = Ending::Reduce { reduction: Reduction::Sum, axes, keep_dims: true, dtype: wide };
    pass(e, [x, most], sum, |p, [x, most]| {
        let less = p.sub(x, most);
        p.one(Prim::Exp, less)
    })
}

/// `g * exp(x - most) / sum`. The result itself is no use as an exponent: beside a large element it has lost the
/// logarithm of the sum.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let (g, x) = (call.grad()?, call.input(0)?);
    let g = emit::reshape(e, g, &super::keep_dims_shape(&call.inputs[0].shape, axes))?;
    let most = largest(e, &call.call(), x.clone())?;
    // Any number in its place gives the same gradient, so it has no slope of its own.
    let most = emit::unary(e, &STOP_GRADIENT, most)?;
    let sum = sum_of_powers(e, &call.call(), x.clone(), most.clone())?;
    let made =
        pass(e, [g, x, most, sum], Ending::SumTo(&call.inputs[0]), |p, [g, x, most, sum]| {
            let less = p.sub(x, most);
            let power = p.one(Prim::Exp, less);
            let share = p.div(power, sum);
            let nothing = p.with(Prim::Eq, sum, 0.0);
            let share = p.zero_or(nothing, share);
            p.mul(g, share)
        })?;
    Ok(vec![emit::dense(made)])
}

//! `var`: the variance over some axes: the mean of the squared distances from the mean.
//!
//! Divided by how many elements there are, not by one less. Two passes over the input: the squares of large
//! numbers that differ little would leave nothing. The variance of nothing is NaN.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::{Prim, Reduction};

use crate::tile::{Ending, pass};
use crate::{OpId, emit, rules};

/// The variance over some axes.
pub static VAR: OpDef = OpDef {
    id: OpId::Var as u16,
    name: "var",
    doc: "The variance over some axes: the mean of the squared distances from the mean.",
    infer: super::of_float,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_float, 4),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Composite(expand),
    samples: super::float_samples,
};

fn expand(e: &mut dyn Emit, call: &Call, mut inputs: Vec<Value>) -> Result<Vec<Value>> {
    let x = inputs.swap_remove(0);
    let dtype = x.ty().dtype;
    Ok(vec![variance(e, call, x, dtype, |_, var| var)?])
}

/// The variance, and what is made of it at the end.
pub(super) fn variance(
    e: &mut dyn Emit,
    call: &Call,
    x: Value,
    dtype: tonnage_core::DType,
    end: impl Fn(&mut crate::tile::Chain, tonnage_core::tile::Reg) -> tonnage_core::tile::Reg,
) -> Result<Value> {
    let (axes, keep_dims) = super::reduced(call)?;
    let mean = super::wide_mean(e, x.clone(), axes)?;
    let ending =
        Ending::Reduce { reduction: Reduction::Mean, axes, keep_dims, dtype: dtype.compute() };
    let var = pass(e, [x, mean], ending, |p, [x, mean]| {
        let distance = p.sub(x, mean);
        p.one(Prim::Square, distance)
    })?;
    pass(e, [var], Ending::Store(dtype), |p, [var]| end(p, var))
}

/// `g * 2 * (x - mean) / n`
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let shape = &call.inputs[0].shape;
    let count = emit::size(e, &super::count(shape, axes), call.inputs[0].dtype.compute())?;
    let g = call.grad()?;
    let g = emit::reshape(e, g, &super::keep_dims_shape(shape, axes))?;
    let share = emit::div(e, g, count)?;
    let share = emit::scale(e, share, 2)?;
    distances(e, call, share)
}

/// A share of the gradient, as far as it was reduced, times the distances from the mean.
///
/// The mean is rounded, and what it is off by is a large part of the distances between large numbers that differ little. The
/// mean of the distances says how much that is, in one more pass over the input.
pub(super) fn distances(
    e: &mut dyn Emit,
    call: &GradCall,
    share: Value,
) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let x = call.input(0)?;
    let mean = super::wide_mean(e, x.clone(), axes)?;
    let dtype = x.ty().dtype.compute();
    let rounded_off = Ending::Reduce { reduction: Reduction::Mean, axes, keep_dims: true, dtype };
    let off = pass(e, [x.clone(), mean.clone()], rounded_off, |p, [x, mean]| p.sub(x, mean))?;
    let ending = Ending::SumTo(&call.inputs[0]);
    let made = pass(e, [share, x, mean, off], ending, |p, [share, x, mean, off]| {
        let distance = p.sub(x, mean);
        let distance = p.sub(distance, off);
        let share = p.cast(share, dtype);
        p.mul(share, distance)
    })?;
    Ok(vec![emit::dense(made)])
}

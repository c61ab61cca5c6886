//! `std`: the standard deviation over some axes: the root of the variance.
//!
//! As `var` it divides by how many elements there are. Where all elements are equal it has a kink, and the
//! gradient there is 0.

use tonnage_core::OpDef;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};
use tonnage_core::tile::Prim;

use super::var::{distances, variance};
use crate::math::divide_no_nan::DIVIDE_NO_NAN;
use crate::{OpId, emit, rules};

/// The standard deviation over some axes.
pub static STD: OpDef = OpDef {
    id: OpId::Std as u16,
    name: "std",
    doc: "The standard deviation over some axes: the root of the variance.",
    infer: super::of_float,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]),
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
    Ok(vec![variance(e, call, x, dtype, |p, var| p.one(Prim::Sqrt, var))?])
}

/// `g * (x - mean) / (n * y)`
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let shape = &call.inputs[0].shape;
    let kept = super::keep_dims_shape(shape, axes);
    let (g, y) = (call.grad()?, call.output(0)?);
    let (g, y) = (emit::reshape(e, g, &kept)?, emit::reshape(e, y, &kept)?);
    let count = emit::size(e, &super::count(shape, axes), call.inputs[0].dtype.compute())?;
    let below = emit::mul(e, y, count)?;
    let share = emit::binary(e, &DIVIDE_NO_NAN, g, below)?;
    distances(e, call, share)
}

//! `prod`: multiplied over some axes; the product of nothing is 1.
//!
//! Integers wrap around. The gradient of an element is the product of all others, from both sides of it and
//! without a division: zeros are no trouble.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Save, Saves, Values};
use tonnage_core::tile::Reduction;
use tonnage_core::{OpDef, Shape, Sizes};

use super::cumprod::CUMPROD;
use crate::tile::{Ending, pass};
use crate::{OpId, emit, rules};

/// Multiplied over some axes; the product of nothing is 1.
pub static PROD: OpDef = OpDef {
    id: OpId::Prod as u16,
    name: "prod",
    doc: "Multiplied over some axes; the product of nothing is 1.",
    infer: super::of_number,
    axes: |call| rules::axes::reduction(call, false),
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost(call, super::of_number, 1),
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| super::reduction_program(call, Reduction::Prod)),
    samples,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = super::reduced(&call.call())?;
    let (g, x, shape) = (call.grad()?, call.input(0)?, &call.inputs[0].shape);
    // The reduced axes as one, behind the others.
    let rest = (0..shape.rank()).filter(|axis| !axes.contains(axis));
    let order: Sizes = rest.clone().chain(axes.iter().copied()).collect();
    let outer = rest.map(|axis| shape[axis].clone());
    let flat: Shape = outer.chain([super::count(shape, axes)]).collect();
    let transposed = emit::transpose(e, x, &order)?;
    let between = transposed.ty().shape.clone();
    let rows = emit::reshape(e, transposed, &flat)?;
    let axis = flat.rank() - 1;
    let before = Attrs::Scan { axis, exclusive: true, reverse: false };
    let before = e.apply(&CUMPROD, vec![rows.clone()], before)?;
    let behind = Attrs::Scan { axis, exclusive: true, reverse: true };
    let behind = e.apply(&CUMPROD, vec![rows], behind)?;
    let g = emit::reshape(e, g, &super::keep_dims_shape(&flat, &[axis]))?;
    let dtype = call.inputs[0].dtype;
    let made = pass(e, [before, behind, g], Ending::Store(dtype), |p, [before, behind, g]| {
        let others = p.mul(before, behind);
        p.mul(others, g)
    })?;
    let made = emit::reshape(e, made, &between)?;
    let mut back = order.clone();
    order.iter().enumerate().for_each(|(to, from)| back[*from] = to);
    Ok(vec![emit::dense(emit::transpose(e, made, &back)?)])
}

/// Values around 1: a product of many others would be 0 or endless.
fn samples() -> Vec<Sample> {
    let near_one = |sample: Sample| match sample.inputs[0].ty.dtype.is_float() {
        true => sample.with(0, Values::Between(0.95, 1.05)),
        false => sample,
    };
    super::number_samples().into_iter().map(near_one).collect()
}

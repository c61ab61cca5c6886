//! `tril`: the lower triangle of each matrix: what is on a diagonal and below it, with zeros above.

use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::Prim;

use super::matrix::batch_axes;
use super::triangle;
use crate::{OpId, emit};

/// `x [.., n, m] -> [.., n, m]`
pub static TRIL: OpDef = OpDef {
    id: OpId::Tril as u16,
    name: "tril",
    doc: "The lower triangle of a matrix: what is on a diagonal and below it, zeros above.",
    infer: triangle::infer,
    axes: batch_axes,
    mem: Mem::Reuse(&[0]),
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: triangle::cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Composite(|e, call, inputs| triangle::expand(e, call, inputs, Prim::Le)),
    samples: triangle::samples,
};

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let g = call.grad()?;
    Ok(vec![emit::dense(e.apply(&TRIL, vec![g], call.attrs.clone())?)])
}

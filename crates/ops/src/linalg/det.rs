//! `det`: the determinant of each square matrix.
//!
//! The gradient needs the inverse, so asking for that of a matrix without one is an error.

use smallvec::smallvec;
use tonnage_core::OpDef;
use tonnage_core::emit::Emit;
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{AxisMap, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves};

use super::inv;
use super::slogdet::{along_inverse, batch_only, batch_type, factor_cost};
use crate::{OpId, emit};

/// `a [.., n, n] -> [..]`
pub static DET: OpDef = OpDef {
    id: OpId::Det as u16,
    name: "det",
    doc: "The determinant of a square matrix.",
    infer: |call| Ok(smallvec![batch_type("det", call)?]),
    axes: |call| AxisMap { outputs: vec![batch_only(call)], summed: Vec::new() },
    mem: Mem::Alloc,
    saves: Saves::one_of(&[&[Save::Input(0).always(), Save::Output(0).always()]]),
    remat: Remat::Costly,
    cost: factor_cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: inv::samples,
};

/// g times the determinant, times the transposed inverse.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, y) = (call.grad()?, call.output(0)?);
    let g = emit::mul(e, g, y)?;
    Ok(vec![emit::dense(along_inverse(e, call, g)?)])
}

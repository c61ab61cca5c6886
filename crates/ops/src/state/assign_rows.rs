//! `assign_rows`: rows of a variable become others, in place.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::JvpCall;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, OpDef};

use crate::index::rows::{scatter_axes, scatter_type};
use crate::index::scatter_update::{self, SCATTER_UPDATE};
use crate::infer::{cost, no_attrs};
use crate::{OpId, emit};

/// `(variable, indices, rows) -> variable`, along the first axis.
pub static ASSIGN_ROWS: OpDef = OpDef {
    id: OpId::AssignRows as u16,
    name: "assign_rows",
    doc: "Rows of a variable become others, in place; the last of equal indices stays.",
    infer,
    axes: scatter_axes,
    mem: Mem::Update(0),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Never,
    cost: |call: &Call| cost(0, call.inputs.iter().skip(1).chain(call.inputs.get(2))),
    grad: Grad::Rule(scatter_update::grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: super::row_samples,
};

fn infer(call: &Call) -> Result<Types> {
    no_attrs("assign_rows", call)?;
    let variable = scatter_type("assign_rows", call)?;
    Ok(smallvec![variable])
}

// A new tensor, not the op itself on the tangents: those are nobody's variable.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<Vec<Option<Value>>> {
    let mut inputs = Vec::new();
    for (i, (value, tangent)) in call.inputs.iter().zip(call.tangents).enumerate() {
        inputs.push(match (i, tangent) {
            (1, _) => value.clone(),
            (_, Some(tangent)) => tangent.clone(),
            (_, None) => emit::zeros(e, value.ty())?,
        });
    }
    Ok(vec![Some(e.apply(&SCATTER_UPDATE, inputs, Attrs::None)?)])
}

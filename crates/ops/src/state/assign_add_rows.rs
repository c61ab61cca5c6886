//! `assign_add_rows`: rows of a variable grow by others, in place. All other rows are neither read nor
//! written: it takes the time and the memory of the rows.

use smallvec::smallvec;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::JvpCall;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::{Attrs, OpDef};

use crate::index::rows::{scatter_axes, scatter_type};
use crate::index::scatter_add::{self, SCATTER_ADD};
use crate::infer::{cost, elements, no_attrs, number};
use crate::{OpId, emit};

/// `(variable, indices, rows) -> variable`, along the first axis.
pub static ASSIGN_ADD_ROWS: OpDef = OpDef {
    id: OpId::AssignAddRows as u16,
    name: "assign_add_rows",
    doc: "Rows of a variable grow by others, in place; equal indices add up.",
    infer,
    axes: scatter_axes,
    mem: Mem::Update(0),
    saves: Saves::one_of(&[&[Save::Input(1).always()]]),
    remat: Remat::Never,
    cost: |call: &Call| {
        let rows = call.inputs.get(2);
        cost(rows.map_or(0, elements), call.inputs.iter().skip(1).chain(rows).chain(rows))
    },
    grad: Grad::Rule(scatter_add::grad),
    jvp: Jvp::Rule(jvp),
    fails: Fails::OnData,
    lower: Lower::Kernel,
    samples: super::row_samples,
};

fn infer(call: &Call) -> Result<Types> {
    no_attrs("assign_add_rows", call)?;
    let variable = scatter_type("assign_add_rows", call)?;
    number("assign_add_rows", &variable)?;
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
    Ok(vec![Some(e.apply(&SCATTER_ADD, inputs, Attrs::None)?)])
}

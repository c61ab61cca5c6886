//! `argsort`: where the elements of each row of the last axis stand once they are in order, as i32.
//!
//! Stable: of equal elements (0 and -0 are equal, and so are NaNs) the one with the lower index comes first, up and
//! down. NaN counts as larger than everything.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{AxisOf, Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::{DType, OpDef, TensorType};

use super::along::{leading_axes, one_output};
use super::sort;
use crate::OpId;
use crate::infer::{bad_attrs, cost, elements, inputs, rank_at_least};

/// `x [.., n] -> i32 [.., n]`; whether the largest comes first as [`Attrs::Descending`].
pub static ARGSORT: OpDef = OpDef {
    id: OpId::Argsort as u16,
    name: "argsort",
    doc: "Where the elements of each row of the last axis stand once they are in order, as i32.",
    infer,
    axes: |call| one_output(leading_axes(call.inputs[0].shape.rank(), 1, AxisOf::Mixed)),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(20);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
    samples: || sort::samples(&DType::ALL),
};

/// Whether the largest comes first.
pub(super) fn descending(call: &Call) -> Result<bool> {
    match *call.attrs {
        Attrs::Descending(descending) => Ok(descending),
        _ => Err(bad_attrs(call.op, call.attrs, "whether the largest comes first")),
    }
}

/// Refuses rows whose indices are no i32.
pub fn counts_in_i32(op: &'static str, n: usize) -> Result<()> {
    match i32::try_from(n) {
        Ok(_) => Ok(()),
        Err(_) => {
            let what = format!("the last axis has {n} elements, and indices are i32");
            Err(bad_argument(op, what, "cut it into parts of less than 2^31"))
        }
    }
}

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("argsort", call)?;
    descending(call)?;
    rank_at_least("argsort", x, 1, "it sorts along the last axis")?;
    counts_in_i32("argsort", x.shape.last().and_then(|d| d.known()).unwrap_or(0))?;
    Ok(smallvec![TensorType::new(DType::I32, &x.shape)])
}

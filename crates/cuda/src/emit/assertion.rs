//! The kernel of an assertion that looks at a count of what is wrong: whether it is 0.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, HostCall};
use tonnage_ops::OpId;

use super::{Demand, KernelKey, Launch, OpCall, bad};

/// The call of an assertion that needs no host until it fails.
fn assertion(op: &OpDef, attrs: &Attrs) -> Option<Arc<HostCall>> {
    match attrs {
        Attrs::Host { call, .. } if op.id == OpId::Assertion as u16 && call.is_assertion() => {
            Some(call.clone())
        }
        _ => None,
    }
}

/// Whether an op is one.
pub fn has(op: &OpDef, attrs: &Attrs) -> bool {
    assertion(op, attrs).is_some()
}

/// The launch of one.
///
/// # Errors
/// Where it was lent something else than two numbers in memory.
pub fn launch(call: &OpCall) -> Result<Option<Launch>> {
    let Some(assertion) = assertion(call.op, call.attrs) else {
        return Err(bad("an assertion of a count"));
    };
    Ok(Some(Launch {
        key: KernelKey::Assertion,
        functions: SmallVec::from_iter([("kernel", 1)]),
        words: vec![call.memory(0)?.0, call.memory(1)?.0],
        demand: Some(Demand::Nothing(assertion)),
    }))
}

/// The text of the kernel.
pub fn text() -> String {
    "struct P { u64 w[2]; };\nTN_KERNEL(kernel) {\n  const i64 wrong = *(const i64*)p.w[0];\n\
     \x20 if (blockIdx.x == 0 && threadIdx.x == 0 && wrong != 0) guard.fail(*(const u64*)p.w[1], wrong);\n}\n"
        .to_string()
}

//! The kernel of an assertion that looks at one finding: whether it is 0, which it is where all was well.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::OpDef;
use tonnage_core::{Attrs, DType, HostCall};
use tonnage_ops::OpId;

use super::{Demand, KernelKey, Launch, OpCall, Operand, bad};

/// The call of an assertion that needs no host until it fails.
fn call(op: &OpDef, attrs: &Attrs) -> Option<Arc<HostCall>> {
    match attrs {
        Attrs::Host { call, .. } if op.id == OpId::Assertion as u16 && call.is_of_finding() => {
            Some(call.clone())
        }
        _ => None,
    }
}

/// Whether an op is one.
pub fn has(op: &OpDef, attrs: &Attrs) -> bool {
    call(op, attrs).is_some()
}

/// The launch of one.
///
/// # Errors
/// Where it was lent something else than two numbers in memory.
pub fn launch(of: &OpCall) -> Result<Option<Launch>> {
    let (
        Some(call),
        [
            (Operand::Memory(found, found_lies), DType::I64),
            (Operand::Memory(all, all_lies), DType::I64),
        ],
    ) = (call(of.op, of.attrs), of.operands)
    else {
        return Err(bad("a finding and what it is of, both in memory"));
    };
    let at = |address: &u64, offset: usize| address + (offset * DType::I64.size()) as u64;
    Ok(Some(Launch {
        key: KernelKey::Finding,
        functions: SmallVec::from_iter([("kernel", 1)]),
        words: vec![at(found, found_lies.offset), at(all, all_lies.offset)],
        demand: Some(Demand::Nothing(call)),
    }))
}

/// The text of the kernel.
pub fn text() -> String {
    "struct P { u64 w[2]; };\nTN_KERNEL(kernel) {\n  const i64 found = *(const i64*)p.w[0];\n\
     \x20 if (blockIdx.x == 0 && threadIdx.x == 0 && found != 0) guard.fail(*(const u64*)p.w[1], found);\n}\n"
        .to_string()
}

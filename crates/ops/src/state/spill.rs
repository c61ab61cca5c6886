//! `spill`, `spill_wait`, `unspill` and `unspill_wait`: a value waits in a file instead of in memory.
//!
//! The planner makes these nodes where a budget asks for them, and nothing else does: they stand in no table of ops,
//! have no meaning in eager mode, and come after every gradient. Written as nodes of the graph, who holds which bytes
//! when is what SSA says anyway: `spill_wait` reads the value, so its memory lives until it is written;
//! what `unspill` makes lives from the moment at which reading begins. A row with both the start and the end in it
//! would have been two nodes fewer, and no overlap with computing.
//!
//! Decision: `docs/decisions/spilling-is-four-nodes.md`.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Transfer, Types,
};

use crate::{OpId, rules};

/// A value begins to be written; what comes out lies in the file.
pub static SPILL: OpDef = row(
    OpId::Spill,
    "spill",
    "A value begins to be written to a file.",
    Mem::Alloc,
    Transfer::Write,
);

/// A value and what `spill` made of it: it is written when this is done.
pub static SPILL_WAIT: OpDef = row(
    OpId::SpillWait,
    "spill_wait",
    "A value has been written to a file.",
    Mem::View(1),
    Transfer::Written,
);

/// A value in a file begins to be read back.
pub static UNSPILL: OpDef = row(
    OpId::Unspill,
    "unspill",
    "A value begins to be read back from a file.",
    Mem::Alloc,
    Transfer::Read,
);

/// A value has arrived in memory.
pub static UNSPILL_WAIT: OpDef = row(
    OpId::UnspillWait,
    "unspill_wait",
    "A value has been read back from a file.",
    Mem::View(0),
    Transfer::Arrived,
);

const fn row(
    id: OpId,
    name: &'static str,
    doc: &'static str,
    mem: Mem,
    transfer: Transfer,
) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer,
        axes: rules::axes::elementwise,
        mem,
        saves: Saves::NOTHING,
        remat: Remat::Never,
        cost,
        grad: Grad::Stop("it is made behind every gradient"),
        jvp: Jvp::Stop("it is made behind every gradient"),
        fails: Fails::OnIo,
        lower: Lower::Transfer(transfer),
        samples,
    }
}

fn infer(call: &Call) -> Result<Types> {
    Ok(Types::from_iter([call.inputs[0].clone()]))
}

/// The lane's work is not the processor's: the planner knows a machine's figures for it.
fn cost(_: &Call) -> Cost {
    Cost::default()
}

fn samples() -> Vec<Sample> {
    Vec::new()
}

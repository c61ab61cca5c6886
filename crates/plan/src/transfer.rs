//! Values that wait in the spill file: where they lie there, and the steps that start and await the disk lane.
//! `budget` alone makes such nodes.
//!
//! The invariant: bytes that the lane reads or writes live from the step that starts it to the step that awaits it,
//! because both name the value.
//!
//! Decision: `docs/decisions/spilling-is-four-nodes.md`.

use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Node;
use tonnage_core::row::Transfer;

use crate::place::Planner;
use crate::plan::{Run, StepMemory};

/// A node that starts the disk lane, or awaits it.
pub(crate) fn node(planner: &mut Planner, node: &Node, transfer: Transfer) -> Result<()> {
    let (first, made) = (node.inputs[0], node.outputs[0]);
    let memory = match transfer {
        Transfer::Write => {
            planner.materialize(node, first)?;
            planner.fresh_where_spilled(node, made)?;
            StepMemory::Spills
        }
        Transfer::Read => {
            planner.fresh(node, made)?;
            StepMemory::ReadsBack
        }
        Transfer::Written | Transfer::Arrived => {
            let last = node.inputs.last().copied().unwrap_or(first);
            planner.alias(made, last)?;
            StepMemory::Waits
        }
    };
    planner.step(node, Run::Transfer(transfer), memory, Bytes::ZERO);
    Ok(())
}

//! Values that wait in the spill file: where they lie there, and the steps that start and await the disk lane. Part
//! of [`Planner`]; `budget` alone makes such nodes.
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

impl Planner<'_> {
    pub fn transfer(&mut self, node: &Node, transfer: Transfer) -> Result<()> {
        let (first, made) = (node.inputs[0], node.outputs[0]);
        let memory = match transfer {
            Transfer::Write => {
                self.materialize(node, first)?;
                self.fresh(node, made)?;
                if let Some(buffer) = self.places.buffer(made) {
                    self.buffers.spill(buffer);
                }
                StepMemory::Spills
            }
            Transfer::Read => {
                self.fresh(node, made)?;
                StepMemory::ReadsBack
            }
            Transfer::Written | Transfer::Arrived => {
                let last = node.inputs.last().copied().unwrap_or(first);
                let placed = self.place(last)?.clone();
                self.places.put(made, placed);
                StepMemory::Waits
            }
        };
        self.step(node, Run::Transfer(transfer), memory, Bytes::ZERO);
        Ok(())
    }
}

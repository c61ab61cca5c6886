//! One arena for all buffers: their offsets, and what lives at every step. Part of [`Planner`]: the last thing
//! that it does.
//!
//! The invariant: a buffer that leaves the arena as an output starts on a page, so that it can be cut out.

use tonnage_core::bytes::{Bytes, PAGE};
use tonnage_core::error::Result;

use crate::offsets::{self, Effort, Item};
use crate::place::Planner;
use crate::plan::{At, BufferId, BufferPlan, Placed, Run, StepMemory};

impl Planner<'_> {
    /// Offsets for all buffers; the largest sum that lives together.
    pub fn pack(&mut self) -> Result<Bytes> {
        let items = |unit: u64, buffers: &[BufferPlan]| -> Vec<Item> {
            buffers
                .iter()
                .map(|b| Item {
                    lower: b.first as u32,
                    upper: b.last as u32 + 1,
                    size: b.bytes.get().next_multiple_of(unit),
                })
                .collect()
        };
        let mut packing = offsets::pack(&items(1, &self.buffers), Effort::PLAN, &mut || false)?;
        let bound = Bytes::new(packing.bound);
        let aligned = self
            .buffers
            .iter()
            .zip(&packing.offsets)
            .all(|(b, offset)| !b.kept || offset.is_multiple_of(PAGE));
        if !aligned {
            packing = offsets::pack(&items(PAGE, &self.buffers), Effort::PLAN, &mut || false)?;
        }
        for (buffer, offset) in self.buffers.iter_mut().zip(packing.offsets) {
            buffer.offset = Bytes::new(offset);
        }
        Ok(bound)
    }

    /// What lives at every step.
    pub fn figures(&mut self) {
        for (i, buffer) in self.buffers.iter().enumerate().filter(|(_, b)| !b.bytes.is_zero()) {
            self.steps[buffer.first].begins.push(BufferId(i));
            self.steps[buffer.last].ends.push(BufferId(i));
        }
        let mut live = Bytes::ZERO;
        for step in &mut self.steps {
            live += step.begins.iter().map(|b| self.buffers[b.0].bytes).sum();
            step.live = live;
            live -= step.ends.iter().map(|b| self.buffers[b.0].bytes).sum();
        }
    }

    /// Which inputs any step writes.
    pub(crate) fn written_inputs(&self) -> Vec<bool> {
        let mut written = vec![false; self.graph.inputs.len()];
        for step in &self.steps {
            let writes = !matches!(step.run, Run::Nothing)
                && !matches!(step.memory, StepMemory::Aliases | StepMemory::Recipe);
            for id in step.writes.iter().filter(|_| writes) {
                if let Some(Placed { at: At::Input(i), .. }) = &self.places[id.index()] {
                    written[*i] = true;
                }
            }
        }
        written
    }
}

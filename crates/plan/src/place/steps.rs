//! The steps in the making, and the node that they are made for.
//!
//! The invariant: a step is never moved or taken away, so that its number can be the end of a lifetime.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::graph::{Node, ValueId};

use super::{Buffers, Places};
use crate::plan::{At, BufferId, Placed, Refusal, Run, Step, StepMemory, Streamed, TileRun};

/// The steps of a plan, in the order in which they run.
#[derive(Default)]
pub(super) struct Steps {
    all: Vec<Step>,
    /// The node whose place is being found.
    node: usize,
    /// Why that node takes over none of its inputs.
    refused: SmallVec<[(usize, Refusal); 1]>,
    /// Whether a run may take less than what is planned.
    is_bound: bool,
}

impl Steps {
    /// From here on, steps are made for the node of that number.
    pub fn begin_node(&mut self, node: usize) {
        self.node = node;
        self.refused.clear();
    }

    /// The number of the node that steps are made for.
    pub fn node(&self) -> usize {
        self.node
    }

    /// The number of the step that comes next.
    pub fn next_step(&self) -> usize {
        self.all.len()
    }

    /// Notes why the node does not take over an input, for its next step.
    pub fn refuse(&mut self, input: usize, why: Refusal) {
        self.refused.push((input, why));
    }

    /// Forgets why the node does not take over inputs: it takes over another one.
    pub fn forget_refusals(&mut self) {
        self.refused.clear();
    }

    /// Notes that a run may take less than what is planned, if that is so.
    pub fn may_take_less(&mut self, may: bool) {
        self.is_bound |= may;
    }

    /// Whether a run may take less than what is planned.
    pub fn is_bound(&self) -> bool {
        self.is_bound
    }

    /// A step that does nothing.
    pub fn note(&mut self, node: &Node, memory: StepMemory, dynamic: bool) {
        let writes = node.outputs.iter().copied().collect();
        self.all.push(Step { dynamic, writes, ..blank(self.node, Run::Nothing, memory) });
    }

    /// A step of the node.
    pub fn push(
        &mut self,
        run: Run,
        memory: StepMemory,
        scratch: Option<BufferId>,
        reads: SmallVec<[ValueId; 4]>,
        writes: SmallVec<[ValueId; 2]>,
        dynamic: bool,
    ) {
        self.is_bound |= dynamic;
        let refused = std::mem::take(&mut self.refused);
        let step = blank(self.node, run, memory);
        self.all.push(Step { refused, scratch, dynamic, reads, writes, ..step });
    }

    /// A last step, of no node, that copies a value to where it has to lie.
    pub fn push_copy(&mut self, run: TileRun, from: ValueId, to: Placed, dynamic: bool) {
        let run = Run::Copy { run: Arc::new(run), from, to };
        let reads = SmallVec::from_iter([from]);
        self.all.push(Step { dynamic, reads, ..blank(usize::MAX, run, StepMemory::Output) });
    }

    /// Lets the last step read inputs from files as it goes.
    pub fn stream(&mut self, streamed: Streamed) {
        if let Some(step) = self.all.last_mut() {
            step.streamed = streamed;
        }
    }

    /// What the steps read from files.
    pub fn reads_stored(&self) -> Bytes {
        self.all.iter().map(Step::reads_stored).sum()
    }

    /// Notes what begins, ends and lives at every step.
    pub fn note_lifetimes(&mut self, buffers: &Buffers) {
        for (id, buffer) in buffers.in_memory() {
            self.all[buffer.first].begins.push(id);
            self.all[buffer.last].ends.push(id);
        }
        let mut live = Bytes::ZERO;
        for step in &mut self.all {
            live += step.begins.iter().map(|b| buffers.bytes(*b)).sum();
            step.live = live;
            live -= step.ends.iter().map(|b| buffers.bytes(*b)).sum();
        }
    }

    /// Which of so many inputs any step writes.
    pub fn written_inputs(&self, places: &Places, inputs: usize) -> Vec<bool> {
        let mut written = vec![false; inputs];
        for step in &self.all {
            let writes = !matches!(step.run, Run::Nothing)
                && !matches!(step.memory, StepMemory::Aliases | StepMemory::Recipe);
            for id in step.writes.iter().filter(|_| writes) {
                if let Some(Placed { at: At::Input(i), .. }) = places.find(*id) {
                    written[*i] = true;
                }
            }
        }
        written
    }

    /// Lets a step run on the network lane, until another awaits it; none does where that is behind the last.
    pub fn note_flight(&mut self, begins: usize, awaited: usize) {
        self.all[begins].in_flight = true;
        if let Some(step) = self.all.get_mut(awaited) {
            step.awaits.push(begins);
        }
    }

    /// All steps.
    pub fn all(&self) -> &[Step] {
        &self.all
    }

    /// All steps, as a plan keeps them.
    pub fn into_all(self) -> Vec<Step> {
        self.all
    }
}

/// A step of which no more is known yet.
fn blank(node: usize, run: Run, memory: StepMemory) -> Step {
    Step {
        node,
        run,
        memory,
        updates: memory == StepMemory::Updates,
        refused: SmallVec::new(),
        begins: Vec::new(),
        ends: Vec::new(),
        scratch: None,
        staging: None,
        dynamic: false,
        live: Bytes::ZERO,
        reads: SmallVec::new(),
        writes: SmallVec::new(),
        epilogue: None,
        streamed: SmallVec::new(),
        in_flight: false,
        awaits: SmallVec::new(),
    }
}

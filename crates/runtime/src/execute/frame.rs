//! Where the values of one graph lie while it runs.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::{TensorType, ValueId};
use tonnage_plan::{At, Placed, Plan, Run, StepMemory};

use super::generators::Generators;
use super::sizes::DecidedSizes;
use super::state_file::StateFile;
use super::stop_points::StopPoints;
use super::used::UsedBytes;
use crate::lend::{ByteRange, Lender};
use crate::spill::{DiskLane, FileValue};
use crate::timeline::Ticks;

/// One run of one graph.
pub struct ExecutionFrame<'p> {
    pub plan: &'p Plan,
    /// The base that the arena is in, and where it starts there.
    pub arena: (usize, usize),
    pub inputs: SmallVec<[ByteRange; 8]>,
    pub outputs: SmallVec<[ByteRange; 4]>,
    /// What random ops draw, and what the inputs of the call bring.
    pub generators: Generators<'p>,
    /// Where values go that outlive the call in files; none in regions.
    pub file_values: Vec<Arc<FileValue>>,
    /// Layouts of values whose size the data decided.
    pub layouts: HashMap<ValueId, Layout>,
    /// Sizes that the data decided.
    pub sizes: DecidedSizes,
    /// Iterations of loops that gradients recomputed, in regions too.
    pub recomputed_iterations: u64,
    /// States of loops that wait for their gradients, by the value that stands for them.
    pub states: Vec<(ValueId, StateFile)>,
    /// What was written to files of states, in regions too.
    pub spilled: Bytes,
    /// Where it may be stopped.
    pub stop: StopPoints,
    /// When its steps ended, where that is recorded.
    pub ticks: Option<Ticks>,
    /// What kernels were lent of the arena.
    pub used: UsedBytes,
}

impl<'p> ExecutionFrame<'p> {
    pub fn new(
        plan: &'p Plan,
        arena: (usize, usize),
        inputs: SmallVec<[ByteRange; 8]>,
        outputs: SmallVec<[ByteRange; 4]>,
        generators: Generators<'p>,
    ) -> ExecutionFrame<'p> {
        ExecutionFrame {
            plan,
            arena,
            inputs,
            outputs,
            generators,
            file_values: Vec::new(),
            layouts: HashMap::new(),
            sizes: DecidedSizes::default(),
            recomputed_iterations: 0,
            states: Vec::new(),
            spilled: Bytes::ZERO,
            stop: StopPoints::default(),
            ticks: None,
            used: UsedBytes::new(ByteRange {
                base: arena.0,
                offset: arena.1,
                len: plan.arena.as_usize(),
                align: 1,
            }),
        }
    }

    /// Runs every step. Only a whole call has a disk lane.
    pub fn run<'a: 'l, 'l>(
        &mut self,
        lender: &mut Lender<'a>,
        mut lane: Option<&mut DiskLane<'l>>,
        watch: bool,
    ) -> Result<()> {
        let mut finished = None;
        for at in 0..self.plan.steps.len() {
            let plan = self.plan;
            let step = &plan.steps[at];
            if watch {
                for id in &step.begins {
                    let byte_range = self.buffer(*id);
                    lender.begin(byte_range)?;
                }
            }
            if !step.streamed.is_empty() {
                self.read_ahead(at + 1);
            }
            let updates = step.memory == StepMemory::Updates;
            self.stop.before_step(updates)?;
            let source = self.plan.graph.nodes.get(step.node).map(|n| n.source);
            let ran = match (&step.run, &mut lane) {
                (Run::Transfer(transfer), Some(lane)) => {
                    self.transfer(lender, lane, step, *transfer)
                }
                _ if finished == Some(at) => Ok(()),
                _ => self.step(lender, step),
            };
            finished = step.epilogue.or(finished);
            ran.map_err(|e| match source {
                Some(source) => e.at(source),
                None => e,
            })?;
            self.stop.after_step(updates);
            for id in &step.ends {
                let byte_range = self.buffer(*id);
                if watch {
                    lender.end(byte_range);
                }
                self.used.ended(&byte_range);
            }
            if let Some(ticks) = &mut self.ticks {
                ticks.step();
            }
        }
        Ok(())
    }

    /// Notes what a frame was lent that has run in these bytes of the arena, and what gradients recomputed in it.
    pub fn ran(&mut self, child: &ExecutionFrame) {
        self.recomputed_iterations += child.recomputed_iterations;
        self.spilled += child.spilled;
        self.used.ran(&child.used);
    }

    pub fn buffer(&self, id: tonnage_plan::BufferId) -> ByteRange {
        let buffer = &self.plan.buffers[id.0];
        ByteRange {
            base: self.arena.0,
            offset: self.arena.1 + buffer.offset.as_usize(),
            len: buffer.bytes.as_usize(),
            align: 1,
        }
    }

    pub fn placed(&self, id: ValueId) -> Result<&'p Placed> {
        self.plan.place(id).ok_or_else(|| {
            ErrorKind::BadGraph { what: format!("%{} has no place", id.index()) }.into()
        })
    }

    /// All bytes that a place belongs to.
    pub fn whole(&self, at: &At) -> Option<ByteRange> {
        match at {
            At::Input(i) => self.inputs.get(*i).copied(),
            At::Buffer(id) => Some(self.buffer(*id)),
            At::Output(k) => self.outputs.get(*k).copied(),
            At::Recipe(_) => None,
        }
    }

    /// A value's layout: as planned, or as the data decided.
    pub fn layout(&self, id: ValueId) -> Result<Layout> {
        match self.layouts.get(&id) {
            Some(layout) => Ok(layout.clone()),
            None => Ok(self.placed(id)?.layout.clone()),
        }
    }

    /// A value's type, with the sizes that the data decided.
    pub fn ty(&self, id: ValueId) -> TensorType {
        self.sizes.ty(self.plan.graph.ty(id))
    }

    /// Remembers what a kernel said of its output's sizes.
    pub fn decide(&mut self, id: ValueId, sizes: &[usize]) {
        self.sizes.decide(self.plan.graph.ty(id), sizes);
        self.layouts.insert(id, Layout::contiguous(tonnage_core::Sizes::from(sizes)));
    }
}

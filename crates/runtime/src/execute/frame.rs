//! One run of one graph, a call or one iteration of a body: its steps in their order, and the parts that they work with.

use std::ops::Range;

use smallvec::SmallVec;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::{Sizes, TensorType, ValueId};
use tonnage_plan::{Plan, Run};

use super::alone::{RunAt, stretches};
use super::file_values::FileValues;
use super::generators::Generators;
use super::in_pool;
use super::network::NetworkLane;
use super::places::{Places, undecided};
use super::region::{ByteRanges, part};
use super::sizes::DecidedSizes;
use super::state_file::StateFiles;
use super::step::{read_ahead, run_step};
use super::stop_points::StopPoints;
use super::transfer::{SpillLane, transfer};
use super::used::UsedBytes;
use crate::lend::{ByteRange, Lender};
use crate::pool::{self, pool};
use crate::ticks::Ticks;

/// One run of one graph: what it is made of, each with its own job.
pub struct ExecutionFrame<'p> {
    /// Where values lie.
    pub places: Places<'p>,
    /// What random ops draw, and what the inputs of the call bring.
    pub generators: Generators<'p>,
    /// Where values go that outlive the call in files; none in regions.
    pub file_values: FileValues,
    /// Sizes that the data decided.
    pub sizes: DecidedSizes,
    /// Iterations of loops that gradients recomputed, in regions too.
    pub recomputed_iterations: u64,
    /// States of loops that wait for their gradients.
    pub states: StateFiles,
    /// Where it may be stopped.
    pub stop: StopPoints,
    /// When its steps ended, where that is recorded.
    pub ticks: Option<Ticks>,
    /// Whether it is recorded from where it begins to run: a body of a call that is.
    is_timed: bool,
    /// What kernels were lent of the arena.
    pub used: UsedBytes,
    /// The step that ran as the epilogue of one before it.
    finished: Option<usize>,
}

/// What runs beside the kernels of a whole call; a region has none.
#[derive(Default)]
pub struct Lanes<'r, 'l> {
    /// Where values wait that it spills.
    pub spill: Option<&'r mut SpillLane<'l>>,
    /// What goes between ranks.
    pub network: Option<&'r mut NetworkLane<'l>>,
}

impl<'p> ExecutionFrame<'p> {
    /// A run that has not begun; of a call, which can be stopped or writes to files, the rest is set then.
    pub fn new(
        plan: &'p Plan,
        arena: ByteRange,
        inputs: SmallVec<[ByteRange; 8]>,
        outputs: SmallVec<[ByteRange; 4]>,
        generators: Generators<'p>,
    ) -> ExecutionFrame<'p> {
        ExecutionFrame {
            places: Places::new(plan, arena, inputs, outputs),
            generators,
            file_values: FileValues::default(),
            sizes: DecidedSizes::default(),
            recomputed_iterations: 0,
            states: StateFiles::default(),
            stop: StopPoints::default(),
            ticks: None,
            is_timed: false,
            used: UsedBytes::new(arena),
            finished: None,
        }
    }

    /// Runs every step. Only a whole call has a place for what it spills. Steps that call the host run here, which is the thread of the
    /// caller then, and what lies between them in the pool.
    pub fn run<'a: 'l, 'l>(
        &mut self,
        lender: &mut Lender<'a>,
        mut lanes: Lanes<'_, 'l>,
        watch: bool,
    ) -> Result<()>
    where
        'p: 'l,
    {
        let plan = self.places.plan();
        if self.is_timed {
            self.ticks = Some(Ticks::begin(plan.steps.len(), lender.backend()));
        }
        for (steps, run_at) in stretches(plan, pool()) {
            match run_at {
                RunAt::Here => self.run_steps(steps, lender, &mut lanes, watch),
                RunAt::Alone => pool::alone(|| self.run_steps(steps, lender, &mut lanes, watch)),
                RunAt::Pool => {
                    let stop = self.stop.inside_step().cloned();
                    in_pool(stop, || self.run_steps(steps, lender, &mut lanes, watch))
                }
            }?;
        }
        lanes.network.map_or(Ok(()), |network| network.finish(lender))
    }

    /// Runs some of the steps.
    fn run_steps<'a: 'l, 'l>(
        &mut self,
        steps: Range<usize>,
        lender: &mut Lender<'a>,
        lanes: &mut Lanes<'_, 'l>,
        watch: bool,
    ) -> Result<()>
    where
        'p: 'l,
    {
        let plan = self.places.plan();
        for at in steps {
            let step = &plan.steps[at];
            if let Some(network) = &mut lanes.network {
                step.awaits.iter().try_for_each(|begun| network.wait(*begun, lender))?;
            }
            if watch {
                for id in &step.begins {
                    let byte_range = self.places.buffer(*id);
                    lender.begin(byte_range)?;
                }
            }
            if !step.streamed.is_empty() {
                read_ahead(plan, &self.generators, at + 1);
            }
            self.stop.before_step(step.updates)?;
            let source = plan.graph.nodes.get(step.node).map(|n| n.source);
            lender.lend_for(source);
            let ran = match (&step.run, &mut *lanes) {
                (Run::Transfer(kind), Lanes { spill: Some(lane), .. }) => {
                    transfer(&self.places, &mut self.used, lender, lane, step, *kind)
                }
                (Run::Kernel(Some(call)), Lanes { network: Some(network), .. })
                    if step.in_flight =>
                {
                    network.begin(self, lender, at, step, call)
                }
                _ if self.finished == Some(at) => Ok(()),
                _ => run_step(self, lender, step),
            };
            self.finished = step.epilogue.or(self.finished);
            ran.map_err(|e| match source {
                Some(source) => e.at(source),
                None => e,
            })?;
            self.stop.after_step(step.updates);
            for id in &step.ends {
                let byte_range = self.places.buffer(*id);
                if watch {
                    lender.end(byte_range);
                }
                self.used.ended(&byte_range);
            }
            if let Some(ticks) = &mut self.ticks {
                ticks.step(step.node, lender.backend());
            }
        }
        Ok(())
    }

    /// A frame for a region, which knows the sizes that the data decided so far. Its arena starts at `at` in the
    /// scratch of the step.
    pub fn child(
        &self,
        plan: &'p Plan,
        (scratch, at): (ByteRange, Bytes),
        inputs: ByteRanges,
        outputs: SmallVec<[ByteRange; 4]>,
        generators: Generators<'p>,
    ) -> Result<ExecutionFrame<'p>> {
        let arena = part(scratch, at, plan.arena.as_usize())?;
        let mut child = ExecutionFrame::new(plan, arena, inputs, outputs, generators);
        child.sizes.clone_from(&self.sizes);
        child.stop = self.stop.of_region();
        child.is_timed = self.ticks.is_some();
        Ok(child)
    }

    /// Tells a region how an input lies whose size the data decided.
    pub fn tell(&self, child: &mut ExecutionFrame, input: usize, id: ValueId) -> Result<()> {
        if self.places.ty(id).shape.sizes().is_none() {
            let input = child.places.plan().graph.inputs[input];
            child.places.decide(input, self.places.layout(id)?);
        }
        Ok(())
    }

    /// Notes that values whose sizes the data decided, by other values, lie close together from where their bytes start.
    pub fn lie_close_together(&mut self, ids: &[ValueId]) {
        for id in ids {
            let planned = self.places.ty(*id);
            if let (None, Some(sizes)) =
                (planned.shape.sizes(), self.sizes.ty(planned).shape.sizes())
            {
                self.places.decide(*id, Layout::contiguous(sizes));
            }
        }
    }

    /// Learns from a region how large a result is whose size the data decided there.
    pub fn learn(&mut self, child: &ExecutionFrame, output: usize, id: ValueId) -> Result<()> {
        if self.places.ty(id).shape.sizes().is_none() {
            let made = child.ty(child.places.plan().graph.outputs[output]);
            let sizes = made.shape.sizes().ok_or_else(|| undecided(id))?;
            self.decide(id, &sizes);
        }
        Ok(())
    }

    /// Notes what a frame was lent that has run in these bytes of the arena, and what gradients recomputed in it.
    pub fn ran(&mut self, child: &mut ExecutionFrame) {
        if let (Some(ticks), Some(inner)) = (&mut self.ticks, child.ticks.take()) {
            ticks.ran(&child.places.plan().graph, inner);
        }
        self.recomputed_iterations += child.recomputed_iterations;
        self.states.ran(&child.states);
        self.used.ran(&child.used);
    }

    /// The bytes of a value that a region makes, which are lent to it.
    pub fn made(&mut self, id: ValueId) -> Result<ByteRange> {
        let byte_range = self.places.made(id)?;
        self.used.lent(&byte_range);
        Ok(byte_range)
    }

    /// A value's type, with the sizes that the data decided.
    pub fn ty(&self, id: ValueId) -> TensorType {
        self.sizes.ty(self.places.ty(id))
    }

    /// Remembers what a kernel said of its output's sizes.
    pub fn decide(&mut self, id: ValueId, sizes: &[usize]) {
        self.sizes.decide(self.places.ty(id), sizes);
        self.places.decide(id, Layout::contiguous(Sizes::from(sizes)));
    }
}

//! The backward pass through a loop, as the schedule says: iterations are recomputed from state to state, and walked backward
//! through one by one. No state is copied: each stays at the place where it was made.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_plan::schedule::{
    self, BackwardAction, BackwardSchedule, LAST, Online, START, StatePlace,
};
use tonnage_plan::{CheckpointPolicy, LoopGradPlan, StateSource, Step};

use super::frame::ExecutionFrame;
use super::launch::bytes::{self, copy};
use super::looping::{CheckpointSchedule, Runner, StackedRows, rows};
use super::region::{ByteRanges, part, seconds};
use crate::lend::{ByteRange, Lender};

/// The backward pass through a loop: what every step of it takes.
pub(super) struct LoopBackward<'p> {
    pub runner: Runner<'p>,
    pub states: LoopStates<'p>,
    /// What each iteration of the backward pass takes a row of, whole.
    seeds: ByteRanges,
    stacked: SmallVec<[StackedRows; 4]>,
    /// What is carried backwards, and where the next step leaves it.
    now: ByteRanges,
    other: ByteRanges,
}

/// Where the states of a loop lie.
pub(super) struct LoopStates<'p> {
    pub plan: &'p LoopGradPlan,
    pub scratch: ByteRange,
    first: ByteRanges,
    last: ByteRanges,
    checkpoints: SmallVec<[StackedRows; 4]>,
}

impl LoopStates<'_> {
    pub fn at(&self, place: StatePlace) -> Result<ByteRanges> {
        match place {
            START => Ok(self.first.clone()),
            LAST => Ok(self.last.clone()),
            row if row < self.plan.rows => {
                self.checkpoints.iter().map(|rows| rows.row(row as u64)).collect()
            }
            spare => {
                let state = self.plan.state.as_usize();
                let at = self.plan.spare_at.as_usize() + state * (spare - self.plan.rows);
                let whole = self.scratch.part(at, state, 1)?;
                let parts = self.plan.parts.iter().zip(&self.first);
                parts.map(|(at, like)| part(whole, *at, like.len)).collect()
            }
        }
    }
}

impl<'p> ExecutionFrame<'p> {
    pub fn while_grad(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        plan: &'p LoopGradPlan,
    ) -> Result<()> {
        let scratch = self.places.region_scratch(step);
        let node = self.node(step)?;
        let inputs = plan.spec.inputs(node.inputs.len()).ok_or_else(|| {
            tonnage_core::Error::from(ErrorKind::BadGraph { what: "inputs are missing".into() })
        })?;
        let (back, stacked) = node.outputs.split_at(plan.spec.back);
        let homes = back.iter().map(|id| self.made(*id)).collect::<Result<ByteRanges>>()?;
        let stacked = stacked
            .iter()
            .map(|id| self.made_rows(*id))
            .collect::<Result<SmallVec<[StackedRows; 4]>>>()?;
        if plan.spec.handed && plan.spec.of.known_iterations() == Some(0) {
            return Ok(()); // what is carried backwards stays what it is, and there is no scratch
        }
        let states = self.states(lender, step, plan, scratch)?;
        let runner = Runner::new(self, &plan.forward, scratch, &node.inputs[inputs.own.clone()])?;
        let seeds: ByteRanges = node.inputs[inputs.seeds.clone()]
            .iter()
            .map(|id| self.places.given(*id))
            .collect::<Result<_>>()?;
        let other = seconds(&plan.second, &homes, scratch)?;
        let mut backward =
            LoopBackward { runner, states, seeds, stacked, now: homes.clone(), other };
        let iterations = match (plan.spec.of.known_iterations(), inputs.iterations) {
            (_, Some(at)) => Some(self.integer(lender, node.inputs[at])?.max(0) as u64),
            (known, None) => known.filter(|_| plan.spec.handed),
        };
        match &plan.file {
            Some(file) => self.backward_from_file(lender, &mut backward, file, iterations)?,
            None => self.backward_from_memory(lender, &mut backward, iterations)?,
        }
        for (now, home) in backward.now.iter().zip(&homes) {
            copy(lender, *now, *home)?;
        }
        Ok(())
    }

    /// Walks backward as the schedule says, from the states that were checkpointed.
    fn backward_from_memory(
        &mut self,
        lender: &mut Lender,
        backward: &mut LoopBackward<'p>,
        iterations: Option<u64>,
    ) -> Result<()> {
        let plan = backward.states.plan;
        let iterations = match iterations {
            Some(iterations) => iterations,
            None => self.sweep(lender, &backward.runner, &backward.states)?,
        };
        let checkpointed: Vec<(u64, StatePlace)> = match &plan.forward.checkpoint_policy {
            CheckpointPolicy::Nothing | CheckpointPolicy::File(_) => Vec::new(),
            CheckpointPolicy::These(these) => {
                these.iter().enumerate().map(|(i, r)| (*r, i)).collect()
            }
            CheckpointPolicy::Online { max_checkpoints } => {
                let mut online = Online::new(*max_checkpoints);
                for iteration in 1..iterations {
                    online.checkpoint(iteration);
                }
                online.checkpointed(iterations).collect()
            }
        };
        let all = 0..plan.rows + plan.spare;
        let free = schedule::free(all.filter(|place| checkpointed.iter().all(|(_, k)| k != place)));
        for action in BackwardSchedule::new(iterations, plan.max_checkpoints, checkpointed, free) {
            match action {
                BackwardAction::Forward { iteration, from, to } => {
                    let (from, made) = (backward.states.at(from)?, backward.states.at(to)?);
                    let made = made.into_iter().collect();
                    backward
                        .runner
                        .run_iteration(self, lender, &from, &mut None, made, iteration)?;
                    self.recomputed_iterations += 1;
                }
                BackwardAction::Backward { iteration, before, after } => {
                    self.backward_step(lender, backward, iteration, before, after)?;
                }
            }
        }
        Ok(())
    }

    /// The backward step of an iteration, from the state behind it to the one before.
    pub(super) fn backward_step(
        &mut self,
        lender: &mut Lender,
        backward: &mut LoopBackward<'p>,
        iteration: u64,
        before: StatePlace,
        after: StatePlace,
    ) -> Result<()> {
        let LoopBackward { runner, states, .. } = &*backward;
        let (plan, scratch) = (states.plan, states.scratch);
        let row = runner.row(iteration);
        let mut inputs = states.at(before)?;
        inputs.extend(runner.rows(self, lender, row)?);
        inputs.extend(runner.read.iter().copied());
        inputs.extend(states.at(after)?);
        inputs.extend(rows(self, lender, &plan.seeds, &backward.seeds, scratch, row)?);
        inputs.extend(backward.now.iter().copied());
        let made = backward.other.iter().map(|byte_range| Ok(*byte_range));
        let made = made.chain(backward.stacked.iter().map(|rows| rows.row(row)));
        let made = made.collect::<Result<SmallVec<[ByteRange; 4]>>>()?;
        made.iter().for_each(|byte_range| self.used.lent(byte_range));
        // The same random numbers as the iteration itself.
        let generators = self.generators.of_region(Some(plan.spec.of.key), 1, row);
        let arena = (scratch, plan.inner);
        let mut child = self.child(&plan.step, arena, inputs, made, generators)?;
        child.run(lender, None, false)?;
        self.ran(&child);
        std::mem::swap(&mut backward.now, &mut backward.other);
        Ok(())
    }

    /// Where the states lie; those that are not close together, or not ours to overwrite, are copied.
    fn states(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        plan: &'p LoopGradPlan,
        scratch: ByteRange,
    ) -> Result<LoopStates<'p>> {
        let node = self.node(step)?;
        let [mut first, mut last] = [ByteRanges::new(), ByteRanges::new()];
        for (state_sources, byte_ranges) in plan.state_sources.iter().zip([&mut first, &mut last]) {
            for (j, state_sources) in state_sources.iter().enumerate() {
                // Every state is as large as the first.
                let ty = self.places.ty(node.inputs[j]);
                let (len, size) = (ty.bytes("while_grad")?.as_usize(), ty.dtype.size());
                byte_ranges.push(match state_sources {
                    StateSource::There { input, first } => {
                        let whole = self.places.given(node.inputs[*input])?;
                        whole.part(first * size, len, size)?
                    }
                    StateSource::Copied { input, to } => {
                        let to = part(scratch, *to, len)?;
                        self.gather(lender, node.inputs[*input], to)?;
                        to
                    }
                    StateSource::Made(to) => part(scratch, *to, len)?,
                });
            }
        }
        let mut checkpoints = SmallVec::new();
        for (j, at) in plan.checkpoints.iter().enumerate() {
            let ty = self.places.ty(node.inputs[j]);
            let checkpointed = plan.spec.of.checkpoint(ty);
            let row = ty.bytes("while_grad")?.as_usize();
            let handed = plan.spec.inputs(node.inputs.len()).map(|at| at.checkpoints.start + j);
            let whole = match (at, handed) {
                (None, Some(input)) => self.places.given(node.inputs[input])?,
                (Some(at), input) => {
                    let whole = part(scratch, *at, checkpointed.bytes("while_grad")?.as_usize())?;
                    self.used.lent(&whole);
                    if let Some(input) = input.filter(|_| plan.spec.handed) {
                        self.gather(lender, node.inputs[input], whole)?;
                    }
                    whole
                }
                (None, None) => {
                    return Err(ErrorKind::BadGraph { what: "no checkpoints".into() }.into());
                }
            };
            checkpoints.push(StackedRows::new(whole, row));
        }
        Ok(LoopStates { plan, scratch, first, last, checkpoints })
    }

    /// Copies a value's elements close together.
    fn gather(
        &mut self,
        lender: &mut Lender,
        id: tonnage_core::ValueId,
        to: ByteRange,
    ) -> Result<()> {
        let (layout, from) = (self.places.layout(id)?, self.places.read(id)?);
        let size = self.places.ty(id).dtype.size();
        self.used.lent(&to);
        bytes::gather(lender, from, &layout, size, to)
    }

    /// Runs the loop once more, from its start to its end, checkpointing states; how many iterations there were.
    fn sweep(
        &mut self,
        lender: &mut Lender,
        runner: &Runner<'p>,
        states: &LoopStates<'p>,
    ) -> Result<u64> {
        let plan = states.plan;
        let known = plan.spec.of.known_iterations();
        let limit = runner.limit();
        let mut schedule = CheckpointSchedule::new(&plan.forward.checkpoint_policy);
        let (mut place, mut iteration) = (START, 0);
        while iteration < limit
            && runner.holds(self, lender, &states.at(place)?, &None, iteration)?
        {
            // Where the end is known, a state that is checkpointed is made where it stays.
            let spare = plan.rows + usize::from(place == plan.rows);
            let to = match known {
                Some(iterations) if iteration + 1 == iterations => LAST,
                Some(_) => schedule.checkpoint(iteration + 1).unwrap_or(spare),
                None => spare,
            };
            runner.run_iteration(
                self,
                lender,
                &states.at(place)?,
                &mut None,
                states.at(to)?.into_iter().collect(),
                iteration,
            )?;
            self.recomputed_iterations += 1;
            (place, iteration) = (to, iteration + 1);
            if known.is_none()
                && let Some(row) = schedule.checkpoint(iteration)
            {
                for (from, to) in states.at(place)?.into_iter().zip(states.at(row)?) {
                    copy(lender, from, to)?;
                }
            }
        }
        if place != LAST {
            for (from, to) in states.at(place)?.into_iter().zip(states.at(LAST)?) {
                self.used.lent(&to);
                copy(lender, from, to)?;
            }
        }
        Ok(iteration)
    }
}

//! The backward pass through a loop, as the schedule says: iterations are recomputed from state to state, and walked backward
//! through one by one. No state is copied: each stays at the place where it was made.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::{Node, ValueId};
use tonnage_plan::schedule::{
    self, BackwardAction, BackwardSchedule, LAST, Online, START, StatePlace,
};
use tonnage_plan::{CheckpointPolicy, LoopGradPlan, StateFilePlan, StateSource, Step};

use super::bytes::{self, copy};
use super::frame::{ExecutionFrame, Lanes};
use super::looping::{CheckpointSchedule, Runner, StackedRows, made_rows, rows};
use super::places::Places;
use super::region::{ByteRanges, integer, part, seconds};
use super::state_file::StateFile;
use super::step::node_of;
use super::used::UsedBytes;
use crate::lend::{ByteRange, Lender};

/// The backward pass through a loop: what every step of it takes.
struct LoopBackward<'p> {
    runner: Runner<'p>,
    states: LoopStates<'p>,
    /// What each iteration of the backward pass takes a row of, whole.
    seeds: ByteRanges,
    stacked: SmallVec<[StackedRows; 4]>,
    /// What is carried backwards, and where the next step leaves it.
    now: ByteRanges,
    other: ByteRanges,
}

/// Where the states of a loop lie.
struct LoopStates<'p> {
    plan: &'p LoopGradPlan,
    scratch: ByteRange,
    first: ByteRanges,
    last: ByteRanges,
    checkpoints: SmallVec<[StackedRows; 4]>,
}

impl<'p> LoopStates<'p> {
    /// Where the states lie; those that are not close together, or not ours to overwrite, are copied.
    fn new(
        places: &Places,
        used: &mut UsedBytes,
        lender: &mut Lender,
        node: &Node,
        plan: &'p LoopGradPlan,
        scratch: ByteRange,
    ) -> Result<LoopStates<'p>> {
        let [mut first, mut last] = [ByteRanges::new(), ByteRanges::new()];
        for (state_sources, byte_ranges) in plan.state_sources.iter().zip([&mut first, &mut last]) {
            for (j, state_sources) in state_sources.iter().enumerate() {
                // Every state is as large as the first.
                let ty = places.ty(node.inputs[j]);
                let (len, size) = (ty.bytes("while_grad")?.as_usize(), ty.dtype.size());
                byte_ranges.push(match state_sources {
                    StateSource::There { input, first } => {
                        let whole = places.given(node.inputs[*input])?;
                        whole.part(first * size, len, size)?
                    }
                    StateSource::Copied { input, to } => {
                        let to = part(scratch, *to, len)?;
                        gather(places, used, lender, node.inputs[*input], to)?;
                        to
                    }
                    StateSource::Made(to) => part(scratch, *to, len)?,
                });
            }
        }
        let mut checkpoints = SmallVec::new();
        for (j, at) in plan.checkpoints.iter().enumerate() {
            let ty = places.ty(node.inputs[j]);
            let checkpointed = plan.spec.of.checkpoint(ty);
            let row = ty.bytes("while_grad")?.as_usize();
            let handed = plan.spec.inputs(node.inputs.len()).map(|at| at.checkpoints.start + j);
            let whole = match (at, handed) {
                (None, Some(input)) => places.given(node.inputs[input])?,
                (Some(at), input) => {
                    let whole = part(scratch, *at, checkpointed.bytes("while_grad")?.as_usize())?;
                    used.lent(&whole);
                    if let Some(input) = input.filter(|_| plan.spec.handed) {
                        gather(places, used, lender, node.inputs[input], whole)?;
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

    /// The bytes of the state at a place.
    fn at(&self, place: StatePlace) -> Result<ByteRanges> {
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

/// Runs the backward pass of a loop.
pub fn while_grad<'p>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender,
    step: &Step,
    plan: &'p LoopGradPlan,
) -> Result<()> {
    let scratch = frame.places.region_scratch(step);
    let node = node_of(frame.places.plan(), step)?;
    let inputs = plan.spec.inputs(node.inputs.len()).ok_or_else(|| {
        tonnage_core::Error::from(ErrorKind::BadGraph { what: "inputs are missing".into() })
    })?;
    let (back, stacked) = node.outputs.split_at(plan.spec.back);
    let homes = back.iter().map(|id| frame.made(*id)).collect::<Result<ByteRanges>>()?;
    frame.lie_close_together(back);
    let stacked = stacked
        .iter()
        .map(|id| made_rows(frame, *id))
        .collect::<Result<SmallVec<[StackedRows; 4]>>>()?;
    if plan.spec.handed && plan.spec.of.known_iterations() == Some(0) {
        return Ok(()); // what is carried backwards stays what it is, and there is no scratch
    }
    let states = LoopStates::new(&frame.places, &mut frame.used, lender, node, plan, scratch)?;
    let runner =
        Runner::new(&frame.places, &plan.forward, scratch, &node.inputs[inputs.own.clone()])?;
    let seeds: ByteRanges = node.inputs[inputs.seeds.clone()]
        .iter()
        .map(|id| frame.places.given(*id))
        .collect::<Result<_>>()?;
    let other = seconds(&plan.second, &homes, scratch)?;
    let mut backward = LoopBackward { runner, states, seeds, stacked, now: homes.clone(), other };
    let iterations = match (plan.spec.of.known_iterations(), inputs.iterations) {
        (_, Some(at)) => Some(integer(&frame.places, lender, node.inputs[at])?.max(0) as u64),
        (known, None) => known.filter(|_| plan.spec.handed),
    };
    match &plan.file {
        Some(file) => backward.walk_from_file(frame, lender, file, iterations)?,
        None => backward.walk_from_memory(frame, lender, iterations)?,
    }
    for (now, home) in backward.now.iter().zip(&homes) {
        copy(lender, *now, *home)?;
    }
    Ok(())
}

impl<'p> LoopBackward<'p> {
    /// Walks backward as the schedule says, from the states that were checkpointed.
    fn walk_from_memory(
        &mut self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        iterations: Option<u64>,
    ) -> Result<()> {
        let plan = self.states.plan;
        let iterations = match iterations {
            Some(iterations) => iterations,
            None => self.sweep(frame, lender)?,
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
                    let (from, made) = (self.states.at(from)?, self.states.at(to)?);
                    let made = made.into_iter().collect();
                    self.runner.run_iteration(frame, lender, &from, &mut None, made, iteration)?;
                    frame.recomputed_iterations += 1;
                }
                BackwardAction::Backward { iteration, before, after } => {
                    self.step(frame, lender, iteration, before, after)?;
                }
            }
        }
        Ok(())
    }

    /// Walks all iterations backward with states from the file: two lie in memory at a time.
    fn walk_from_file(
        &mut self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        planned: &StateFilePlan,
        iterations: Option<u64>,
    ) -> Result<()> {
        let plan = self.states.plan;
        let (mut file, iterations) = match (plan.written, iterations) {
            (true, Some(iterations)) => (frame.states.take(planned.name)?, iterations),
            _ => self.rerun_forward(frame, lender, planned, iterations)?,
        };
        let mut after = LAST;
        for iteration in (0..iterations).rev() {
            let before = if iteration == 0 { START } else { usize::from(after == 0) };
            let state = self.states.at(before)?;
            if iteration > 0 {
                state.iter().for_each(|byte_range| frame.used.lent(byte_range));
                file.read(lender, iteration, &state)?;
            }
            self.step(frame, lender, iteration, before, after)?;
            after = before;
        }
        // Another gradient of the same loop may ask for them.
        frame.states.keep(planned.name, file);
        Ok(())
    }

    /// The backward step of an iteration, from the state behind it to the one before.
    fn step(
        &mut self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        iteration: u64,
        before: StatePlace,
        after: StatePlace,
    ) -> Result<()> {
        let LoopBackward { runner, states, .. } = &*self;
        let (plan, scratch) = (states.plan, states.scratch);
        let row = runner.row(iteration);
        let mut inputs = states.at(before)?;
        inputs.extend(runner.rows(frame, lender, row)?);
        inputs.extend(runner.read.iter().copied());
        inputs.extend(states.at(after)?);
        inputs.extend(rows(frame, lender, &plan.seeds, &self.seeds, scratch, row)?);
        inputs.extend(self.now.iter().copied());
        let made = self.other.iter().map(|byte_range| Ok(*byte_range));
        let made = made.chain(self.stacked.iter().map(|rows| rows.row(row)));
        let made = made.collect::<Result<SmallVec<[ByteRange; 4]>>>()?;
        made.iter().for_each(|byte_range| frame.used.lent(byte_range));
        // The same random numbers as the iteration itself.
        let generators = frame.generators.of_region(Some(plan.spec.of.key), 1, row);
        let arena = (scratch, plan.inner);
        let mut child = frame.child(&plan.step, arena, inputs, made, generators)?;
        runner.tell(frame, &mut child, &None, plan.spec.of.sliced)?;
        child.lie_close_together(&plan.step.graph.inputs[runner.inputs()..]);
        child.run(lender, Lanes::default(), false)?;
        frame.ran(&mut child);
        std::mem::swap(&mut self.now, &mut self.other);
        Ok(())
    }

    /// Runs the loop once more, from its start to its end, checkpointing states; how many iterations there were.
    fn sweep(&self, frame: &mut ExecutionFrame<'p>, lender: &mut Lender) -> Result<u64> {
        let (runner, states) = (&self.runner, &self.states);
        let plan = states.plan;
        let known = plan.spec.of.known_iterations();
        let limit = runner.limit();
        let mut schedule = CheckpointSchedule::new(&plan.forward.checkpoint_policy);
        let (mut place, mut iteration) = (START, 0);
        while iteration < limit
            && runner.holds(frame, lender, &states.at(place)?, &None, iteration)?
        {
            // Where the end is known, a state that is checkpointed is made where it stays.
            let spare = plan.rows + usize::from(place == plan.rows);
            let to = match known {
                Some(iterations) if iteration + 1 == iterations => LAST,
                Some(_) => schedule.checkpoint(iteration + 1).unwrap_or(spare),
                None => spare,
            };
            runner.run_iteration(
                frame,
                lender,
                &states.at(place)?,
                &mut None,
                states.at(to)?.into_iter().collect(),
                iteration,
            )?;
            frame.recomputed_iterations += 1;
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
                frame.used.lent(&to);
                copy(lender, from, to)?;
            }
        }
        Ok(iteration)
    }

    /// Runs the iterations of a loop once more and writes their states: of one whose end is at hand, all but the last.
    fn rerun_forward(
        &self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        planned: &StateFilePlan,
        iterations: Option<u64>,
    ) -> Result<(StateFile, u64)> {
        let (runner, states) = (&self.runner, &self.states);
        let handed = states.plan.spec.handed;
        let limit = match iterations.filter(|_| handed) {
            Some(iterations) => iterations.saturating_sub(1),
            None => runner.limit(),
        };
        let mut file =
            frame.states.open(planned, states.plan.spec.of.known_iterations().is_some())?;
        let (mut place, mut iteration) = (START, 0);
        while iteration < limit
            && (handed || runner.holds(frame, lender, &states.at(place)?, &None, iteration)?)
        {
            if iteration > 0 {
                frame.states.write(lender, &mut file, iteration, &states.at(place)?)?;
            }
            let to = usize::from(place == 0);
            let made = states.at(to)?.into_iter().collect();
            runner.run_iteration(frame, lender, &states.at(place)?, &mut None, made, iteration)?;
            frame.recomputed_iterations += 1;
            (place, iteration) = (to, iteration + 1);
        }
        if let Some(iterations) = iterations.filter(|_| handed) {
            if iteration > 0 {
                frame.states.write(lender, &mut file, iteration, &states.at(place)?)?;
            }
            return Ok((file, iterations));
        }
        for (from, to) in states.at(place)?.into_iter().zip(states.at(LAST)?) {
            frame.used.lent(&to);
            copy(lender, from, to)?;
        }
        Ok((file, iteration))
    }
}

/// Copies a value's elements close together.
fn gather(
    places: &Places,
    used: &mut UsedBytes,
    lender: &mut Lender,
    id: ValueId,
    to: ByteRange,
) -> Result<()> {
    let (layout, from) = (places.layout(id)?, places.read(id)?);
    let size = places.ty(id).dtype.size();
    used.lent(&to);
    bytes::gather(lender, from, &layout, size, to)
}

//! Branches and loops: their plans, run in the scratch of the step.

use smallvec::SmallVec;
use tonnage_core::ValueId;
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::recipe::Key;
use tonnage_plan::{LoopGradPlan, LoopPlan, OutputPlan, Plan, Step};

use super::checkpoint::{Action, Schedule};
use super::frame::Frame;
use super::step::mix;
use crate::lend::{Lender, Region};

/// Regions of several values.
type Regions = SmallVec<[Region; 8]>;

impl Frame<'_> {
    fn scratch(&mut self, step: &Step) -> Region {
        match step.scratch {
            Some(id) => {
                let region = self.buffer(id);
                self.lent(&region);
                region
            }
            None => Region { base: self.arena.0, offset: self.arena.1, len: 0, align: 1 },
        }
    }

    fn key_of(&self, step: &Step, round: u64) -> [u32; 2] {
        // Regions are told apart from random ops by the highest bit.
        mix(self.key, 1 << 31 | step.node as u32, round)
    }

    fn outputs_of(&mut self, step: &Step) -> Result<Regions> {
        let writes = step.writes.clone();
        let regions: Regions = writes.iter().map(|id| self.read(*id)).collect::<Result<_>>()?;
        for region in &regions {
            self.lent(region);
        }
        Ok(regions)
    }

    pub fn branch(&mut self, lender: &mut Lender, step: &Step, plans: &[Plan]) -> Result<()> {
        let scratch = self.scratch(step);
        let outputs = self.outputs_of(step)?;
        let chosen = self.truth(lender, self.read(step.reads[0])?, step.reads[0])?;
        let inputs =
            step.reads[1..].iter().map(|id| self.read(*id)).collect::<Result<Regions>>()?;
        let plan = if chosen { &plans[0] } else { &plans[1] };
        let outputs = outputs.into_iter().collect();
        let key = match self.node(step)?.attrs {
            // Wherever the branch is computed again, it draws the same numbers.
            Attrs::Stream(Key::Fixed(key)) => mix(key, 0, !chosen as u64),
            Attrs::Stream(Key::PerCall(n)) => mix(mix(self.key, n, 0), 0, !chosen as u64),
            _ => self.key_of(step, !chosen as u64),
        };
        Frame::new(plan, (scratch.base, scratch.offset), inputs, outputs, key)
            .run(lender, false)?;
        Ok(())
    }

    /// The boolean that a value's only element is.
    fn truth(&self, lender: &mut Lender, region: Region, id: ValueId) -> Result<bool> {
        let at = self.layout(id)?.offset;
        let lent = lender.lend(&[region], &[])?;
        Ok(lent.reads[0].get(at).is_some_and(|b| *b != 0))
    }

    pub fn while_loop(&mut self, lender: &mut Lender, step: &Step, plan: &LoopPlan) -> Result<()> {
        let scratch = self.scratch(step);
        let mut current = self.outputs_of(step)?;
        // The step's reads are what the loop only reads, then its own results.
        let count = step.reads.len() - step.writes.len();
        let read =
            step.reads[..count].iter().map(|id| self.read(*id)).collect::<Result<Regions>>()?;
        let homes = current.clone();
        let mut other: Regions = plan
            .second
            .iter()
            .zip(&current)
            .map(|(second, home)| match second {
                Some(at) => part(scratch, *at, home.len),
                None => *home,
            })
            .collect();
        let mut round = 0;
        while plan.most.is_none_or(|most| round < most) {
            let states: Regions = current.iter().chain(&read).copied().collect();
            if !self.holds(lender, step, plan, scratch, &states, round)? {
                break;
            }
            self.body(lender, step, plan, scratch, states, other.clone(), round)?;
            for i in 0..current.len() {
                std::mem::swap(&mut current[i], &mut other[i]);
            }
            round += 1;
        }
        for (now, home) in current.iter().zip(&homes) {
            copy(lender, *now, *home)?;
        }
        Ok(())
    }

    fn holds(
        &self,
        lender: &mut Lender,
        step: &Step,
        plan: &LoopPlan,
        scratch: Region,
        states: &Regions,
        round: u64,
    ) -> Result<bool> {
        let answer = part(scratch, plan.answer, 1);
        let inner = part(scratch, plan.inner, 0);
        let key = mix(self.key_of(step, round), 0, 0);
        let outputs = SmallVec::from_iter([answer]);
        Frame::new(&plan.condition, (inner.base, inner.offset), states.clone(), outputs, key)
            .run(lender, false)?;
        // A condition that is an input lies there.
        let region = match &plan.condition.outputs[0] {
            OutputPlan::Input { input, .. } => states[*input],
            _ => answer,
        };
        let lent = lender.lend(&[Region { len: 1, ..region }], &[])?;
        Ok(lent.reads[0][0] != 0)
    }

    #[allow(clippy::too_many_arguments, reason = "a body's whole surroundings")]
    fn body(
        &self,
        lender: &mut Lender,
        step: &Step,
        plan: &LoopPlan,
        scratch: Region,
        states: Regions,
        made: Regions,
        round: u64,
    ) -> Result<()> {
        let inner = part(scratch, plan.inner, 0);
        let key = mix(self.key_of(step, round), 1, 0);
        let outputs = made.into_iter().collect();
        Frame::new(&plan.body, (inner.base, inner.offset), states, outputs, key)
            .run(lender, false)?;
        Ok(())
    }

    pub fn while_grad(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        plan: &LoopGradPlan,
    ) -> Result<()> {
        let scratch = self.scratch(step);
        let grads = self.outputs_of(step)?;
        let count = step.reads.len() - step.writes.len();
        let given =
            step.reads[..count].iter().map(|id| self.read(*id)).collect::<Result<Regions>>()?;
        let carried = plan.forward.carried;
        let lens: SmallVec<[usize; 8]> = step.reads[..carried]
            .iter()
            .map(|id| Ok(self.plan.graph.ty(*id).bytes("while_grad")?.as_usize()))
            .collect::<Result<_>>()?;
        let mut walk =
            Walk { frame: self, step, plan, scratch, read: given[carried..].into(), lens };
        walk.start(lender, &step.reads[..carried])?;
        walk.go(lender, grads)
    }
}

/// A loop that is gone back through.
struct Walk<'f, 'p> {
    frame: &'f Frame<'p>,
    step: &'f Step,
    plan: &'f LoopGradPlan,
    scratch: Region,
    read: Regions,
    lens: SmallVec<[usize; 8]>,
}

impl Walk<'_, '_> {
    /// The carried values of a state: slots first, then two to work on.
    fn state(&self, slot: usize) -> Regions {
        let start = self.plan.states + times(self.plan.state, slot);
        self.plan
            .parts
            .iter()
            .zip(&self.lens)
            .map(|(at, len)| part(self.scratch, start + *at, *len))
            .collect()
    }

    /// The first state lies in slot 0.
    fn start(&mut self, lender: &mut Lender, ids: &[ValueId]) -> Result<()> {
        for (id, to) in ids.iter().zip(self.state(0)) {
            let layout = self.frame.layout(*id)?;
            let from = self.frame.read(*id)?;
            let size = self.frame.plan.graph.ty(*id).dtype.size();
            let mut lent = lender.lend(&[from], &[to])?;
            let (from, to) = (lent.reads[0], &mut lent.writes[0]);
            let mut chunks = to.chunks_exact_mut(size);
            layout.for_each(|at| {
                if let Some(chunk) = chunks.next() {
                    chunk.copy_from_slice(&from[at * size..(at + 1) * size]);
                }
            });
        }
        Ok(())
    }

    fn copy_state(&self, lender: &mut Lender, from: usize, to: usize) -> Result<()> {
        for (from, to) in self.state(from).into_iter().zip(self.state(to)) {
            copy(lender, from, to)?;
        }
        Ok(())
    }

    fn with_read(&self, state: Regions) -> Regions {
        state.into_iter().chain(self.read.iter().copied()).collect()
    }

    fn forward(&self, lender: &mut Lender, from: usize, to: usize, round: u64) -> Result<()> {
        let states = self.with_read(self.state(from));
        let (plan, scratch) = (&self.plan.forward, self.scratch);
        self.frame.body(lender, self.step, plan, scratch, states, self.state(to), round)
    }

    /// Forwards to the end, keeping states; then backwards.
    fn go(&mut self, lender: &mut Lender, mut grads: Regions) -> Result<()> {
        let slots = self.plan.slots;
        let (mut now, mut next) = (slots, slots + 1);
        self.copy_state(lender, 0, now)?;
        let mut schedule = Schedule::new(slots);
        let mut round = 0u64;
        let most = self.plan.forward.most;
        while most.is_none_or(|most| round < most) {
            let states = self.with_read(self.state(now));
            let holds = self.frame.holds(
                lender,
                self.step,
                &self.plan.forward,
                self.scratch,
                &states,
                round,
            )?;
            if !holds {
                break;
            }
            if let Some(slot) = schedule.keep(round) {
                self.copy_state(lender, now, slot)?;
            }
            self.forward(lender, now, next, round)?;
            std::mem::swap(&mut now, &mut next);
            round += 1;
        }
        // `now` holds the last state. Each step back needs the state before it and the one behind it.
        let homes = grads.clone();
        let mut other: Regions = self
            .plan
            .second
            .iter()
            .zip(&grads)
            .map(|(second, home)| match second {
                Some(at) => part(self.scratch, *at, home.len),
                None => *home,
            })
            .collect();
        let mut behind = now;
        let mut ahead = next;
        for action in schedule.back(round) {
            match action {
                Action::Restore { slot } => self.copy_state(lender, slot, ahead)?,
                Action::Keep { slot } => self.copy_state(lender, ahead, slot)?,
                Action::Forward { round } => {
                    // Two states are at work; the one behind is still needed, so a third is the
                    // result, copied over the one that it came from.
                    let spare = slots + 2;
                    self.forward(lender, ahead, spare, round)?;
                    self.copy_state(lender, spare, ahead)?;
                }
                Action::Back { round } => {
                    self.back(lender, ahead, behind, &grads, &other, round)?;
                    for i in 0..grads.len() {
                        std::mem::swap(&mut grads[i], &mut other[i]);
                    }
                    std::mem::swap(&mut ahead, &mut behind);
                }
            }
        }
        for (now, home) in grads.iter().zip(&homes) {
            copy(lender, *now, *home)?;
        }
        Ok(())
    }

    /// One step back: from the state before a round and the one behind it.
    fn back(
        &self,
        lender: &mut Lender,
        before: usize,
        behind: usize,
        grads: &Regions,
        other: &Regions,
        round: u64,
    ) -> Result<()> {
        let mut inputs = self.with_read(self.state(before));
        inputs.extend(self.state(behind));
        inputs.extend(grads.iter().copied());
        let inner = part(self.scratch, self.plan.inner, 0);
        // The same random numbers as the round itself.
        let key = mix(self.frame.key_of(self.step, round), 1, 0);
        let outputs = other.iter().copied().collect();
        Frame::new(&self.plan.step, (inner.base, inner.offset), inputs, outputs, key)
            .run(lender, false)?;
        Ok(())
    }
}

fn times(bytes: Bytes, n: usize) -> Bytes {
    Bytes::new(bytes.get() * n as u64)
}

/// A piece of a region.
fn part(of: Region, at: Bytes, len: usize) -> Region {
    Region { base: of.base, offset: of.offset + at.as_usize(), len, align: 1 }
}

/// Copies bytes, unless they are the same.
fn copy(lender: &mut Lender, from: Region, to: Region) -> Result<()> {
    if from.base == to.base && from.offset == to.offset {
        return Ok(());
    }
    let len = from.len.min(to.len);
    let mut lent = lender.lend(&[Region { len, ..from }], &[Region { len, ..to }])?;
    match lent.writes.first_mut() {
        Some(to) => to.copy_from_slice(lent.reads[0]),
        None => return Err(ErrorKind::BadGraph { what: "nothing to copy to".into() }.into()),
    }
    Ok(())
}

//! The way back through a loop, as the schedule says: rounds are run again from state to state, and gone back
//! through one by one. No state is copied: each stays at the place where it was made.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_plan::schedule::{self, Action, Back, LAST, Online, Place, START};
use tonnage_plan::{Held, Keeps, LoopGradPlan, Step};

use super::frame::Frame;
use super::looping::{Keeper, Rows, Runner, rows, seconds};
use super::region::{Regions, copy, part};
use crate::lend::{Lender, Region};

/// Where the states of a loop lie.
struct States<'p> {
    plan: &'p LoopGradPlan,
    scratch: Region,
    first: Regions,
    last: Regions,
    checkpoints: SmallVec<[Rows; 4]>,
}

impl States<'_> {
    fn at(&self, place: Place) -> Regions {
        match place {
            START => self.first.clone(),
            LAST => self.last.clone(),
            row if row < self.plan.rows => {
                self.checkpoints.iter().map(|rows| rows.row(row as u64)).collect()
            }
            spare => {
                let state = self.plan.state.as_usize() * (spare - self.plan.rows);
                let start = part(self.scratch, self.plan.spare_at, 0);
                let whole = Region { offset: start.offset + state, ..start };
                let parts = self.plan.parts.iter().zip(&self.first);
                parts.map(|(at, like)| part(whole, *at, like.len)).collect()
            }
        }
    }
}

impl<'p> Frame<'p> {
    pub fn while_grad(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        plan: &'p LoopGradPlan,
    ) -> Result<()> {
        let scratch = self.scratch(step);
        let node = self.node(step)?;
        let inputs = plan.spec.inputs(node.inputs.len()).ok_or_else(|| {
            tonnage_core::Error::from(ErrorKind::BadGraph { what: "inputs are missing".into() })
        })?;
        let states = self.states(lender, step, plan, scratch)?;
        let runner = Runner::new(self, &plan.forward, scratch, &node.inputs[inputs.own.clone()])?;
        let known = plan.spec.of.known_rounds();
        let rounds = match (known, inputs.rounds) {
            (_, Some(at)) => self.integer(lender, node.inputs[at])?.max(0) as u64,
            (Some(rounds), None) if plan.spec.handed => rounds,
            _ => self.sweep(lender, &runner, &states)?,
        };
        let kept: Vec<(u64, Place)> = match &plan.forward.keeps {
            Keeps::Nothing => Vec::new(),
            Keeps::These(these) => these.iter().enumerate().map(|(i, r)| (*r, i)).collect(),
            Keeps::Online { slots } => {
                let mut online = Online::new(*slots);
                for round in 1..rounds {
                    online.keep(round);
                }
                online.kept(rounds).collect()
            }
        };
        let all = 0..plan.rows + plan.spare;
        let free = schedule::free(all.filter(|place| kept.iter().all(|(_, k)| k != place)));
        let seeds: Regions = node.inputs[inputs.seeds.clone()]
            .iter()
            .map(|id| self.given(*id))
            .collect::<Result<_>>()?;
        let (back, stacked) = node.outputs.split_at(plan.spec.back);
        let homes = back.iter().map(|id| self.made(*id)).collect::<Result<Regions>>()?;
        let stacked = stacked
            .iter()
            .map(|id| self.made_rows(*id))
            .collect::<Result<SmallVec<[Rows; 4]>>>()?;
        let mut now = homes.clone();
        let mut other = seconds(&plan.second, &homes, scratch);
        let mut going = crate::interrupt::Rounds::default();
        for action in Back::new(rounds, plan.slots, kept, free) {
            going.go_on()?;
            match action {
                Action::Forward { round, from, to } => {
                    let made = states.at(to).into_iter().collect();
                    runner.round(self, lender, &states.at(from), &mut None, made, round)?;
                    self.again += 1;
                }
                Action::Back { round, before, after } => {
                    let row = runner.row(round);
                    let mut inputs = states.at(before);
                    inputs.extend(runner.rows(self, lender, row)?);
                    inputs.extend(runner.read.iter().copied());
                    inputs.extend(states.at(after));
                    inputs.extend(rows(self, lender, &plan.seeds, &seeds, scratch, row)?);
                    inputs.extend(now.iter().copied());
                    let made: SmallVec<[Region; 4]> =
                        other.iter().copied().chain(stacked.iter().map(|s| s.row(row))).collect();
                    made.iter().for_each(|region| self.lent(region));
                    // The same random numbers as the round itself.
                    let key = self.key_of(plan.spec.of.key, 1, row);
                    let arena = part(scratch, plan.inner, 0);
                    let mut child = self.child(&plan.step, arena, inputs, made, key);
                    child.run(lender, None, false)?;
                    self.ran(&child);
                    std::mem::swap(&mut now, &mut other);
                }
            }
        }
        for (now, home) in now.iter().zip(&homes) {
            copy(lender, *now, *home)?;
        }
        Ok(())
    }

    /// Where the states lie; those that are not close together, or not ours to overwrite, are copied.
    fn states(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        plan: &'p LoopGradPlan,
        scratch: Region,
    ) -> Result<States<'p>> {
        let node = self.node(step)?;
        let [mut first, mut last] = [Regions::new(), Regions::new()];
        for (held, regions) in plan.held.iter().zip([&mut first, &mut last]) {
            for (j, held) in held.iter().enumerate() {
                // Every state is as large as the first.
                let ty = self.plan.graph.ty(node.inputs[j]);
                let (len, size) = (ty.bytes("while_grad")?.as_usize(), ty.dtype.size());
                regions.push(match held {
                    Held::There { input, first } => {
                        let whole = self.given(node.inputs[*input])?;
                        Region { offset: whole.offset + first * size, len, align: size, ..whole }
                    }
                    Held::Copied { input, to } => {
                        let to = part(scratch, *to, len);
                        self.gather(lender, node.inputs[*input], to)?;
                        to
                    }
                    Held::Made(to) => part(scratch, *to, len),
                });
            }
        }
        let mut checkpoints = SmallVec::new();
        for (j, at) in plan.checkpoints.iter().enumerate() {
            let ty = self.plan.graph.ty(node.inputs[j]);
            let kept = plan.spec.of.checkpoint(ty);
            let row = ty.bytes("while_grad")?.as_usize();
            let handed = plan.spec.inputs(node.inputs.len()).map(|at| at.checkpoints.start + j);
            let whole = match (at, handed) {
                (None, Some(input)) => self.given(node.inputs[input])?,
                (Some(at), input) => {
                    let whole = part(scratch, *at, kept.bytes("while_grad")?.as_usize());
                    self.lent(&whole);
                    if let Some(input) = input.filter(|_| plan.spec.handed) {
                        self.gather(lender, node.inputs[input], whole)?;
                    }
                    whole
                }
                (None, None) => {
                    return Err(ErrorKind::BadGraph { what: "no checkpoints".into() }.into());
                }
            };
            checkpoints.push(Rows::new(whole, row));
        }
        Ok(States { plan, scratch, first, last, checkpoints })
    }

    /// Copies a value's elements close together.
    fn gather(&mut self, lender: &mut Lender, id: tonnage_core::ValueId, to: Region) -> Result<()> {
        let (layout, from) = (self.layout(id)?, self.read(id)?);
        let size = self.plan.graph.ty(id).dtype.size();
        self.lent(&to);
        let mut lent = lender.lend(&[from], &[to])?;
        let (from, to) = (lent.reads[0], &mut lent.writes[0]);
        let mut chunks = to.chunks_exact_mut(size);
        layout.for_each(|at| {
            if let Some(chunk) = chunks.next() {
                chunk.copy_from_slice(&from[at * size..(at + 1) * size]);
            }
        });
        Ok(())
    }

    /// Runs the loop once more, from its start to its end, keeping states; how many rounds there were.
    fn sweep(
        &mut self,
        lender: &mut Lender,
        runner: &Runner<'p>,
        states: &States<'p>,
    ) -> Result<u64> {
        let plan = states.plan;
        let known = plan.spec.of.known_rounds();
        let limit = runner.limit();
        let mut keeper = Keeper::new(&plan.forward.keeps);
        let (mut place, mut round) = (START, 0);
        let mut going = crate::interrupt::Rounds::default();
        while round < limit && runner.holds(self, lender, &states.at(place), &None, round)? {
            going.go_on()?;
            // Where the end is known, a state that is kept is made where it stays.
            let spare = plan.rows + usize::from(place == plan.rows);
            let to = match known {
                Some(rounds) if round + 1 == rounds => LAST,
                Some(_) => keeper.keep(round + 1).unwrap_or(spare),
                None => spare,
            };
            runner.round(
                self,
                lender,
                &states.at(place),
                &mut None,
                states.at(to).into_iter().collect(),
                round,
            )?;
            self.again += 1;
            (place, round) = (to, round + 1);
            if known.is_none()
                && let Some(row) = keeper.keep(round)
            {
                for (from, to) in states.at(place).into_iter().zip(states.at(row)) {
                    copy(lender, from, to)?;
                }
            }
        }
        if place != LAST {
            for (from, to) in states.at(place).into_iter().zip(states.at(LAST)) {
                self.lent(&to);
                copy(lender, from, to)?;
            }
        }
        Ok(round)
    }
}

//! The budget: a ladder of plans for one graph, from unlimited down, and the quickest rung that fits.
//!
//! In the order that data flows: `cost` says what work takes on a machine; `variants` are other graphs for the same
//! results; `sketch` knows which values are idle for long; `draw` draws a program with some of them computed again or
//! spilled; `choose` looks for which, and `give` keeps again what fits; `overlap` says when the disk lane begins and is awaited; `again` makes the chosen
//! sketch a graph, which is then fused and planned as any other.
//!
//! The ladder is the front of all variants' ladders. It depends on the graph, its inputs and the machine's figures, never on a budget. A budget picks the
//! quickest rung whose plan, to the byte, fits: so a lower budget never gives a higher peak, and where none fits, the
//! lowest rung's peak is the least budget that would do.
//!
//! Decision: `docs/decisions/one-frontier.md`.

mod again;
mod choose;
mod cost;
mod draw;
mod found;
mod front;
mod give;
mod heap;
mod overlap;
mod sketch;
mod variants;

pub use cost::Machine;
pub use variants::Allowed;

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use crate::files::{seconds_of_files, uses_files};
use crate::order;
use crate::place::{InputSpec, Options, outline, plan_in_order};
use crate::plan::Plan;
use choose::{Choice, Dropped};
use found::Found;
use sketch::Program;
use variants::{Base, Rung, Variant};

/// Rungs between unlimited and the lowest.
const RUNGS: u64 = 24;

/// What a rung does to take less, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fitted {
    /// Nodes that run again.
    pub recomputed: usize,
    /// What is written to a file and read back.
    pub spilled: Bytes,
    /// States that the gradients of loops keep at once, where the budget chose how many.
    pub slots: Option<u64>,
    /// Rounds of loops that are run again; `None` where only the data know.
    pub rounds_again: Option<u64>,
    /// Loops whose dear insides are kept for their gradients, so that nothing dear is computed again.
    pub insides: usize,
    /// Pieces that the batch runs in, one after the other, where it does: sums over it are added in another order.
    pub micro_batches: Option<usize>,
    /// Values of f32 that are kept as bf16 while they are idle.
    pub in_bf16: usize,
    /// Seconds that the call is expected to take on the machine that the planner was told of.
    pub seconds: f64,
    /// Seconds that it would take with memory for everything: the quickest rung's.
    pub unlimited_seconds: f64,
}

/// A point of the price curve: so many bytes, so many seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// The peak.
    pub peak: Bytes,
    /// What the rung does.
    pub fitted: Fitted,
}

/// All ways to run one graph, quickest first.
pub struct Ladder {
    variants: Vec<Variant>,
    inputs: Vec<InputSpec>,
    options: Options,
    /// Each with the variant that it is of. The first ones are the graph in the order that takes the least, and with
    /// updates of variables at its end, so that values can be read back from a file for longer.
    rungs: Vec<(usize, Rung)>,
    /// What is known of the rungs that were looked at.
    plans: Mutex<Vec<Planned>>,
}

/// What is known of a rung. A plan that does not fit is not held on to: it takes more than all rungs together.
#[derive(Clone, Default)]
struct Planned {
    /// What it takes at least.
    floor: Option<Bytes>,
    /// What its plan takes.
    peak: Option<Bytes>,
    plan: Option<Arc<Plan>>,
}

impl Ladder {
    /// The ladder of a lowered graph.
    pub fn of(
        graph: &Arc<Graph>,
        inputs: &[InputSpec],
        options: Options,
        machine: &Machine,
    ) -> Result<Ladder> {
        Ladder::allowing(Allowed::default(), graph, &[], inputs, options, machine)
    }

    /// The ladder of a lowered graph, with these levers; and of the same with insides of loops kept
    /// ([`lower_keeping_insides`](crate::lower_keeping_insides)), where there are such graphs.
    pub fn allowing(
        allowed: Allowed,
        graph: &Arc<Graph>,
        keeping_insides: &[Arc<Graph>],
        inputs: &[InputSpec],
        options: Options,
        machine: &Machine,
    ) -> Result<Ladder> {
        let graph = order::low_peak(graph, inputs, options.threads);
        let updates_last = match machine.has_disk() {
            true => sketch::updates_last(&graph).map(Arc::new),
            false => None,
        };
        let orders = [graph].into_iter().chain(updates_last);
        let (own, programs): (Vec<Variant>, Vec<Program>) =
            orders.map(|graph| Variant::of(graph, inputs, options.threads, machine)).unzip();
        let mut found = Found::new(own.len());
        let mut add = |choice: Choice| {
            let order = choice.dropped.order;
            found.add_own(order, own[order].rung(choice.sketch));
            choice.dropped
        };
        let dropped: Vec<Dropped> = rungs(&programs).into_iter().map(&mut add).collect();
        let base = Base {
            inputs,
            threads: options.threads,
            machine,
            programs: &programs,
            dropped: &dropped,
            seconds: own[0].seconds,
        };
        variants::all(&own, keeping_insides, &base, allowed, &mut found);
        drop(programs);
        let (variants, rungs) = found.finish(own);
        let mut ladder = Ladder {
            variants,
            inputs: inputs.to_vec(),
            options,
            plans: Mutex::new(vec![Planned::default(); rungs.len()]),
            rungs,
        };
        if uses_files(&ladder.variants[0].graph, inputs) {
            ladder.add_files(machine)?;
        }
        Ok(ladder)
    }

    /// Adds what comes from files and goes there, which takes its time whatever the budget, and orders the rungs by
    /// the sums: what is computed again may be read again.
    fn add_files(&mut self, machine: &Machine) -> Result<()> {
        for rung in 0..self.rungs.len() {
            let made = outline(&self.graph(rung)?, &self.inputs, self.options)?;
            self.rungs[rung].1.seconds += seconds_of_files(made.reads, made.writes, machine);
        }
        self.rungs.sort_by(|(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
        Ok(())
    }

    fn graph(&self, rung: usize) -> Result<Arc<Graph>> {
        let (variant, way) = &self.rungs[rung];
        self.variants[*variant].graph(way)
    }

    /// How many rungs there are; the first is the quickest, the last takes the least memory.
    pub fn rungs(&self) -> usize {
        self.rungs.len()
    }

    /// The plan of a rung.
    pub fn plan(&self, rung: usize) -> Result<Arc<Plan>> {
        if let Some(plan) = self.known(rung, |known| known.plan.clone()) {
            return Ok(plan);
        }
        let (variant, way) = &self.rungs[rung];
        let variant = &self.variants[*variant];
        let mut made = plan_in_order(&self.graph(rung)?, &self.inputs, &[], self.options)?;
        made.fitted = Some(Fitted {
            recomputed: way.again(),
            spilled: made.spilled(),
            slots: variant.used.slots,
            rounds_again: variant.used.rounds_again,
            insides: variant.used.insides,
            micro_batches: variant.used.micro_batches,
            in_bf16: variant.used.in_bf16,
            seconds: way.seconds,
            unlimited_seconds: self.rungs[0].1.seconds,
        });
        let made = Arc::new(made);
        self.known(rung, |known| {
            known.peak = Some(made.peak());
            known.plan = Some(made.clone());
        });
        Ok(made)
    }

    /// Looks at what is known of a rung, or changes it.
    fn known<R>(&self, rung: usize, look: impl FnOnce(&mut Planned) -> R) -> R {
        look(&mut self.plans.lock().unwrap_or_else(PoisonError::into_inner)[rung])
    }

    /// Lets go of a rung's plan. Its peak stays known.
    fn forget(&self, rung: usize) {
        self.known(rung, |known| known.plan = None);
    }

    /// What a rung takes at least: its peak where that is known. Otherwise it is found without addresses, in a fraction
    /// of the time of a plan.
    fn floor(&self, rung: usize) -> Result<Bytes> {
        if let Some(floor) = self.known(rung, |known| known.peak.or(known.floor)) {
            return Ok(floor);
        }
        let floor = outline(&self.graph(rung)?, &self.inputs, self.options)?.peak;
        self.known(rung, |known| known.floor = Some(floor));
        Ok(floor)
    }

    /// The quickest rung whose peak is at most `budget`; where there is none, the plan with the least peak
    /// as the error.
    ///
    /// Estimates rule out no rung: one that is a tenth too high would pass over a plan that fits, and a lower budget
    /// could then give a higher peak.
    pub fn fit(&self, budget: Bytes) -> Result<std::result::Result<Arc<Plan>, Arc<Plan>>> {
        for rung in 0..self.rungs.len() {
            if self.floor(rung)? > budget {
                continue;
            }
            let plan = self.plan(rung)?;
            if plan.peak() <= budget {
                return Ok(Ok(plan));
            }
            self.forget(rung);
        }
        Ok(Err(self.least()?))
    }

    /// The plan with the least peak.
    pub fn least(&self) -> Result<Arc<Plan>> {
        self.plan(self.lowest()?.1)
    }

    /// The least peak of all plans. No plan is held for it.
    pub fn least_peak(&self) -> Result<Bytes> {
        Ok(self.lowest()?.0)
    }

    /// The least peak and its rung. At most one plan lives at a time.
    fn lowest(&self) -> Result<(Bytes, usize)> {
        let floors = (0..self.rungs.len()).map(|rung| Ok((self.floor(rung)?, rung)));
        let mut floors = floors.collect::<Result<Vec<(Bytes, usize)>>>()?;
        floors.sort_unstable();
        let mut lowest: Option<(Bytes, usize)> = None;
        for (floor, rung) in floors {
            if lowest.is_some_and(|(peak, _)| floor >= peak) {
                break; // nor is any that follows below it
            }
            let peak = self.plan(rung)?.peak();
            self.forget(rung);
            if lowest.is_none_or(|(least, _)| peak < least) {
                lowest = Some((peak, rung));
            }
        }
        Ok(lowest.unwrap_or((Bytes::ZERO, 0)))
    }

    /// Peak and price of about a dozen rungs, from unlimited down to the least: what a byte less costs.
    pub fn prices(&self) -> Result<Vec<Price>> {
        let step = self.rungs.len().div_ceil(12).max(1);
        let last = self.rungs.len() - 1;
        let mut made: Vec<Price> = Vec::new();
        for rung in (0..last).step_by(step).chain([last]) {
            let plan = self.plan(rung)?;
            self.forget(rung);
            let Some(fitted) = plan.fitted else { continue };
            if made.last().is_none_or(|before| plan.peak() < before.peak) {
                made.push(Price { peak: plan.peak(), fitted });
            }
        }
        Ok(made)
    }
}

/// Choices from unlimited down: at each of a number of sizes the quickest that was found.
fn rungs(programs: &[Program]) -> Vec<Choice> {
    let found = choose::found(programs);
    let least = found.iter().map(|tried| tried.peak).min().unwrap_or(0);
    let first = found.first().and_then(|tried| tried.choice(programs));
    let Some(first) = first else { return Vec::new() };
    let most = first.sketch.peak.bytes;
    let mut made: Vec<Choice> = vec![first];
    for i in 1..=RUNGS {
        // Every rung is the same part of what is left above the least.
        let size = least + (most - least) / RUNGS * (RUNGS - i);
        let Some(choice) = choose::quickest(programs, &found, size) else { continue };
        if made.last().is_none_or(|before| choice.sketch.peak.bytes < before.sketch.peak.bytes) {
            made.push(choice);
        }
    }
    // A dearer rung with a higher peak is none.
    let mut kept: Vec<Choice> = Vec::new();
    for choice in made.into_iter().rev() {
        if kept.last().is_none_or(|next: &Choice| choice.sketch.seconds < next.sketch.seconds) {
            kept.push(choice);
        }
    }
    kept.reverse();
    kept
}

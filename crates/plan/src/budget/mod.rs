//! The budget: a frontier of plans for one graph, from unlimited down, and the quickest point that fits. The levers are
//! rematerialization, spilling, loop checkpoints and residuals, micro-batches, segments in pieces and bf16.
//!
//! In the order that data flows: `cost` says what work takes on a machine; `variants` are other graphs for the same
//! results, of which `pieces` makes those in pieces; `sketch` knows which values are idle for long; `draw` draws a program with some of them recomputed or
//! spilled; `choose` looks for which, and `give` saves after all what fits; `overlap` says when the disk lane begins
//! and is awaited; `rematerialize` makes the chosen sketch a graph, `segments` cuts it, and it is planned as any other.
//!
//! The frontier is the front of all variants' frontiers. It depends on the graph, its inputs and the machine's
//! figures, never on a budget. A budget picks the quickest point whose plan, to the byte, fits: so a lower budget
//! never gives a higher peak, and where none fits, the lowest point's peak is the least budget that would do.
//!
//! Decision: `docs/decisions/one-frontier.md`.

mod builder;
mod choose;
mod cost;
mod default;
mod draw;
mod front;
mod give;
mod heap;
mod overlap;
mod pieces;
mod rematerialize;
mod segments;
mod sketch;
mod variants;

pub use cost::Machine;
pub use default::HARDLY_LONGER;
pub use segments::Segment;
pub use variants::Allowed;

use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use crate::files::{seconds_of_files, uses_files};
use crate::network;
use crate::order;
use crate::place::{InputSpec, PlanOptions, outline, plan_in_order};
use crate::plan::Plan;
use crate::sort;
use builder::FrontierBuilder;
use choose::{Choice, Dropped};
use segments::Segments;
use sketch::ProgramProfile;
use variants::{FrontierPoint, Search, Variant, VariantBase};

/// Points between unlimited and the lowest.
const POINTS: u64 = 24;

/// What a point does to take less, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Fitted {
    /// Nodes that are recomputed.
    pub recomputed: usize,
    /// What is written to a file and read back.
    pub spilled: Bytes,
    /// States that the gradients of loops checkpoint at once, where the budget chose how many.
    pub max_checkpoints: Option<u64>,
    /// Iterations of loops that are recomputed; `None` where only the data know.
    pub recomputed_iterations: Option<u64>,
    /// Loops whose expensive residuals are saved for their gradients, so that nothing expensive is recomputed.
    pub residuals: usize,
    /// Pieces that the batch runs in, one after the other, where it does: sums over it are added in another order.
    pub micro_batches: Option<usize>,
    /// Segments that run in pieces, so that wide values never exist as a whole; [`Plan::segments`] lists them.
    pub segments: usize,
    /// Those of them that may change last digits.
    pub segments_with_sums: usize,
    /// Values of f32 that are held as bf16 while they are idle.
    pub in_bf16: usize,
    /// Seconds that the call is expected to take on the machine that the planner was told of.
    pub seconds: f64,
    /// Seconds that it would take with memory for everything: the quickest point's.
    pub unlimited_seconds: f64,
}

/// A point of the price curve: bytes and seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Price {
    /// The peak.
    pub peak: Bytes,
    /// What the point does.
    pub fitted: Fitted,
}

/// All ways to run one graph, quickest first.
pub struct Frontier {
    variants: Vec<Variant>,
    inputs: Vec<InputSpec>,
    options: PlanOptions,
    /// Each with the variant that it is of. The first ones are the graph in the order that takes the least, and with
    /// updates of variables at its end, so that values can be read back from a file for longer.
    points: Vec<(usize, FrontierPoint)>,
    /// The graph as it was given, where nobody named a budget: a plan that does nothing to it is that of [`plan`](crate::plan).
    as_given: Option<Arc<Graph>>,
    /// What is known of the points that were looked at.
    plans: Mutex<Vec<Planned>>,
}

/// What is known of a point. A plan that does not fit is not held on to: it takes more than all points together.
#[derive(Clone, Default)]
struct Planned {
    /// What it takes at least.
    floor: Option<Bytes>,
    /// What its plan takes.
    peak: Option<Bytes>,
    plan: Option<Arc<Plan>>,
}

impl Frontier {
    /// The frontier of a lowered graph.
    pub fn of(graph: &Arc<Graph>, inputs: &[InputSpec], options: PlanOptions) -> Result<Frontier> {
        Frontier::allowing(Allowed::default(), graph, &[], inputs, options)
    }

    /// The frontier of a lowered graph, with these levers; and of the same with residuals of loops saved
    /// ([`lower_with_residuals`](crate::lower_with_residuals)), where there are such graphs.
    pub fn allowing(
        allowed: Allowed,
        graph: &Arc<Graph>,
        with_residuals: &[Arc<Graph>],
        inputs: &[InputSpec],
        options: PlanOptions,
    ) -> Result<Frontier> {
        Frontier::searched(Search::Budget(allowed), graph, with_residuals, inputs, options)
    }

    fn searched(
        search: Search,
        graph: &Arc<Graph>,
        with_residuals: &[Arc<Graph>],
        inputs: &[InputSpec],
        options: PlanOptions,
    ) -> Result<Frontier> {
        let target = &*options.target;
        let machine = &search.machine(target.machine());
        let as_given = (search == Search::Default).then(|| graph.clone());
        let graph = order::low_peak(graph, inputs, target);
        let updates_last = match machine.has_disk() {
            true => sketch::updates_last(&graph).map(Arc::new),
            false => None,
        };
        let orders = [graph].into_iter().chain(updates_last);
        let (own, programs): (Vec<Variant>, Vec<ProgramProfile>) =
            orders.map(|graph| Variant::of(graph, inputs, target, machine)).unzip();
        let mut found = FrontierBuilder::new(own.len());
        let mut add = |choice: Choice| {
            let order = choice.dropped.order;
            found.add_own(order, own[order].point(choice.sketch));
            choice.dropped
        };
        let most = search.most_seconds(own[0].seconds);
        let dropped: Vec<Dropped> =
            points_within(&programs, most).into_iter().map(&mut add).collect();
        let base = VariantBase {
            inputs,
            target,
            machine,
            programs: &programs,
            dropped: &dropped,
            seconds: own[0].seconds,
            search,
        };
        variants::all(&own, with_residuals, &base, &mut found);
        drop(programs);
        let (variants, points) = found.finish(own);
        let mut frontier = Frontier {
            variants,
            inputs: inputs.to_vec(),
            options,
            plans: Mutex::new(vec![Planned::default(); points.len()]),
            points,
            as_given,
        };
        if network::has_lane(&frontier.variants[0].graph, &*frontier.options.target) {
            frontier.add_lane()?;
        }
        if uses_files(&frontier.variants[0].graph, inputs) {
            frontier.add_files(machine)?;
        }
        Ok(frontier)
    }

    /// Adds what comes from files and goes there, which takes its time whatever the budget, and orders the points by
    /// the sums: what is recomputed may be read again.
    fn add_files(&mut self, machine: &Machine) -> Result<()> {
        for point in 0..self.points.len() {
            let made = outline(&self.graph(point)?.0, &self.inputs, self.options_of(point))?;
            self.points[point].1.seconds += seconds_of_files(made.reads, made.writes, machine);
        }
        sort::by(&mut self.points, |(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
        Ok(())
    }

    /// Takes off what the network lane hides, and adds points that hide more of it, since transfers begin earlier or end later, in more memory.
    fn add_lane(&mut self) -> Result<()> {
        for point in 0..self.points.len() {
            let (graph, _) = self.graph(point)?;
            let hidden = |ahead: Bytes| -> Result<f64> {
                let options = PlanOptions { ahead, ..self.options.clone() };
                Ok(outline(&graph, &self.inputs, options)?.hidden)
            };
            let room = network::room_ahead(&graph, &*self.options.target);
            let (own, more) = (hidden(Bytes::ZERO)?, hidden(room)?);
            let (variant, known) = &mut self.points[point];
            let mut ahead = FrontierPoint { ahead: room, ..known.clone() };
            known.seconds -= own;
            ahead.seconds -= more;
            ahead.peak += room.get();
            let variant = *variant;
            if more > own {
                self.points.push((variant, ahead));
            }
        }
        sort::by(&mut self.points, |(_, a), (_, b)| a.seconds.total_cmp(&b.seconds));
        let count = self.points.len();
        self.plans = Mutex::new(vec![Planned::default(); count]);
        Ok(())
    }

    /// The graph of a point, and the segments that run in pieces there.
    fn graph(&self, point: usize) -> Result<(Arc<Graph>, Vec<Segment>)> {
        let (variant, frontier_point) = &self.points[point];
        let target = &*self.options.target;
        let graph = self.variants[*variant].graph(frontier_point, target)?;
        let mut segments = self.variants[*variant].segments.clone();
        let Some(cut) = frontier_point.cut else { return Ok((graph, segments)) };
        let cut = Segments::of(&graph, &self.inputs, target).in_pieces(cut);
        Ok(match cut {
            Some((graph, more)) => {
                segments.extend(more);
                (Arc::new(graph), segments)
            }
            None => (graph, segments),
        })
    }

    fn options_of(&self, point: usize) -> PlanOptions {
        PlanOptions { ahead: self.points[point].1.ahead, ..self.options.clone() }
    }

    /// How many points there are; the first is the quickest, the last takes the least memory.
    pub fn points(&self) -> usize {
        self.points.len()
    }

    /// The plan of a point.
    pub fn plan(&self, point: usize) -> Result<Arc<Plan>> {
        if let Some(plan) = self.known(point, |known| known.plan.clone()) {
            return Ok(plan);
        }
        let (variant, frontier_point) = &self.points[point];
        let variant = &self.variants[*variant];
        let (graph, segments) = self.graph(point)?;
        let mut made = plan_in_order(&graph, &self.inputs, &[], self.options_of(point))?;
        let fitted = Fitted {
            recomputed: frontier_point.recomputed(),
            spilled: made.spilled(),
            max_checkpoints: variant.used.max_checkpoints,
            recomputed_iterations: variant.used.recomputed_iterations,
            residuals: variant.used.residuals,
            micro_batches: variant.used.micro_batches,
            segments: segments.len(),
            segments_with_sums: segments.iter().filter(|s| s.changes_bits).count(),
            in_bf16: variant.used.in_bf16,
            seconds: frontier_point.seconds,
            unlimited_seconds: self.points[0].1.seconds,
        };
        match self.as_given.as_ref().filter(|_| self.is_as_it_is(point)) {
            Some(graph) => made.program = graph.clone(),
            None => made.fitted = Some(fitted),
        }
        made.segments = segments;
        let made = Arc::new(made);
        self.known(point, |known| {
            known.peak = Some(made.peak());
            known.plan = Some(made.clone());
        });
        Ok(made)
    }

    /// Looks at what is known of a point, or changes it.
    fn known<R>(&self, point: usize, look: impl FnOnce(&mut Planned) -> R) -> R {
        look(&mut self.plans.lock().unwrap_or_else(PoisonError::into_inner)[point])
    }

    /// Lets go of a point's plan. Its peak stays known.
    fn forget(&self, point: usize) {
        self.known(point, |known| known.plan = None);
    }

    /// What a point takes at least: its peak where that is known. Otherwise it is found without addresses, in a fraction
    /// of the time of a plan.
    fn floor(&self, point: usize) -> Result<Bytes> {
        if let Some(floor) = self.known(point, |known| known.peak.or(known.floor)) {
            return Ok(floor);
        }
        let floor = outline(&self.graph(point)?.0, &self.inputs, self.options_of(point))?.peak;
        self.known(point, |known| known.floor = Some(floor));
        Ok(floor)
    }

    /// The quickest point whose peak is at most `budget`; where there is none, the plan with the least peak
    /// as the error.
    ///
    /// Estimates rule out no point: one that is a tenth too high would pass over a plan that fits, and a lower budget
    /// could then give a higher peak.
    pub fn fit(&self, budget: Bytes) -> Result<std::result::Result<Arc<Plan>, Arc<Plan>>> {
        for point in 0..self.points.len() {
            if self.floor(point)? > budget {
                continue;
            }
            let plan = self.plan(point)?;
            if plan.peak() <= budget {
                return Ok(Ok(plan));
            }
            self.forget(point);
        }
        Ok(Err(self.least()?))
    }

    /// The plan with the least peak.
    pub fn least(&self) -> Result<Arc<Plan>> {
        self.lowest(self.points.len())
    }

    /// The least peak of all plans.
    pub fn least_peak(&self) -> Result<Bytes> {
        Ok(self.least()?.peak())
    }

    /// The plan with the least peak of the quickest so many points; of equals the quickest. At most two plans live at a time.
    fn lowest(&self, quickest: usize) -> Result<Arc<Plan>> {
        let floors = (0..quickest).map(|point| Ok((self.floor(point)?, point)));
        let mut floors = floors.collect::<Result<Vec<(Bytes, usize)>>>()?;
        floors.sort_unstable();
        let mut lowest: Option<(Bytes, usize)> = None;
        for (floor, point) in floors {
            if lowest.is_some_and(|known| (floor, point) > known) {
                break; // nor is any that follows below it
            }
            let peak = self.plan(point)?.peak();
            let worse = match lowest {
                Some(known) if known < (peak, point) => point,
                before => {
                    lowest = Some((peak, point));
                    before.map_or(point, |(_, before)| before)
                }
            };
            if lowest.is_some_and(|(_, best)| best != worse) {
                self.forget(worse);
            }
        }
        self.plan(lowest.map_or(0, |(_, point)| point))
    }

    /// Peak and price of about a dozen points, from unlimited down to the least: what a byte less costs.
    pub fn prices(&self) -> Result<Vec<Price>> {
        let step = self.points.len().div_ceil(12).max(1);
        let last = self.points.len() - 1;
        let mut made: Vec<Price> = Vec::new();
        for point in (0..last).step_by(step).chain([last]) {
            let plan = self.plan(point)?;
            self.forget(point);
            let Some(fitted) = plan.fitted else { continue };
            if made.last().is_none_or(|before| plan.peak() < before.peak) {
                made.push(Price { peak: plan.peak(), fitted });
            }
        }
        Ok(made)
    }
}

/// Choices from unlimited down: at each of a number of sizes the quickest that was found.
fn points(programs: &[ProgramProfile]) -> Vec<Choice> {
    points_within(programs, f64::INFINITY)
}

/// Those that take at most so many seconds more than nothing dropped.
fn points_within(programs: &[ProgramProfile], most_seconds: f64) -> Vec<Choice> {
    let found = choose::found(programs);
    let least = found.iter().map(|tried| tried.peak).min().unwrap_or(0);
    let first = found.first().and_then(|tried| tried.choice(programs));
    let Some(first) = first else { return Vec::new() };
    let most = first.sketch.peak.bytes;
    let mut made: Vec<Choice> = vec![first];
    for i in 1..=POINTS {
        // Every point is the same part of what is left above the least.
        let size = least + (most - least) / POINTS * (POINTS - i);
        let Some(choice) = choose::quickest(programs, &found, size) else { continue };
        if choice.sketch.seconds > most_seconds {
            break; // nor does a smaller one take less
        }
        if made.last().is_none_or(|before| choice.sketch.peak.bytes < before.sketch.peak.bytes) {
            made.push(choice);
        }
    }
    // A more expensive point with a higher peak is none.
    let mut undominated: Vec<Choice> = Vec::new();
    for choice in made.into_iter().rev() {
        if undominated
            .last()
            .is_none_or(|next: &Choice| choice.sketch.seconds < next.sketch.seconds)
        {
            undominated.push(choice);
        }
    }
    undominated.reverse();
    undominated
}

//! The plan without a budget: of those that take hardly longer than the quickest, the one that takes the least memory.
//!
//! It is chosen on a frontier like that of a budget, of what keeps every bit and needs no file ([`Search::Default`]). Peaks are
//! those of plans, to the byte; times are the machine's figures, so a machine always chooses the same.
//!
//! Decision: `docs/decisions/default-plan.md`.

use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use super::variants::Search;
use super::{Frontier, FrontierPoint};
use crate::network::is_between_ranks;
use crate::place::{InputSpec, PlanOptions, plan};
use crate::plan::Plan;

/// How many times the seconds of the quickest plan the default may take.
pub const HARDLY_LONGER: f64 = 1.05;

impl Frontier {
    /// What a call without a budget chooses from: what keeps every bit of a lowered graph, with everything in memory. Graphs with
    /// residuals of loops saved are as for [`Frontier::allowing`].
    pub fn by_default(
        graph: &Arc<Graph>,
        with_residuals: &[Arc<Graph>],
        inputs: &[InputSpec],
        options: PlanOptions,
    ) -> Result<Frontier> {
        Frontier::searched(Search::Default, graph, with_residuals, inputs, options)
    }

    /// The least plan of those that take at most [`HARDLY_LONGER`] than the quickest; of equals the quickest. `None` where that is
    /// the graph as it is.
    fn least_of_quick(&self) -> Result<Option<Arc<Plan>>> {
        let longest = self.points[0].1.seconds * HARDLY_LONGER;
        let quick = self.points.partition_point(|(_, point)| point.seconds <= longest);
        let (_, point) = self.lowest(quick)?;
        if self.is_as_it_is(point) {
            return Ok(None);
        }
        self.plan(point).map(Some)
    }

    /// Whether a point is the graph with nothing done to it.
    fn is_as_it_is(&self, point: usize) -> bool {
        let (variant, point): &(usize, FrontierPoint) = &self.points[point];
        *variant == 0 && point.is_plain()
    }
}

/// The plan of a lowered graph without a budget. Graphs with residuals of loops saved are as for [`Frontier::allowing`]. Where it
/// would take more than `memory`, gradients of loops keep the few states that they have as the graph stands; and a graph that moves
/// bytes between ranks stays as it is, since they all have to do the same, whatever their figures.
///
/// # Errors
/// Where the graph has other inputs, or a size is too large.
pub fn default_plan(
    graph: &Arc<Graph>,
    with_residuals: &[Arc<Graph>],
    inputs: &[InputSpec],
    options: PlanOptions,
    memory: Option<Bytes>,
) -> Result<Arc<Plan>> {
    let chosen = match is_between_ranks(graph) {
        true => None,
        false => Frontier::by_default(graph, with_residuals, inputs, options.clone())?
            .least_of_quick()?,
    };
    let fits = |chosen: &Arc<Plan>| memory.is_none_or(|memory| chosen.peak() <= memory);
    match chosen {
        Some(chosen) if fits(&chosen) => Ok(chosen),
        _ => Ok(Arc::new(plan(graph, inputs, options)?)),
    }
}

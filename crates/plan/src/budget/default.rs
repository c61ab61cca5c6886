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
use crate::place::{InputSpec, PlanOptions};
use crate::plan::Plan;

/// How many times the seconds of the quickest plan the default may take.
pub const HARDLY_LONGER: f64 = 1.05;

impl Frontier {
    /// What a call without a budget chooses from: what keeps every bit of a lowered graph, with everything in memory. Graphs with
    /// residuals of loops saved are as for [`Frontier::allowing`]. `None` where nothing is chosen: a graph that moves bytes between
    /// ranks stays as it is, since they all have to do the same, whatever their figures.
    pub fn by_default(
        graph: &Arc<Graph>,
        with_residuals: &[Arc<Graph>],
        inputs: &[InputSpec],
        options: PlanOptions,
    ) -> Result<Option<Frontier>> {
        if is_between_ranks(graph) {
            return Ok(None);
        }
        Frontier::searched(Search::Default, graph, with_residuals, inputs, options).map(Some)
    }

    /// Seconds that a point is expected to take.
    pub fn seconds(&self, point: usize) -> f64 {
        self.points[point].1.seconds
    }

    /// The least plan of those that take at most [`HARDLY_LONGER`] than the quickest; of equals the quickest. `None` where it would take
    /// more than `memory`: gradients of loops keep the few states then that they have as the graph stands.
    pub fn least_of_quick(&self, memory: Option<Bytes>) -> Result<Option<Arc<Plan>>> {
        let longest = self.seconds(0) * HARDLY_LONGER;
        let quick = self.points.partition_point(|(_, point)| point.seconds <= longest);
        let least = self.lowest(quick)?;
        Ok(Some(least).filter(|plan| memory.is_none_or(|memory| plan.peak() <= memory)))
    }

    /// Whether a point is the graph with nothing done to it.
    pub(super) fn is_as_it_is(&self, point: usize) -> bool {
        let (variant, point): &(usize, FrontierPoint) = &self.points[point];
        *variant == 0 && point.is_plain()
    }
}

//! The residuals of loops saved for their gradients: the quickest of all, where there is room.
//!
//! Decision: `docs/decisions/default-plan.md`.

use std::sync::Arc;

use tonnage_core::graph::Graph;

use super::super::sketch::RematDecision;
use super::{Variant, VariantBase, VariantSink, VariantSummary};
use crate::loop_checkpoints::loop_checkpoints;
use crate::order;

/// The graph that saves them, with nothing dropped: with less room, states are checkpointed and the rest is recomputed.
pub fn variant(
    with_residuals: &Arc<Graph>,
    own: &Graph,
    base: &VariantBase,
    sink: &mut impl VariantSink,
) {
    let graph = order::low_peak(with_residuals, base.inputs, base.target);
    let residuals = loop_checkpoints(own).len() - loop_checkpoints(&graph).len();
    let (mut variant, program) = Variant::of(graph, base.inputs, base.target, base.machine);
    variant.used = VariantSummary { residuals, ..variant.used };
    let decisions = vec![RematDecision::Keep; program.candidates.len()];
    let Some(sketch) = program.sketch(&decisions) else { return };
    let point = variant.point(sketch);
    sink.add(variant, vec![point]);
}

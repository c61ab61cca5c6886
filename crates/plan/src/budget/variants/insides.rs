//! The insides of loops kept for their gradients: the quickest of all, where there is room.
//!
//! Decision: `docs/decisions/unlimited-is-the-fastest.md`.

use std::sync::Arc;

use tonnage_core::graph::Graph;

use super::super::sketch::Fate;
use super::{Base, Sink, Used, Variant};
use crate::order;
use crate::slots::kept_states;

/// The graph that keeps them, with nothing dropped: who has less room keeps states and computes the rest again.
pub fn variant(keeping: &Arc<Graph>, own: &Graph, base: &Base, sink: &mut impl Sink) {
    let graph = order::low_peak(keeping, base.inputs, base.threads);
    let insides = kept_states(own).len() - kept_states(&graph).len();
    let (mut variant, program) = Variant::of(graph, base.inputs, base.threads, base.machine);
    variant.used = Used { insides, ..variant.used };
    let fates = vec![Fate::Keep; program.candidates.len()];
    let Some(sketch) = program.sketch(&fates) else { return };
    let rung = variant.rung(sketch);
    sink.add(variant, vec![rung]);
}

//! Segments in pieces: points of the graph as it is, with nothing dropped or with some of it, cut for several goals.
//!
//! Values that are saved for the backward pass are read far from where they are made, so no region holds all of their
//! readers. Where they are recomputed, what is recomputed and what reads it are a segment. So cuts are tried on the graphs of
//! points with values dropped. Not tried beside them: the batch in pieces, other numbers of loop checkpoints, bf16; and cuts
//! within bodies of loops.
//!
//! Decision: `docs/decisions/segments-in-pieces.md`.

use super::super::choose::Dropped;
use super::super::overlap::overlapped;
use super::super::segments::{Goal, Segments};
use super::{FrontierPoint, Variant, VariantBase, VariantSink};
use crate::order::pressure::Pressure;

/// Parts of the peak that are met, if they can be.
const GOALS: [f64; 9] = [0.85, 0.7, 0.55, 0.42, 0.32, 0.23, 0.15, 0.08, 0.0];
/// Points that are cut, and graphs that are made in all; fewer of a large graph.
const POINTS: usize = 6;
const NODES: usize = 12_000;

/// Points with segments in pieces.
pub fn points(own: &[Variant], base: &VariantBase, sink: &mut impl VariantSink) {
    let nodes = own.first().map_or(0, |variant| variant.graph.nodes.len());
    let tries = (NODES / nodes.max(1)).clamp(4, POINTS * GOALS.len());
    let some = tries.div_ceil(GOALS.len()).max(2);
    let step = (some * GOALS.len()).div_ceil(tries);
    for dropped in tried(base.dropped, some) {
        let variant = &own[dropped.order];
        let Some(point) = drawn(variant, base, dropped) else { continue };
        let Ok(graph) = variant.graph(&point, &base.target.tile_limits()) else { continue };
        let seconds = base.machine.graph(&graph);
        let mut segments = Segments::of(&graph, base.inputs, base.target);
        for goal in GOALS.iter().rev().step_by(step) {
            let goal = Goal {
                bytes: (point.peak as f64 * goal) as u64,
                changes_bits: base.allowed.micro_batches,
            };
            let Some((made, _)) = segments.in_pieces(goal) else { continue };
            let order: Vec<u32> = (0..made.nodes.len() as u32).collect();
            let peak = Pressure::of(&made, base.inputs, base.target).peak(&order).bytes;
            let longer = (base.machine.graph(&made) - seconds).max(0.0);
            let seconds = base.slower(point.seconds + longer);
            let point = FrontierPoint { cut: Some(goal), seconds, peak, ..point.clone() };
            sink.add_to_own(dropped.order, point);
        }
    }
}

/// Some of what is dropped, from nothing to the most.
fn tried(dropped: &[Dropped], some: usize) -> impl Iterator<Item = &Dropped> {
    let last = dropped.len().saturating_sub(1);
    let mut taken: Vec<usize> =
        (0..some).map(|i| i * last / some.saturating_sub(1).max(1)).collect();
    taken.dedup();
    taken.into_iter().filter_map(|i| dropped.get(i))
}

/// The point of what is dropped.
fn drawn(variant: &Variant, base: &VariantBase, dropped: &Dropped) -> Option<FrontierPoint> {
    let program = &base.programs[dropped.order];
    let sketch = program.sketch(&dropped.decisions)?;
    let sketch = match dropped.spills() {
        true => overlapped(program, &dropped.decisions, sketch.peak.bytes)?,
        false => sketch,
    };
    Some(variant.point(sketch))
}

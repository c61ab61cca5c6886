//! Segments in pieces, of two kinds.
//!
//! *Variants*: what is wide even where as much as possible is recomputed, cut into several numbers of pieces. The frontier of
//! recomputation runs over each: without its logits, a language model has room for what its layers save.
//!
//! *Points* of the graph as it is, with nothing dropped or with some of it, cut for several goals. Values that are saved for the
//! backward pass are read far from where they are made, so no region holds all of their readers. Where they are recomputed, what
//! is recomputed and what reads it are a segment. So cuts are tried on the graphs of points with values dropped. Not tried
//! beside them: the batch in pieces, other numbers of loop checkpoints, bf16; and cuts within bodies of loops.
//!
//! Decision: `docs/decisions/segments-in-pieces.md`.

use std::sync::Arc;

use super::super::choose::Dropped;
use super::super::draw::Sketch;
use super::super::overlap::overlapped;
use super::super::segments::{EqualPieces, Goal, Segments};
use super::super::sketch::ProgramProfile;
use super::{FrontierPoint, Variant, VariantBase, VariantSink};
use crate::order;
use crate::order::pressure::Pressure;

/// Parts of the peak that are met, if they can be.
const GOALS: [f64; 9] = [0.85, 0.7, 0.55, 0.42, 0.32, 0.23, 0.15, 0.08, 0.0];
/// Points that are cut, and graphs that are made in all; fewer of a large graph.
const POINTS: usize = 6;
const NODES: usize = 12_000;

/// Numbers of pieces of a variant.
const PIECES: [usize; 3] = [4, 16, 64];
/// A value is cut in a variant that is at least this part of the least that the graph takes as it is.
const WIDE: u64 = 6;

/// The graph with what is wide in pieces, in several numbers of them.
pub fn variants(own: &Variant, base: &VariantBase, sink: &mut impl VariantSink) {
    let last = base.dropped.iter().rev().find(|dropped| dropped.order == 0);
    let Some(least) = last.and_then(|last| base.programs[0].sketch(&last.decisions)) else {
        return;
    };
    // A region ends where its values are read last.
    let graph = order::prompt(&own.graph, base.inputs, base.target);
    let mut segments = Segments::of(&graph, base.inputs, base.target);
    let mut before: Option<(usize, Vec<Dropped>)> = None;
    for pieces in PIECES {
        let changes_bits = base.allowed.micro_batches;
        let least = least.peak.bytes / WIDE;
        let made = segments.in_equal(EqualPieces { least, pieces, changes_bits });
        let Some((graph, segments)) = made else { return };
        let graph = Arc::new(graph);
        let (mut variant, program) = Variant::of(graph, base.inputs, base.target, base.machine);
        variant.seconds = base.slower(variant.seconds);
        variant.segments = segments;
        let points = drawn_as(&program, &mut before);
        let points = points.into_iter().map(|sketch| variant.point(sketch)).collect();
        sink.add(variant, points);
    }
}

/// What is dropped beside the pieces: looked for with the first number of them, and the same with all others, since they
/// differ in sizes alone.
fn drawn_as(program: &ProgramProfile, before: &mut Option<(usize, Vec<Dropped>)>) -> Vec<Sketch> {
    let candidates = program.candidates.len();
    if before.as_ref().is_none_or(|(count, _)| *count != candidates) {
        let found = super::super::points(std::slice::from_ref(program));
        *before = Some((candidates, found.into_iter().map(|choice| choice.dropped).collect()));
    }
    let all = before.iter().flat_map(|(_, dropped)| dropped);
    all.filter_map(|dropped| sketched(program, dropped)).collect()
}

/// Points with segments in pieces.
pub fn points(own: &[Variant], base: &VariantBase, sink: &mut impl VariantSink) {
    let nodes = own.first().map_or(0, |variant| variant.graph.nodes.len());
    let tries = (NODES / nodes.max(1)).clamp(4, POINTS * GOALS.len());
    let some = tries.div_ceil(GOALS.len()).max(2);
    let step = (some * GOALS.len()).div_ceil(tries);
    for dropped in tried(base.dropped, some) {
        let variant = &own[dropped.order];
        let program = &base.programs[dropped.order];
        let Some(sketch) = program.sketch(&dropped.decisions) else { continue };
        let point = variant.point(sketch);
        let Ok(graph) = variant.graph(&point, base.target) else { continue };
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

/// Some of what is dropped, from nothing to the most; what waits in a file is moved into all memory that its point has, so no cut
/// makes that less.
fn tried(dropped: &[Dropped], some: usize) -> impl Iterator<Item = &Dropped> {
    let dropped: Vec<&Dropped> = dropped.iter().filter(|dropped| !dropped.spills()).collect();
    let last = dropped.len().saturating_sub(1);
    let mut taken: Vec<usize> =
        (0..some).map(|i| i * last / some.saturating_sub(1).max(1)).collect();
    taken.dedup();
    taken.into_iter().filter_map(move |i| dropped.get(i).copied())
}

/// The sketch of what is dropped.
fn sketched(program: &ProgramProfile, dropped: &Dropped) -> Option<Sketch> {
    let sketch = program.sketch(&dropped.decisions)?;
    match dropped.spills() {
        true => overlapped(program, &dropped.decisions, sketch.peak.bytes),
        false => Some(sketch),
    }
}

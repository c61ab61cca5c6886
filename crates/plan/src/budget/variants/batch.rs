//! Micro-batches: the batch in equal pieces, one after the other, so that what is saved for the backward pass is held for
//! one piece at a time. What is added up over the batch is added up over the pieces, in another order: the plan
//! lists it, and `exact` forbids it.
//!
//! Decision: `docs/decisions/micro-batches-are-a-loop.md`.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::looping::row_of;

use super::super::choose::Dropped;
use super::super::draw::Sketch;
use super::super::pieces::PieceOf;
use super::super::pieces::build::{InPieces, body_specs, in_pieces};
use super::super::pieces::parts::{BatchSplit, batches};
use super::super::sketch::{ProgramProfile, RematDecision};
use super::{FrontierPoint, Variant, VariantBase, VariantSink, VariantSummary, Within};
use crate::order;
use crate::order::pressure::Pressure;

/// Numbers of pieces that are tried at most; fewer of a large graph.
const MOST: usize = 12;
const NODES: usize = 10_000;
/// Points of a body that are tried with every number of pieces: all of a small one's, a few of a large one's.
const POINTS: usize = 6;
const SMALL: usize = 500;

/// The graph with its batch in pieces, for several numbers of them.
pub fn variants(graph: &Arc<Graph>, base: &VariantBase, sink: &mut impl VariantSink) {
    for (len, batch) in batches(graph) {
        let numbers = numbers(len, (NODES / graph.nodes.len().max(1)).clamp(3, MOST));
        let mut shared: Option<(usize, Vec<Dropped>)> = None;
        let mut any = false;
        let batch: Vec<(ValueId, usize)> = batch.into_iter().map(|id| (id, 0)).collect();
        for pieces in numbers {
            let split = PieceOf::equal(len, pieces);
            let Some(parts) = split.and_then(|piece| BatchSplit::of(graph, &batch, piece)) else {
                continue;
            };
            let Ok(made) = in_pieces(graph, &parts, None) else { continue };
            if let Ok((variant, points)) = variant(made, base, pieces, &mut shared) {
                sink.add(variant, points);
                any = true;
            }
        }
        if any {
            break; // a batch within a batch gains nothing more
        }
    }
}

/// Divisors of a length, from 2 on: all, or a few at about even ratios.
fn numbers(len: usize, most: usize) -> Vec<usize> {
    let all: Vec<usize> = (2..=len.min(4096)).filter(|n| len.is_multiple_of(*n)).collect();
    let mut some: Vec<usize> = (0..most)
        .filter_map(|i| {
            // The first three are the cheapest; beyond them ever larger steps.
            let at = if i < 3 {
                i
            } else {
                3 + (i - 3) * all.len().saturating_sub(3) / (most - 3).max(1)
            };
            all.get(at).copied()
        })
        .collect();
    some.dedup();
    some
}

fn variant(
    made: InPieces,
    base: &VariantBase,
    pieces: usize,
    shared: &mut Option<(usize, Vec<Dropped>)>,
) -> Result<(Variant, Vec<FrontierPoint>)> {
    let InPieces { mut graph, node } = made;
    let specs = body_specs(&graph.nodes[node])?;
    let body = order::low_peak(&graph.nodes[node].regions[0], &specs, base.target);
    // Held once: it is most of the graph.
    graph.nodes[node].regions = vec![body.clone()];
    let pressure = Pressure::of(&body, &specs, base.target);
    // Nothing waits in a file inside of a loop.
    let machine = base.machine.without_disk();
    let program = ProgramProfile::of(&body, pressure.clone(), &machine);
    let sketches = sketches(&program, shared);
    let iteration = program.seconds();
    let (mut variant, outer) = Variant::of(Arc::new(graph), base.inputs, base.target, &machine);
    let own = machine.node(&variant.graph, &variant.graph.nodes[node]);
    variant.seconds = base.slower(variant.seconds + pieces as f64 * iteration - own);
    variant.used = VariantSummary { micro_batches: Some(pieces), ..variant.used };
    let runs = outer
        .sketch(&vec![RematDecision::Keep; outer.candidates.len()])
        .map(|s| s.runs)
        .unwrap_or_default();
    let order: Vec<u32> = (0..variant.graph.nodes.len() as u32).collect();
    let mut points = Vec::new();
    let drawn = drawn(&variant, node);
    for sketch in sketches {
        variant.pressure.nodes[node].scratch = sketch.peak.bytes + drawn;
        points.push(FrontierPoint {
            ahead: tonnage_core::Bytes::ZERO,
            runs: runs.clone(),
            cut: None,
            seconds: variant.seconds + pieces as f64 * sketch.seconds,
            peak: variant.pressure.peak(&order).bytes,
            within: sketch.runs,
        });
    }
    variant.within = Some(Within { node, body, pressure });
    Ok((variant, points))
}

/// What is dropped in the body: looked for with the first number of pieces, and the same with all others, since they
/// differ in sizes alone.
fn sketches(program: &ProgramProfile, shared: &mut Option<(usize, Vec<Dropped>)>) -> Vec<Sketch> {
    let (candidates, found) = shared.get_or_insert_with(|| {
        let found = super::super::points(std::slice::from_ref(program));
        (program.candidates.len(), found.into_iter().map(|choice| choice.dropped).collect())
    });
    let step = match program.pressure.nodes.len() < SMALL {
        true => 1,
        false => found.len().div_ceil(POINTS).max(1),
    };
    let last = found.last().filter(|_| found.len() > 1);
    let nothing = vec![RematDecision::Keep; program.candidates.len()];
    let tried = found.iter().step_by(step).chain(last).map(|dropped| &dropped.decisions);
    tried
        .filter(|_| *candidates == program.candidates.len())
        .chain([&nothing])
        .filter_map(|decisions| program.sketch(decisions))
        .collect()
}

/// Bytes of the pieces that each iteration computes because the whole is a recipe.
fn drawn(variant: &Variant, node: usize) -> u64 {
    let node = &variant.graph.nodes[node];
    let Attrs::Loop(spec) = &node.attrs else { return 0 };
    let is_recipe = |id: &&ValueId| {
        let root = variant.pressure.root[id.index()] as usize;
        variant.pressure.size[root] == 0
    };
    let rows = node.inputs[spec.sliced_inputs()].iter().filter(is_recipe);
    rows.filter_map(|id| row_of(variant.graph.ty(*id))?.bytes(node.op.name).ok())
        .map(|bytes| bytes.rounded().get())
        .sum()
}

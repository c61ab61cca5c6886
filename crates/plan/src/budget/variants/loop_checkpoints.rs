//! More or fewer states for the gradients of loops: more take memory, fewer recompute more iterations. The bits stay the
//! same. A number that the user set by hand is kept.
//!
//! Decision: `docs/decisions/default-plan.md`.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node};

use super::super::choose::Dropped;
use super::super::cost::Machine;
use super::super::draw::Sketch;
use super::super::overlap::overlapped;
use super::super::sketch::{DropCandidate, ProgramProfile, RematDecision};
use super::{FrontierPoint, Search, Variant, VariantBase, VariantSink, VariantSummary};
use crate::loop_checkpoints::{LoopCheckpoints, loop_checkpoints, with_max_checkpoints};

/// Steps in which the number of checkpoints is doubled or halved: small ones of a small graph.
const STEPS: [i32; 2] = [2, 4];
const SMALL: usize = 500;
/// Points of the graph as it is that are tried with every number of checkpoints.
const POINTS: usize = 8;
/// Iterations that are assumed where only the data know how many there are, and no bound is set.
const ITERATIONS: u64 = 256;

/// The graph, in each of its orders, with every other number of checkpoints that is worth a look.
pub fn variants(own: &[Variant], base: &VariantBase, sink: &mut impl VariantSink) {
    for (order, variant) in own.iter().enumerate() {
        let tried = tried(base, order);
        if tried.is_empty() {
            continue;
        }
        let mut free = free(&variant.graph);
        if base.search == Search::Default {
            free.retain(|checkpoints| checkpoints.iterations.is_some());
        }
        for max_checkpoints in numbers(&variant.graph, &free) {
            if let Some((variant, points)) =
                with(&variant.graph, base, &free, &max_checkpoints, (order, &tried))
            {
                sink.add(variant, points);
            }
        }
    }
}

/// Gradients of loops whose number of states is the planner's to choose.
fn free(graph: &Graph) -> Vec<LoopCheckpoints> {
    let all = loop_checkpoints(graph).into_iter();
    all.filter(|checkpoints| !is_by_hand(&graph.nodes[checkpoints.node])).collect()
}

/// Numbers of checkpoints for each of them, but for those that they have.
fn numbers(graph: &Graph, free: &[LoopCheckpoints]) -> Vec<Vec<u64>> {
    let most = free.iter().map(|checkpoints| iterations(graph, checkpoints)).max().unwrap_or(0);
    let Some(first) = free.iter().map(|checkpoints| checkpoints.max_checkpoints).max() else {
        return Vec::new();
    };
    let steps = STEPS[usize::from(graph.nodes.len() < SMALL)];
    let doublings = i32::try_from(most.max(first).ilog2() + 1).unwrap_or(64) * steps;
    let of = |step: i32| -> Vec<u64> {
        let factor = (f64::from(step) / f64::from(steps)).exp2();
        let max_checkpoints = free.iter().map(|checkpoints| {
            // With a checkpoint for every state but the last nothing is recomputed.
            let most = iterations(graph, checkpoints).saturating_sub(1).max(1);
            (((checkpoints.max_checkpoints as f64) * factor).round() as u64).clamp(1, most)
        });
        max_checkpoints.collect()
    };
    let as_it_is: Vec<u64> = free.iter().map(|checkpoints| checkpoints.max_checkpoints).collect();
    let mut all: Vec<Vec<u64>> = (-doublings..=doublings).map(of).collect();
    all.dedup();
    all.retain(|max_checkpoints| *max_checkpoints != as_it_is);
    all
}

/// Some of what is dropped in the graph as it is, in one of its orders.
fn tried<'a>(base: &VariantBase<'a>, order: usize) -> Vec<&'a Dropped> {
    let all: Vec<&Dropped> = base.dropped.iter().filter(|d| d.order == order).collect();
    let step = all.len().div_ceil(POINTS).max(1);
    let last = all.last().copied().filter(|_| all.len() > 1);
    all.iter().copied().step_by(step).chain(last).collect()
}

fn with(
    graph: &Arc<Graph>,
    base: &VariantBase,
    free: &[LoopCheckpoints],
    max_checkpoints: &[u64],
    (order, tried): (usize, &[&Dropped]),
) -> Option<(Variant, Vec<FrontierPoint>)> {
    let mut changed = graph.clone();
    for (checkpoints, max_checkpoints) in free.iter().zip(max_checkpoints) {
        changed = with_max_checkpoints(
            &changed,
            checkpoints.node,
            usize::try_from(*max_checkpoints).ok()?,
        )
        .ok()?;
    }
    let (mut variant, program) = Variant::of(changed, base.inputs, base.target, base.machine);
    variant.used =
        VariantSummary { max_checkpoints: Some(max_checkpoints.iter().sum()), ..variant.used };
    let own = &base.programs[order];
    let points = tried.iter().filter_map(|dropped| same(own, &program, dropped));
    let points = points.map(|sketch| variant.point(sketch)).collect();
    Some((variant, points))
}

/// What is dropped in one program, dropped in another whose values are the same but for their sizes: what is too small
/// there to be worth it, or cannot be, is kept.
fn same(from: &ProgramProfile, to: &ProgramProfile, dropped: &Dropped) -> Option<Sketch> {
    let decisions: HashMap<u32, RematDecision> = from
        .candidates
        .iter()
        .zip(&dropped.decisions)
        .map(|(c, decision)| (c.root, *decision))
        .collect();
    let decision = |c: &DropCandidate| match decisions.get(&c.root) {
        Some(RematDecision::Recompute) if c.can_recompute() => RematDecision::Recompute,
        Some(RematDecision::Spill) if c.can_spill() => RematDecision::Spill,
        _ => RematDecision::Keep,
    };
    let decisions: Vec<RematDecision> = to.candidates.iter().map(decision).collect();
    let sketch = to.sketch(&decisions)?;
    match decisions.contains(&RematDecision::Spill) {
        true => overlapped(to, &decisions, sketch.peak.bytes),
        false => Some(sketch),
    }
}

/// Whether the user said how many states there are.
fn is_by_hand(node: &Node) -> bool {
    matches!(&node.attrs, Attrs::LoopGrad(spec) if spec.of.max_checkpoints.is_some())
}

/// Iterations of a loop; a guess where only the data know.
fn iterations(graph: &Graph, checkpoints: &LoopCheckpoints) -> u64 {
    use tonnage_core::looping::Iterations;
    let most = match &graph.nodes[checkpoints.node].attrs {
        Attrs::LoopGrad(spec) => match spec.of.iterations {
            Iterations::While { most } => most,
            Iterations::Times(_) => None,
        },
        _ => None,
    };
    checkpoints.iterations.or(most).unwrap_or(ITERATIONS)
}

/// Iterations that all gradients of loops recompute; `None` where only the data know.
pub fn recomputed_iterations(graph: &Graph) -> Option<u64> {
    loop_checkpoints(graph)
        .iter()
        .map(|checkpoints| checkpoints.recomputed_iterations(checkpoints.max_checkpoints))
        .sum()
}

/// Seconds by which the gradients of loops differ from one more run of every iteration, which is what their rows count.
pub fn correction(graph: &Graph, machine: &Machine) -> f64 {
    let of = |checkpoints: &LoopCheckpoints| {
        let node = &graph.nodes[checkpoints.node];
        let Attrs::LoopGrad(spec) = &node.attrs else { return 0.0 };
        let Some((_, body)) = spec.of.regions(&node.regions) else { return 0.0 };
        let iteration = machine.graph(body);
        let iterations = iterations(graph, checkpoints);
        let recomputed_iterations =
            crate::schedule::revolve::recomputed(iterations, checkpoints.max_checkpoints);
        iteration * (recomputed_iterations as f64 - iterations as f64)
    };
    loop_checkpoints(graph).iter().map(of).sum()
}

//! More or fewer states for the gradients of loops: more take memory, fewer run more rounds again. The bits stay the
//! same. A number that the user set by hand is kept.
//!
//! Decision: `docs/decisions/unlimited-is-the-fastest.md`.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node};

use super::super::choose::Dropped;
use super::super::cost::Machine;
use super::super::draw::Sketch;
use super::super::overlap::overlapped;
use super::super::sketch::{Candidate, Fate, Program};
use super::{Base, Rung, Sink, Used, Variant};
use crate::slots::{KeptStates, kept_states, with_slots};

/// Steps in which the number of slots is doubled or halved: small ones of a small graph.
const STEPS: [i32; 2] = [2, 4];
const SMALL: usize = 500;
/// Rungs of the graph as it is that are tried with every number of slots.
const RUNGS: usize = 8;
/// Rounds that are assumed where only the data know how many there are, and no bound is set.
const ROUNDS: u64 = 256;

/// The graph, in each of its orders, with every other number of slots that is worth a look.
pub fn variants(own: &[Variant], base: &Base, sink: &mut impl Sink) {
    for (order, variant) in own.iter().enumerate() {
        let tried = tried(base, order);
        if tried.is_empty() {
            continue;
        }
        let free = free(&variant.graph);
        for slots in numbers(&variant.graph, &free) {
            if let Some((variant, rungs)) =
                with(&variant.graph, base, &free, &slots, (order, &tried))
            {
                sink.add(variant, rungs);
            }
        }
    }
}

/// Gradients of loops whose number of states is the planner's to choose.
fn free(graph: &Graph) -> Vec<KeptStates> {
    let all = kept_states(graph).into_iter();
    all.filter(|kept| !is_by_hand(&graph.nodes[kept.node])).collect()
}

/// Numbers of slots for each of them, but for those that they have.
fn numbers(graph: &Graph, free: &[KeptStates]) -> Vec<Vec<u64>> {
    let most = free.iter().map(|kept| rounds(graph, kept)).max().unwrap_or(0);
    let Some(first) = free.iter().map(|kept| kept.slots).max() else { return Vec::new() };
    let steps = STEPS[usize::from(graph.nodes.len() < SMALL)];
    let doublings = i32::try_from(most.max(first).ilog2() + 1).unwrap_or(64) * steps;
    let of = |step: i32| -> Vec<u64> {
        let factor = (f64::from(step) / f64::from(steps)).exp2();
        let slots = free.iter().map(|kept| {
            // With a slot for every state but the last nothing is run again.
            let most = rounds(graph, kept).saturating_sub(1).max(1);
            (((kept.slots as f64) * factor).round() as u64).clamp(1, most)
        });
        slots.collect()
    };
    let as_it_is: Vec<u64> = free.iter().map(|kept| kept.slots).collect();
    let mut all: Vec<Vec<u64>> = (-doublings..=doublings).map(of).collect();
    all.dedup();
    all.retain(|slots| *slots != as_it_is);
    all
}

/// Some of what is dropped in the graph as it is, in one of its orders.
fn tried<'a>(base: &Base<'a>, order: usize) -> Vec<&'a Dropped> {
    let all: Vec<&Dropped> = base.dropped.iter().filter(|d| d.order == order).collect();
    let step = all.len().div_ceil(RUNGS).max(1);
    let last = all.last().copied().filter(|_| all.len() > 1);
    all.iter().copied().step_by(step).chain(last).collect()
}

fn with(
    graph: &Arc<Graph>,
    base: &Base,
    free: &[KeptStates],
    slots: &[u64],
    (order, tried): (usize, &[&Dropped]),
) -> Option<(Variant, Vec<Rung>)> {
    let mut changed = graph.clone();
    for (kept, slots) in free.iter().zip(slots) {
        changed = with_slots(&changed, kept.node, usize::try_from(*slots).ok()?).ok()?;
    }
    let (mut variant, program) = Variant::of(changed, base.inputs, base.threads, base.machine);
    variant.used = Used { slots: Some(slots.iter().sum()), ..variant.used };
    let own = &base.programs[order];
    let rungs = tried.iter().filter_map(|dropped| same(own, &program, dropped));
    let rungs = rungs.map(|sketch| variant.rung(sketch)).collect();
    Some((variant, rungs))
}

/// What is dropped in one program, dropped in another whose values are the same but for their sizes: what is too small
/// there to be worth it, or cannot be, is kept.
fn same(from: &Program, to: &Program, dropped: &Dropped) -> Option<Sketch> {
    let fates: HashMap<u32, Fate> =
        from.candidates.iter().zip(&dropped.fates).map(|(c, fate)| (c.root, *fate)).collect();
    let fate = |c: &Candidate| match fates.get(&c.root) {
        Some(Fate::Again) if c.can_again() => Fate::Again,
        Some(Fate::Spill) if c.can_spill() => Fate::Spill,
        _ => Fate::Keep,
    };
    let fates: Vec<Fate> = to.candidates.iter().map(fate).collect();
    let sketch = to.sketch(&fates)?;
    match fates.contains(&Fate::Spill) {
        true => overlapped(to, &fates, sketch.peak.bytes),
        false => Some(sketch),
    }
}

/// Whether the user said how many states there are.
fn is_by_hand(node: &Node) -> bool {
    matches!(&node.attrs, Attrs::LoopGrad(spec) if spec.of.slots.is_some())
}

/// Rounds of a loop; a guess where only the data know.
fn rounds(graph: &Graph, kept: &KeptStates) -> u64 {
    use tonnage_core::looping::Rounds;
    let most = match &graph.nodes[kept.node].attrs {
        Attrs::LoopGrad(spec) => match spec.of.rounds {
            Rounds::While { most } => most,
            Rounds::Times(_) => None,
        },
        _ => None,
    };
    kept.rounds.or(most).unwrap_or(ROUNDS)
}

/// Rounds that all gradients of loops run again; `None` where only the data know.
pub fn again(graph: &Graph) -> Option<u64> {
    kept_states(graph).iter().map(|kept| kept.again(kept.slots)).sum()
}

/// Seconds by which the gradients of loops differ from one more run of every round, which is what their rows count.
pub fn correction(graph: &Graph, machine: &Machine) -> f64 {
    let of = |kept: &KeptStates| {
        let node = &graph.nodes[kept.node];
        let Attrs::LoopGrad(spec) = &node.attrs else { return 0.0 };
        let Some((_, body)) = spec.of.regions(&node.regions) else { return 0.0 };
        let round = machine.graph(body);
        let rounds = rounds(graph, kept);
        let again = crate::schedule::revolve::again(rounds, kept.slots);
        round * (again as f64 - rounds as f64)
    };
    kept_states(graph).iter().map(of).sum()
}

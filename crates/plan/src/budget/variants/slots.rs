//! More or fewer states for the gradients of loops: more take memory, fewer run more rounds again. The bits stay the
//! same. A number that the user set by hand is kept.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node};

use super::super::choose::Choice;
use super::super::cost::Machine;
use super::super::sketch::Program;
use super::{Base, Rung, Used, Variant};
use crate::slots::{KeptStates, kept_states, with_slots};

/// Steps in which the number of slots is doubled or halved.
const STEPS: i32 = 2;
/// Rungs of the graph as it is that are tried with every number of slots.
const RUNGS: usize = 8;
/// Rounds that are assumed where only the data know how many there are, and no bound is set.
const ROUNDS: u64 = 256;

/// The graph with every other number of slots that is worth a look.
pub fn variants(graph: &Arc<Graph>, base: &Base) -> Vec<(Variant, Vec<Rung>)> {
    let free: Vec<KeptStates> = kept_states(graph)
        .into_iter()
        .filter(|kept| !is_by_hand(&graph.nodes[kept.node]))
        .collect();
    let most = free.iter().map(|kept| rounds(graph, kept)).max().unwrap_or(0);
    let Some(first) = free.iter().map(|kept| kept.slots).max() else { return Vec::new() };
    let mut made = Vec::new();
    let mut before = Vec::new();
    let doublings = i32::try_from(most.max(first).ilog2() + 1).unwrap_or(64) * STEPS;
    for step in (-doublings..=doublings).filter(|step| *step != 0) {
        let factor = (f64::from(step) / f64::from(STEPS)).exp2();
        let slots: Vec<u64> = free
            .iter()
            .map(|kept| {
                // With a slot for every state but the last nothing is run again.
                let most = rounds(graph, kept).saturating_sub(1).max(1);
                (((kept.slots as f64) * factor).round() as u64).clamp(1, most)
            })
            .collect();
        let as_it_is = free.iter().zip(&slots).all(|(kept, slots)| kept.slots == *slots);
        if slots == before || as_it_is {
            continue;
        }
        before.clone_from(&slots);
        if let Some(variant) = variant(graph, base, &free, &slots) {
            made.push(variant);
        }
    }
    made
}

fn variant(
    graph: &Arc<Graph>,
    base: &Base,
    free: &[KeptStates],
    slots: &[u64],
) -> Option<(Variant, Vec<Rung>)> {
    let mut changed = graph.clone();
    for (kept, slots) in free.iter().zip(slots) {
        changed = with_slots(&changed, kept.node, usize::try_from(*slots).ok()?).ok()?;
    }
    let (mut variant, program) = Variant::of(changed, base.inputs, base.threads, base.machine);
    variant.used = Used { slots: Some(slots.iter().sum()), ..variant.used };
    let rungs = variant.rungs(&choices(base, &program));
    Some((variant, rungs))
}

/// What was dropped in the graph as it is, dropped here too: its values are the same but for their sizes.
fn choices(base: &Base, program: &Program) -> Vec<Choice> {
    let step = base.choices.len().div_ceil(RUNGS).max(1);
    let last = base.choices.last().filter(|_| base.choices.len() > 1);
    let tried = base.choices.iter().step_by(step).chain(last);
    tried
        .filter(|rung| program.candidates.len() == base.candidates && !rung.spills())
        .filter_map(|rung| {
            let sketch = program.sketch(&rung.fates)?;
            Some(Choice { order: 0, fates: rung.fates.clone(), sketch })
        })
        .collect()
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
        let round: f64 = body.nodes.iter().map(|n| machine.node(body, n)).sum();
        let rounds = rounds(graph, kept);
        let again = crate::schedule::revolve::again(rounds, kept.slots);
        round * (again as f64 - rounds as f64)
    };
    kept_states(graph).iter().map(of).sum()
}

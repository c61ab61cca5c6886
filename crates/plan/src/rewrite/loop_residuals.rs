//! The expensive residuals of a loop's iterations, saved for its gradient.
//!
//! The backward step of an iteration starts from the state before it and recomputes what the iteration computed in between.
//! Here the loop hands over a row of each such value that is expensive, a product say, and of the state; the backward pass is
//! then a loop like any other, over those rows in the other direction. That takes the most memory and the least time,
//! so only a budget with room for it asks for this graph. The bits stay: both compute the same from the same.
//!
//! Decision: `docs/decisions/loop-residuals.md`.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_core::looping::{GradInputs, Loop, LoopGrad, stacked};
use tonnage_core::row::Remat;
use tonnage_ops::control::while_loop::WHILE_LOOP;

use super::checked;
use super::cse::same_regions;
use crate::loop_checkpoints::origin;
use crate::sort;

/// The graph with residuals of its loops saved where something expensive is recomputed otherwise: all of them, and then half as
/// many again and again, those that save the most work a byte. A loop whose states were counted by hand, or wait in a
/// file, stays as it is.
pub(crate) fn save_residuals(graph: &Graph) -> Result<Vec<Graph>> {
    let (mut all, mut part) = (Vec::new(), usize::MAX);
    while part > 0 {
        let (mut made, mut most) = (graph.clone(), 0);
        for backward in 0..made.nodes.len() {
            let Some(pair) = LoopWithGrad::of(&made, backward) else { continue };
            if let Some(cut) = ResidualCut::of(&made, &pair, part) {
                most = most.max(cut.saved.len());
                pair.apply(&mut made, &cut)?;
            }
        }
        if most > 0 {
            all.push(checked(made)?);
        }
        part = most / 2;
    }
    Ok(all)
}

/// A loop and its only gradient.
struct LoopWithGrad {
    forward: usize,
    backward: usize,
    loops: Loop,
    spec: LoopGrad,
    at: GradInputs,
}

impl LoopWithGrad {
    fn of(graph: &Graph, backward: usize) -> Option<LoopWithGrad> {
        let node = &graph.nodes[backward];
        let Attrs::LoopGrad(spec) = &node.attrs else { return None };
        let free = spec.handed && !spec.of.spills && spec.of.max_checkpoints.is_none();
        let at = spec.inputs(node.inputs.len()).filter(|_| free)?;
        spec.of.known_iterations().filter(|iterations| *iterations > 1)?;
        let first = origin(graph, *node.inputs.get(at.checkpoints.start)?);
        let forward = graph.nodes.iter().position(|n| n.aux && n.outputs.contains(&first))?;
        let Attrs::Loop(loops) = &graph.nodes[forward].attrs else { return None };
        let alike = loops.carried == spec.of.carried
            && loops.iterations == spec.of.iterations
            && loops.reverse == spec.of.reverse
            && loops.updates.is_empty();
        let readers = graph.nodes.iter().filter(|n| takes_states_of(graph, n, first)).count();
        let (loops, spec) = ((**loops).clone(), (**spec).clone());
        (alike && readers == 1).then_some(LoopWithGrad { forward, backward, loops, spec, at })
    }

    /// For each value that a step back is given, what it is in the body; `None` for what comes from behind.
    fn given(&self, graph: &Graph) -> Vec<Option<ValueId>> {
        let (forward, backward) = (&graph.nodes[self.forward], &graph.nodes[self.backward]);
        let (body, step) = (&forward.regions[0], &backward.regions[backward.regions.len() - 1]);
        let carried = self.loops.carried;
        // Rows are rows of the same value, and what is only read is the same value.
        let found = |i: usize, among: std::ops::Range<usize>| {
            let whose = origin(graph, backward.inputs[i]);
            let mut inputs = forward.inputs[among.clone()].iter();
            Some(body.inputs[among.start + inputs.position(|id| origin(graph, *id) == whose)?])
        };
        let sliced = self.spec.of.sliced_inputs();
        let of = |i: usize| match i {
            i if i < carried => Some(body.inputs[i]),
            i if i < sliced.end => found(i, self.loops.sliced_inputs()),
            i if i < self.at.own.end => {
                found(i, self.loops.sliced_inputs().end..forward.inputs.len())
            }
            i if i < self.at.own.end + carried => Some(body.outputs[i - self.at.own.end]),
            _ => None,
        };
        (0..step.inputs.len()).map(of).collect()
    }

    /// Writes both loops anew.
    fn apply(&self, graph: &mut Graph, cut: &ResidualCut) -> Result<()> {
        let Some(iterations) =
            self.spec.of.known_iterations().and_then(|n| usize::try_from(n).ok())
        else {
            return Err(ErrorKind::BadGraph { what: "a loop of unknown length".into() }.into());
        };
        let carried = self.loops.carried;
        // There: a row of each state and of each value more.
        let mut body = (*graph.nodes[self.forward].regions[0]).clone();
        let states = cut.before.iter().map(|j| body.inputs[*j]);
        let rows: Vec<ValueId> = states.chain(cut.saved.iter().map(|(_, inner)| *inner)).collect();
        body.outputs.extend(&rows);
        let like = graph.nodes[self.forward].outputs[carried + self.loops.stacked];
        let saved: Vec<ValueId> = rows
            .iter()
            .map(|id| {
                let ty = stacked(body.ty(*id), iterations.into());
                let info = ValueInfo { ty, ..graph.value(like).clone() };
                graph.add_value(info)
            })
            .collect();
        let more = self.loops.stacked + rows.len();
        let node = &mut graph.nodes[self.forward];
        node.attrs = Attrs::Loop(Box::new(Loop { stacked: more, ..self.loops.clone() }));
        node.aux = false;
        node.outputs.truncate(carried + self.loops.stacked);
        node.outputs.extend(&saved);
        node.regions = vec![Arc::new(body)];
        self.rewrite_backward(graph, cut, &saved)
    }

    /// The backward pass as a loop. What it carries: gradients and sums, and the state behind each iteration, which is the state
    /// before the iteration that came last.
    fn rewrite_backward(
        &self,
        graph: &mut Graph,
        cut: &ResidualCut,
        saved: &[ValueId],
    ) -> Result<()> {
        let old = graph.nodes[self.backward].clone();
        let mut step = (*old.regions[old.regions.len() - 1]).clone();
        let given = step.inputs.clone();
        let (own, carried) = (self.at.own.end, self.loops.carried);
        step.nodes.retain(|n| !n.outputs.iter().any(|id| cut.saved.iter().any(|(k, _)| k == id)));
        let first_seed = own + carried;
        let first_backward = first_seed + self.spec.seeds;
        let rows = self.spec.of.sliced_inputs().chain(first_seed..first_backward);
        let rows: Vec<usize> = rows.filter(|i| cut.needs(given[*i])).collect();
        let reads = self.spec.of.sliced_inputs().end..own;
        let reads: Vec<usize> = reads.filter(|i| cut.needs(given[*i])).collect();
        // Where, among what the gradient took, each of what a step is given comes from.
        let outer = |i: usize| match i {
            i if i < own => old.inputs[i],
            i if i < first_seed => old.inputs[self.at.ends.start + i - own],
            i if i < first_backward => old.inputs[self.at.seeds.start + i - first_seed],
            i => old.inputs[self.at.back.start + i - first_backward],
        };
        let states = cut.after.iter().map(|j| own + j);
        let carries: Vec<usize> = (first_backward..given.len()).chain(states).collect();
        let inner = |all: &[usize]| all.iter().map(|i| given[*i]).collect::<Vec<_>>();
        let outers = |all: &[usize]| all.iter().map(|i| outer(*i)).collect::<Vec<_>>();
        let residuals = cut.saved.iter().map(|(id, _)| *id).collect();
        step.inputs =
            [inner(&carries), inner(&cut.before), residuals, inner(&rows), inner(&reads)].concat();
        let (backward, stacks) = step.outputs.split_at(self.spec.back);
        step.outputs = [backward.to_vec(), inner(&cut.after), stacks.to_vec()].concat();
        step.prune();
        let starts = cut.after.iter().map(|j| graph.value(outer(own + j)).clone());
        let starts: Vec<ValueInfo> = starts.collect();
        let ends: Vec<ValueId> = starts.into_iter().map(|info| graph.add_value(info)).collect();
        let spec = Loop {
            carried: carries.len(),
            sliced: cut.before.len() + cut.saved.len() + rows.len(),
            stacked: self.spec.stacked,
            reverse: !self.loops.reverse,
            ..self.loops.clone()
        };
        let (backward, stacks) = old.outputs.split_at(self.spec.back);
        let inputs = [outers(&carries), saved.to_vec(), outers(&rows), outers(&reads)].concat();
        let outputs = [backward.to_vec(), ends, stacks.to_vec()].concat();
        let attrs = Attrs::Loop(Box::new(spec));
        let regions = vec![Arc::new(step)];
        graph.nodes[self.backward] =
            Node { op: &WHILE_LOOP, attrs, inputs, outputs, aux: false, regions, ..old };
        Ok(())
    }
}

/// Whether a gradient starts from the states of the loop that made this.
fn takes_states_of(graph: &Graph, node: &Node, first: ValueId) -> bool {
    let Attrs::LoopGrad(spec) = &node.attrs else { return false };
    let at = spec.inputs(node.inputs.len()).filter(|_| spec.handed);
    let ids = at.and_then(|at| node.inputs.get(at.checkpoints));
    ids.is_some_and(|ids| ids.iter().any(|id| origin(graph, *id) == first))
}

/// Where a backward step is cut: what it takes from the loop instead of computing it.
struct ResidualCut {
    /// Expensive values: in the step, and in the body.
    saved: Vec<(ValueId, ValueId)>,
    /// Carried values whose state before an iteration is needed, and those whose state behind it is.
    before: Vec<usize>,
    after: Vec<usize>,
    /// Values of the step that are still needed.
    needed: Vec<bool>,
}

impl ResidualCut {
    /// With at most `most` expensive values; `None` where nothing expensive is recomputed.
    fn of(graph: &Graph, pair: &LoopWithGrad, most: usize) -> Option<ResidualCut> {
        let (forward, backward) = (&graph.nodes[pair.forward], &graph.nodes[pair.backward]);
        let (body, step) = (&forward.regions[0], backward.regions.last()?);
        let given = pair.given(graph);
        let same = matched(body, step, &given);
        let changes = changing(step, pair);
        let is_expensive = |node: &Node, wanted: &[ValueId]| {
            node.op.remat == Remat::Costly
                && wanted.first().is_some_and(|id| changes[id.index()])
                && wanted.iter().all(|id| same.contains_key(id))
        };
        let cut = ResidualCut::with(pair, step, &same, &is_expensive)?;
        if cut.saved.len() <= most {
            return Some(cut);
        }
        // Work that a byte saves.
        let worth = |id: &ValueId| {
            let node = step.nodes.iter().find(|node| node.outputs.contains(id))?;
            let bytes = step.ty(*id).bytes(node.op.name).ok()?;
            Some(step.with_call(node, node.op.cost).flops as f64 / bytes.get().max(1) as f64)
        };
        let mut best: Vec<ValueId> = cut.saved.iter().map(|(id, _)| *id).collect();
        sort::by(&mut best, |a, b| worth(b).unwrap_or(0.0).total_cmp(&worth(a).unwrap_or(0.0)));
        best.truncate(most);
        let saves = |node: &Node, wanted: &[ValueId]| {
            is_expensive(node, wanted) && wanted.iter().all(|id| best.contains(id))
        };
        ResidualCut::with(pair, step, &same, &saves)
    }

    /// With what is worth it among the values that are needed.
    fn with(
        pair: &LoopWithGrad,
        step: &Graph,
        same: &HashMap<ValueId, ValueId>,
        saves: &dyn Fn(&Node, &[ValueId]) -> bool,
    ) -> Option<ResidualCut> {
        let mut needed = vec![false; step.value_count()];
        step.outputs.iter().for_each(|id| needed[id.index()] = true);
        let mut saved = Vec::new();
        for node in step.nodes.iter().rev() {
            let wanted: Vec<ValueId> =
                node.outputs.iter().copied().filter(|id| needed[id.index()]).collect();
            if wanted.is_empty() && !node.has_effect() {
                continue;
            }
            match saves(node, &wanted) {
                true => saved.extend(wanted.iter().map(|id| (*id, same[id]))),
                false => node.inputs.iter().for_each(|id| needed[id.index()] = true),
            }
        }
        if saved.is_empty() {
            return None;
        }
        let own = pair.at.own.end;
        let states = 0..pair.loops.carried;
        let is_needed = |i: usize| needed[step.inputs[i].index()];
        let after: Vec<usize> = states.clone().filter(|j| is_needed(own + j)).collect();
        let before = states.filter(|j| is_needed(*j) || after.contains(j)).collect();
        Some(ResidualCut { saved, before, after, needed })
    }

    fn needs(&self, id: ValueId) -> bool {
        self.needed[id.index()]
    }
}

/// The values of a step back that an iteration of the loop computes too, each with what it is there.
fn matched(body: &Graph, step: &Graph, given: &[Option<ValueId>]) -> HashMap<ValueId, ValueId> {
    let mut same: HashMap<ValueId, ValueId> =
        step.inputs.iter().zip(given).filter_map(|(id, inner)| Some((*id, (*inner)?))).collect();
    let mut by_inputs: HashMap<&[ValueId], Vec<&Node>> = HashMap::new();
    for node in &body.nodes {
        by_inputs.entry(&node.inputs).or_default().push(node);
    }
    for node in &step.nodes {
        let inputs: Option<Vec<ValueId>> =
            node.inputs.iter().map(|id| same.get(id).copied()).collect();
        let alike = |other: &&&Node| {
            other.op == node.op
                && other.attrs == node.attrs
                && other.aux == node.aux
                && other.outputs.len() == node.outputs.len()
                && same_regions(other, node)
        };
        let of = inputs.as_deref().and_then(|ids| by_inputs.get(ids));
        if let Some(found) =
            of.and_then(|all| all.iter().find(alike)).filter(|_| !node.has_effect())
        {
            same.extend(node.outputs.iter().copied().zip(found.outputs.iter().copied()));
        }
    }
    same
}

/// Which values of a step differ from iteration to iteration: the others are the same in every row.
fn changing(step: &Graph, pair: &LoopWithGrad) -> Vec<bool> {
    let mut changes = vec![false; step.value_count()];
    let reads = pair.spec.of.sliced_inputs().end..pair.at.own.end;
    for (i, id) in step.inputs.iter().enumerate() {
        changes[id.index()] = !reads.contains(&i);
    }
    for node in &step.nodes {
        let any = node.inputs.iter().any(|id| changes[id.index()]);
        node.outputs.iter().for_each(|id| changes[id.index()] = any);
    }
    changes
}

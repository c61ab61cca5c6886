//! Loops and their gradients: bodies planned once, rows written where they stay, states checkpointed where the schedule
//! says. The executor follows what is written down here.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::looping::{GradInputs, Loop, LoopGrad};

use crate::loop_checkpoints::origin;
use crate::loops::{CheckpointPolicy, LoopGradPlan, LoopPlan, Sliced, StateFilePlan, StateSource};
use crate::place::{InputSpec, Planner};
use crate::plan::{Run, StepMemory};
use crate::region::{ScratchLayout, at_home, bad, read_spec, second};
use crate::schedule::{self, SPARE, revolve};
use crate::{copy, rows};

/// A loop's results start as its initial values: in their bytes where those are free, copied otherwise.
fn start(planner: &mut Planner, node: &Node, input: usize, output: ValueId) -> Result<()> {
    let id = node.inputs[input];
    if planner.can_take_over(node, input, planner.graph().ty(output)) {
        return planner.alias(output, id);
    }
    copy::value(planner, node, id, output)
}

/// A gradient checkpoints states where a loop makes its extra outputs.
fn checkpoint_policy(spec: &Loop) -> CheckpointPolicy {
    match spec.known_iterations() {
        Some(iterations) => CheckpointPolicy::These(revolve::checkpointed(
            iterations,
            spec.max_checkpoints(Some(iterations)),
        )),
        None => CheckpointPolicy::Online { max_checkpoints: spec.max_checkpoints(None) },
    }
}

/// Whether a gradient in this graph takes the states of the loop that made this number of iterations.
fn has_backward(graph: &Graph, iterations: ValueId) -> bool {
    let takes = |n: &Node| iterations_of(n).is_some_and(|id| origin(graph, id) == iterations);
    graph.nodes.iter().any(takes)
}

/// The number of iterations that the gradient of a loop that spills is handed.
fn iterations_of(node: &Node) -> Option<ValueId> {
    let Attrs::LoopGrad(spec) = &node.attrs else { return None };
    let at = spec.inputs(node.inputs.len()).filter(|_| spec.of.spills)?;
    Some(node.inputs[at.iterations?])
}

/// The file of a loop's states.
fn state_file(node: &Node, spec: &Loop, name: ValueId) -> Result<StateFilePlan> {
    let Some((_, body)) = spec.regions(&node.regions) else { return Err(bad(node)) };
    let (mut state, mut parts) = (ScratchLayout::default(), Vec::new());
    for id in &body.inputs[..spec.carried] {
        parts.push(state.put(body.ty(*id).bytes(node.op.name)?));
    }
    let rows = spec.max_iterations().map(|n| n.saturating_sub(1));
    Ok(StateFilePlan { name, state: state.0, parts, rows })
}

/// A loop.
pub(crate) fn while_loop(planner: &mut Planner, node: &Node) -> Result<()> {
    let Attrs::Loop(spec) = &node.attrs else { return Err(bad(node)) };
    for (j, output) in node.outputs.iter().enumerate() {
        match j {
            j if spec.updates.contains(&j) => at_home(planner, node, node.inputs[j], *output)?,
            j if j < spec.carried => start(planner, node, j, *output)?,
            _ => planner.fresh(node, *output)?,
        }
    }
    let mut scratch_layout = ScratchLayout::default();
    let checkpoint_policy = match node.outputs.get(spec.carried + spec.stacked) {
        None => CheckpointPolicy::Nothing,
        Some(iterations) if spec.spills => match has_backward(planner.graph(), *iterations) {
            true => CheckpointPolicy::File(state_file(node, spec, *iterations)?),
            // A backward pass in another call recomputes the iterations.
            false => CheckpointPolicy::Nothing,
        },
        Some(_) => checkpoint_policy(spec),
    };
    let mut plan = loop_plan(planner, node, spec, None, checkpoint_policy, &mut scratch_layout)?;
    plan.inner = scratch_layout.put_pieces(work(&plan));
    let reads: SmallVec<[ValueId; 4]> =
        node.inputs[spec.carried..].iter().chain(&node.outputs).copied().collect();
    let writes = node.outputs.iter().copied().collect();
    let memory = match spec.updates.is_empty() {
        true => StepMemory::Allocates,
        false => StepMemory::Updates,
    };
    let scratch = scratch(planner, spec, scratch_layout);
    planner.push(node, Run::Loop(Box::new(plan)), memory, scratch, reads, writes);
    Ok(())
}

/// What the iterations work in: nothing where there are none. Where the data decide whether there are any, a run may
/// take less.
fn scratch(planner: &mut Planner, spec: &Loop, scratch_layout: ScratchLayout) -> Bytes {
    planner.may_take_less(spec.has_condition());
    match spec.known_iterations() {
        Some(0) => Bytes::ZERO,
        _ => scratch_layout.0,
    }
}

/// Condition and body; the carried values lie close together, each in bytes of its own. They are updated in
/// place, unless there is a backward step: then each state has bytes of its own, for it may be a checkpoint.
fn loop_plan(
    planner: &mut Planner,
    node: &Node,
    spec: &Loop,
    step: Option<&Graph>,
    checkpoint_policy: CheckpointPolicy,
    scratch_layout: &mut ScratchLayout,
) -> Result<LoopPlan> {
    let in_place = step.is_none();
    let Some((condition, body)) = spec.regions(&node.regions) else { return Err(bad(node)) };
    let op = node.op.name;
    let (mut sliced, mut row_specs) = (Vec::new(), Vec::new());
    for i in spec.sliced_inputs() {
        let id = node.inputs[i];
        let (ty, placed) = (planner.graph().ty(id), planner.place(id)?);
        let (row, input) = rows::sliced(op, ty, placed, scratch_layout)?;
        sliced.push(row);
        row_specs.push(input);
    }
    let first_read = spec.sliced_inputs().end;
    let mut read = Vec::new();
    for i in first_read..body.inputs.len() {
        let mut uses: SmallVec<[(&Graph, ValueId); 3]> =
            SmallVec::from_iter([(&**body, body.inputs[i])]);
        uses.extend(condition.map(|g| (&**g, g.inputs[i])));
        uses.extend(step.map(|g| (g, g.inputs[i])));
        read.push(read_spec(planner, node, node.inputs[i], &uses)?);
    }
    let states = |graph: &Graph, donated: bool| -> Result<Vec<InputSpec>> {
        let carried = &graph.inputs[..spec.carried];
        carried.iter().map(|id| InputSpec::contiguous(graph.ty(*id), op, donated)).collect()
    };
    let test = match condition {
        Some(graph) => {
            let specs = [states(graph, false)?, read.clone()].concat();
            Some(planner.region(graph, &specs, &[])?)
        }
        None => None,
    };
    let specs = [states(body, in_place)?, row_specs, read].concat();
    let homes: Vec<Option<usize>> = match in_place {
        true => (0..spec.carried).map(Some).collect(),
        false => Vec::new(),
    };
    let body_plan = planner.region(body, &specs, &homes)?;
    let second = match in_place {
        true => second(&body_plan, body, spec.carried, op, scratch_layout)?,
        false => Vec::new(), // the gradient has whole states instead
    };
    let answer = scratch_layout.put(Bytes::new(test.is_some() as u64));
    Ok(LoopPlan {
        spec: spec.clone(),
        condition: test,
        body: body_plan,
        sliced,
        second,
        answer,
        inner: Bytes::ZERO, // the caller knows what else works there
        checkpoint_policy,
    })
}

/// What condition and body work in, one after the other.
fn work(plan: &LoopPlan) -> Bytes {
    plan.condition.as_ref().map_or(Bytes::ZERO, |test| test.arena).max(plan.body.arena)
}

/// The gradient of a loop.
pub(crate) fn while_grad(planner: &mut Planner, node: &Node) -> Result<()> {
    let Attrs::LoopGrad(spec) = &node.attrs else { return Err(bad(node)) };
    let Some(at) = spec.inputs(node.inputs.len()) else { return Err(bad(node)) };
    for (k, output) in node.outputs.iter().enumerate() {
        match k < spec.back {
            true => start(planner, node, at.back.start + k, *output)?,
            false => planner.fresh(node, *output)?,
        }
    }
    let mut scratch_layout = ScratchLayout::default();
    let state_sources = state_sources(planner, node, &at, &mut scratch_layout)?;
    let Some(step) = node.regions.last() else { return Err(bad(node)) };
    let checkpoint_policy =
        if spec.of.spills { CheckpointPolicy::Nothing } else { checkpoint_policy(&spec.of) };
    let mut forward =
        loop_plan(planner, node, &spec.of, Some(step), checkpoint_policy, &mut scratch_layout)?;
    let iterations = spec.of.known_iterations();
    let max_checkpoints = spec.of.max_checkpoints(iterations);
    let body = &forward.body.graph;
    // Without a loop in this graph that writes them, states are written by a run of its own.
    let name = iterations_of(node).map(|id| origin(planner.graph(), id));
    let is_maker = |n: &Node| name.is_some_and(|id| n.aux && n.outputs.contains(&id));
    let written = planner.graph().nodes.iter().any(is_maker);
    let file = match spec.of.spills {
        true => Some(state_file(node, &spec.of, name.unwrap_or(node.inputs[0]))?),
        false => None,
    };
    // Where the checkpoints are, and room for states on their way.
    let (mut checkpoints, mut writes) = (Vec::new(), SmallVec::new());
    let rows = match spec.of.spills {
        true => 0,
        false => spec.of.checkpoint_rows().known().ok_or_else(|| bad(node))?,
    };
    for j in 0..if spec.of.spills { 0 } else { spec.of.carried } {
        let ty = spec.of.checkpoint(body.ty(body.inputs[j]));
        let input = at.checkpoints.start + j;
        let taken = spec.handed && planner.can_take_over(node, input, &ty);
        if taken {
            writes.push(node.inputs[input]);
            checkpoints.push(None);
        } else {
            checkpoints.push(Some(scratch_layout.put(ty.bytes(node.op.name)?)));
        }
    }
    let spare = match iterations {
        // The state before an iteration and the one behind it; a run that makes the last one too goes between two.
        _ if spec.of.spills => {
            let states = iterations.map_or(2, |n| n.saturating_sub(u64::from(spec.handed)));
            states.min(2) as usize
        }
        // The forward run goes between two, where states are not handed over.
        Some(n) if !spec.handed && rows as u64 + 1 < n => {
            schedule::spare(n, max_checkpoints).max(2)
        }
        Some(n) => schedule::spare(n, max_checkpoints),
        None => SPARE,
    };
    let (mut state, mut parts) = (ScratchLayout::default(), Vec::new());
    for id in &body.inputs[..spec.of.carried] {
        parts.push(state.put(body.ty(*id).bytes(node.op.name)?));
    }
    let all = state.0.checked_mul(spare as u64).ok_or_else(|| bad(node))?;
    let spare_at = scratch_layout.put_pieces(all);
    let graph = step;
    let (step, seeds) = step_plan(planner, node, spec, &at, &forward, &mut scratch_layout)?;
    let second = second(&step, graph, spec.back, node.op.name, &mut scratch_layout)?;
    let recomputed_iterations = match (spec.of.spills, iterations) {
        (true, _) if written => Some(0),
        (true, n) => n.map(|n| n.saturating_sub(u64::from(spec.handed))),
        (false, n) => n.map(|n| {
            let sweep = if spec.handed { 0 } else { n };
            revolve::recomputed(n, max_checkpoints).saturating_add(sweep)
        }),
    };
    // An iteration that is recomputed and a backward step take turns in the same bytes.
    forward.inner = match recomputed_iterations {
        Some(0) => scratch_layout.put_pieces(step.arena),
        _ => scratch_layout.put_pieces(step.arena.max(work(&forward))),
    };
    let inner = forward.inner;
    let plan = LoopGradPlan {
        spec: (**spec).clone(),
        forward,
        step,
        seeds,
        state_sources,
        max_checkpoints,
        rows,
        checkpoints,
        spare,
        spare_at,
        state: state.0,
        parts,
        second,
        inner,
        recomputed_iterations,
        file,
        written,
    };
    let reads: SmallVec<[ValueId; 4]> = node.inputs.iter().chain(&node.outputs).copied().collect();
    writes.extend(node.outputs.iter().copied());
    let scratch = match spec.handed {
        true => scratch(planner, &spec.of, scratch_layout),
        false => scratch_layout.0,
    };
    planner.may_take_less(!spec.handed && (spec.of.has_condition() || iterations == Some(0)));
    let run = Run::LoopGrad(Box::new(plan));
    planner.push(node, run, StepMemory::Allocates, scratch, reads, writes);
    Ok(())
}

/// Where the first and the last state are read: in their own bytes where those lie close together.
fn state_sources(
    planner: &mut Planner,
    node: &Node,
    at: &GradInputs,
    scratch_layout: &mut ScratchLayout,
) -> Result<[Vec<StateSource>; 2]> {
    let Attrs::LoopGrad(spec) = &node.attrs else { return Err(bad(node)) };
    let mut place = |input: usize| -> Result<StateSource> {
        let id = node.inputs[input];
        planner.materialize(node, id)?;
        let layout = &planner.place(id)?.layout;
        match layout.is_contiguous() {
            true => Ok(StateSource::There { input, first: layout.offset }),
            false => {
                let bytes = planner.graph().ty(id).bytes(node.op.name)?;
                Ok(StateSource::Copied { input, to: scratch_layout.put(bytes) })
            }
        }
    };
    let first = (0..spec.of.carried).map(&mut place).collect::<Result<_>>()?;
    let last = match spec.handed {
        true => at.ends.clone().map(&mut place).collect::<Result<_>>()?,
        false => planner
            .graph()
            .types_of(&node.inputs[..spec.of.carried])
            .iter()
            .map(|ty| Ok(StateSource::Made(scratch_layout.put(ty.bytes(node.op.name)?))))
            .collect::<Result<_>>()?,
    };
    Ok([first, last])
}

/// One step back: what is carried backwards is given up to it.
fn step_plan(
    planner: &mut Planner,
    node: &Node,
    spec: &LoopGrad,
    at: &GradInputs,
    forward: &LoopPlan,
    scratch_layout: &mut ScratchLayout,
) -> Result<(crate::Plan, Vec<Sliced>)> {
    let Some(graph) = node.regions.last() else { return Err(bad(node)) };
    let op = node.op.name;
    let own = forward.body.graph.inputs.len();
    let carried = spec.of.carried;
    let (mut specs, mut seeds) = (Vec::new(), Vec::new());
    for id in &graph.inputs[..carried] {
        specs.push(InputSpec::contiguous(graph.ty(*id), op, false)?);
    }
    for sliced in &forward.sliced {
        specs.push(sliced.spec(op)?);
    }
    for i in spec.of.sliced_inputs().end..own {
        // As the body was told: what had to be made resident is.
        let uses = [(&**graph, graph.inputs[i])];
        specs.push(read_spec(planner, node, node.inputs[i], &uses)?);
    }
    for id in &graph.inputs[own..own + carried] {
        specs.push(InputSpec::contiguous(graph.ty(*id), op, false)?);
    }
    for i in at.seeds.clone() {
        let id = node.inputs[i];
        let (ty, placed) = (planner.graph().ty(id), planner.place(id)?);
        let (row, input) = rows::sliced(op, ty, placed, scratch_layout)?;
        seeds.push(row);
        specs.push(input);
    }
    let first_backward = specs.len();
    for id in &graph.inputs[first_backward..] {
        specs.push(InputSpec::contiguous(graph.ty(*id), op, true)?);
    }
    let homes: Vec<Option<usize>> = (0..spec.back).map(|k| Some(first_backward + k)).collect();
    Ok((planner.region(graph, &specs, &homes)?, seeds))
}

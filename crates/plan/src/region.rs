//! Bodies and branches: planned once, in the scratch of the step that runs them.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::Region;
use tonnage_core::shape::TensorType;

use crate::place::{InputSpec, Options, Planner, plan};
use crate::plan::{LoopGradPlan, LoopPlan, OutputPlan, Plan, Run, StepMemory};
use crate::trips::trips;

/// States that the gradient of a loop keeps where nobody knows how many rounds there are.
const SLOTS_UNKNOWN: usize = 64;

pub(crate) fn node(planner: &mut Planner, node: &Node, kind: Region) -> Result<()> {
    match kind {
        Region::Branch => branch(planner, node),
        Region::Loop => while_loop(planner, node),
        Region::LoopGrad => while_grad(planner, node),
    }
}

/// Lays pieces one after the other.
#[derive(Default)]
struct Shelf(Bytes);

impl Shelf {
    fn put(&mut self, bytes: Bytes) -> Bytes {
        let at = self.0;
        self.0 += bytes.rounded();
        at
    }
}

fn inner(graph: &Arc<Graph>, inputs: &[InputSpec], planner: &mut Planner) -> Result<Plan> {
    let options = Options { outputs_given: true, ..planner.options };
    let made = plan(graph, inputs, options)?;
    planner.is_bound |= made.is_bound;
    Ok(made)
}

fn specs(
    planner: &Planner,
    ids: &[ValueId],
    donated: bool,
    op: &'static str,
) -> Result<Vec<InputSpec>> {
    ids.iter()
        .map(|id| match donated {
            true => InputSpec::contiguous(planner.graph.ty(*id), op, true),
            false => {
                let layout = planner.place(*id)?.layout.clone();
                Ok(InputSpec::Bytes { layout, bytes: Bytes::ZERO, donated: false })
            }
        })
        .collect()
}

fn branch(planner: &mut Planner, node: &Node) -> Result<()> {
    let inputs = specs(planner, &node.inputs[1..], false, node.op.name)?;
    let plans =
        node.regions.iter().map(|g| inner(g, &inputs, planner)).collect::<Result<Vec<Plan>>>()?;
    planner.is_bound = true;
    for id in &node.outputs {
        planner.fresh(node, *id)?;
    }
    let scratch = plans.iter().map(|p| p.arena).max().unwrap_or(Bytes::ZERO);
    planner.step(node, Run::Branch(plans), StepMemory::Allocates, scratch)
}

/// A loop's results start as its initial values: in their bytes where those are free, copied otherwise.
fn start(planner: &mut Planner, node: &Node, input: usize, output: ValueId) -> Result<()> {
    let id = node.inputs[input];
    let ty = planner.graph.ty(output).clone();
    let alone = node.inputs.iter().filter(|other| **other == id).count() == 1;
    if alone && planner.can_take_over(node, input, &ty).is_ok() {
        let placed = planner.place(id)?.clone();
        planner.put(output, placed);
        return Ok(());
    }
    planner.copy_value(node, id, output)
}

fn while_loop(planner: &mut Planner, node: &Node) -> Result<()> {
    let Attrs::Loop { carried, most } = node.attrs else { return Err(bad(node)) };
    for (i, output) in node.outputs.iter().enumerate() {
        start(planner, node, i, *output)?;
    }
    let mut shelf = Shelf::default();
    let forward = loop_plan(planner, node, carried, most, true, &mut shelf)?;
    let reads: SmallVec<[ValueId; 4]> =
        node.inputs[carried..].iter().chain(&node.outputs).copied().collect();
    let writes = node.outputs.iter().copied().collect();
    planner.push(node, Run::Loop(Box::new(forward)), StepMemory::Allocates, shelf.0, reads, writes)
}

/// Condition and body; the carried values lie close together, each in bytes of its own.
fn loop_plan(
    planner: &mut Planner,
    node: &Node,
    carried: usize,
    most: Option<u64>,
    in_place: bool,
    shelf: &mut Shelf,
) -> Result<LoopPlan> {
    let (condition, body) = (&node.regions[0], &node.regions[1]);
    let count = body.inputs.len();
    let read = specs(planner, &node.inputs[carried..count], false, node.op.name)?;
    let states = |donated| -> Result<Vec<InputSpec>> {
        let types = body.input_types();
        types[..carried]
            .iter()
            .map(|ty| InputSpec::contiguous(ty, node.op.name, donated))
            .chain(read.iter().cloned().map(Ok))
            .collect()
    };
    let test = inner(condition, &states(false)?, planner)?;
    let body_plan = inner(body, &states(in_place)?, planner)?;
    let second = body_plan
        .outputs
        .iter()
        .zip(body.output_types())
        .map(|(output, ty): (&OutputPlan, TensorType)| match output {
            OutputPlan::Input { .. } => Ok(None),
            _ if in_place => Ok(Some(shelf.put(ty.bytes(node.op.name)?))),
            _ => Ok(None), // the gradient keeps whole states instead
        })
        .collect::<Result<_>>()?;
    let answer = shelf.put(Bytes::new(1));
    let inner_bytes = test.arena.max(body_plan.arena);
    let inner = shelf.put(inner_bytes);
    Ok(LoopPlan { carried, most, condition: test, body: body_plan, second, answer, inner })
}

fn while_grad(planner: &mut Planner, node: &Node) -> Result<()> {
    let Attrs::LoopGrad { carried, slots, active, wanted, most } = &node.attrs else {
        return Err(bad(node));
    };
    let of_loop = carried + wanted.len();
    let name = node.op.name;
    // Gradients start as those of the results; sums start at zero.
    let states = active.iter().filter(|a| **a).count();
    for (k, output) in node.outputs.iter().enumerate() {
        match k < states {
            true => start(planner, node, of_loop + k, *output)?,
            false => planner.zero_value(node, *output)?,
        }
    }
    let rounds = trips(planner.graph, node, *carried).or(*most);
    let slots = match (slots, rounds) {
        (Some(slots), _) => (*slots).max(1),
        (None, Some(n)) if n <= 16 => (n as usize).max(1),
        (None, Some(n)) => (2.0 * (n as f64).sqrt()).ceil() as usize,
        (None, None) => SLOTS_UNKNOWN,
    };
    let mut shelf = Shelf::default();
    let forward = loop_plan(planner, node, *carried, *most, false, &mut shelf)?;
    let body = &node.regions[1];
    let (mut state, mut parts) = (Shelf::default(), Vec::new());
    for ty in &body.input_types()[..*carried] {
        parts.push(state.put(ty.bytes(name)?));
    }
    let copies = slots as u64 + 3;
    let all = state.0.checked_mul(copies).ok_or_else(|| bad(node))?;
    let states_at = shelf.put(all);

    let step_graph = &node.regions[2];
    let types = step_graph.input_types();
    let first_grad = of_loop + carried;
    let mut inputs = Vec::new();
    for (i, ty) in types.iter().enumerate() {
        inputs.push(match i {
            i if i >= *carried && i < of_loop => {
                let layout = planner.place(node.inputs[i])?.layout.clone();
                InputSpec::Bytes { layout, bytes: Bytes::ZERO, donated: false }
            }
            i => InputSpec::contiguous(ty, name, i >= first_grad)?,
        });
    }
    let step = inner(step_graph, &inputs, planner)?;
    let second = step
        .outputs
        .iter()
        .zip(step_graph.output_types())
        .map(|(output, ty): (&OutputPlan, TensorType)| match output {
            OutputPlan::Input { .. } => Ok(None),
            _ => Ok(Some(shelf.put(ty.bytes(name)?))),
        })
        .collect::<Result<_>>()?;
    let inner = shelf.put(step.arena);
    let grad = LoopGradPlan {
        forward,
        step,
        active: active.clone(),
        wanted: wanted.clone(),
        slots,
        state: state.0,
        parts,
        states: states_at,
        second,
        inner,
    };
    let reads: SmallVec<[ValueId; 4]> =
        node.inputs[..of_loop].iter().chain(&node.outputs).copied().collect();
    let writes = node.outputs.iter().copied().collect();
    let run = Run::LoopGrad(Box::new(grad));
    planner.push(node, run, StepMemory::Allocates, shelf.0, reads, writes)
}

fn bad(node: &Node) -> tonnage_core::Error {
    let what = format!("{} with the attributes {:?}", node.op.name, node.attrs);
    ErrorKind::BadGraph { what }.into()
}

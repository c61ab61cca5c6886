//! Bodies and branches: planned once, in the scratch of the step that runs them. `looping` does the same for
//! loops.

use tonnage_core::attrs::Attrs;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::{Lower, Region};
use tonnage_core::tile::Form;

use crate::looping;
use crate::place::{InputSpec, Planner};
use crate::plan::{At, BranchPlan, OutputPlan, Placed, Plan, Run, StepMemory};

/// A node with regions.
pub(crate) fn node(planner: &mut Planner, node: &Node, kind: Region) -> Result<()> {
    match kind {
        Region::Branch => branch(planner, node),
        Region::Loop => looping::while_loop(planner, node),
        Region::LoopGrad => looping::while_grad(planner, node),
    }
}

/// Lays pieces one after the other.
#[derive(Default)]
pub(crate) struct ScratchLayout(pub Bytes);

impl ScratchLayout {
    /// Lays down that many bytes, rounded: where they start.
    pub fn put(&mut self, bytes: Bytes) -> Bytes {
        let at = self.0;
        self.0 += bytes.rounded();
        at
    }

    /// Lays down what is made of pieces that are rounded, such as an arena: it is not rounded once more.
    pub fn put_pieces(&mut self, bytes: Bytes) -> Bytes {
        let at = self.0;
        self.0 += bytes;
        at
    }
}

/// Where each output that has a home lies while the region runs: `None` where it stays at home, otherwise
/// somewhere in the scratch, from where it is copied.
pub(crate) fn second(
    plan: &Plan,
    graph: &Graph,
    count: usize,
    op: &'static str,
    scratch_layout: &mut ScratchLayout,
) -> Result<Vec<Option<Bytes>>> {
    plan.outputs
        .iter()
        .zip(&graph.outputs)
        .take(count)
        .map(|(output, id)| match output {
            OutputPlan::Input { .. } => Ok(None),
            _ => Ok(Some(scratch_layout.put(graph.ty(*id).bytes(op)?))),
        })
        .collect()
}

/// What a region that only reads a value is told of it. A recipe stays one where the region reads it a tile
/// at a time and it is no random number, which is made of the call's own key.
pub(crate) fn read_spec(
    planner: &mut Planner,
    node: &Node,
    id: ValueId,
    regions: &[(&Graph, ValueId)],
) -> Result<InputSpec> {
    if let At::Recipe(recipe) = &planner.place(id)?.at {
        let in_tiles = regions.iter().all(|(graph, input)| reads_tiles(graph, *input));
        if in_tiles && !is_random(recipe) {
            return Ok(InputSpec::Recipe(recipe.clone()));
        }
    }
    planner.materialize(node, id)?;
    let layout = planner.place(id)?.layout.clone();
    Ok(InputSpec::Bytes { layout, bytes: Bytes::ZERO, donated: false })
}

/// Whether a recipe makes random numbers.
fn is_random(recipe: &Recipe) -> bool {
    recipe.sources.iter().any(|(generator, _)| matches!(generator, Generator::Random { .. }))
}

/// Whether everything that reads a value does so a tile at a time: it then needs no bytes of its own.
fn reads_tiles(graph: &Graph, id: ValueId) -> bool {
    let reads = |node: &&Node| node.inputs.contains(&id);
    !graph.outputs.contains(&id)
        && graph.nodes.iter().filter(reads).all(|node| match node.op.lower {
            Lower::View(_) => reads_tiles(graph, node.outputs[0]),
            Lower::Tile(make) => graph
                .with_call(node, |call| make(call, node.aux))
                .is_ok_and(|program| !program.loads.contains(&Form::Bits)),
            _ => false,
        })
}

/// A branch, with a plan for each of its regions.
fn branch(planner: &mut Planner, node: &Node) -> Result<()> {
    let Attrs::Branch { key, updates } = &node.attrs else { return Err(bad(node)) };
    planner.materialize(node, node.inputs[0])?;
    let mut homes = vec![None; node.outputs.len()];
    for (input, output) in updates {
        homes[*output] = Some(input - 1);
    }
    for k in 0..homes.len() {
        homes[k] = homes[k].or_else(|| handed_on(planner, node, k, &homes));
    }
    let mut specs = Vec::new();
    for (i, id) in node.inputs.iter().enumerate().skip(1) {
        let uses: Vec<(&Graph, ValueId)> =
            node.regions.iter().map(|g| (&**g, g.inputs[i - 1])).collect();
        specs.push(match homes.contains(&Some(i - 1)) {
            true => InputSpec::contiguous(planner.graph().ty(*id), node.op.name, true)?,
            false => read_spec(planner, node, *id, &uses)?,
        });
    }
    let mut branches = Vec::new();
    let mut scratch = Bytes::ZERO;
    for graph in &node.regions {
        let plan = planner.region(graph, &specs, &homes)?;
        let mut scratch_layout = ScratchLayout::default();
        let mut apart = Vec::new();
        for ((output, id), home) in plan.outputs.iter().zip(&graph.outputs).zip(&homes) {
            let stays = home.is_none() || matches!(output, OutputPlan::Input { .. });
            let bytes = graph.ty(*id).bytes(node.op.name)?;
            apart.push((!stays).then(|| scratch_layout.put(bytes)));
        }
        let at = scratch_layout.put_pieces(plan.arena);
        scratch = scratch.max(scratch_layout.0);
        branches.push(BranchPlan { plan, second: apart, inner: at });
    }
    planner.may_take_less(branches.len() > 1);
    for (home, id) in homes.iter().zip(&node.outputs) {
        match home {
            Some(input) => at_home(planner, node, node.inputs[input + 1], *id)?,
            None => planner.fresh(node, *id)?,
        }
    }
    let memory = match updates.is_empty() {
        true => StepMemory::Allocates,
        false => StepMemory::Updates,
    };
    let run = Run::Branch { key: *key, branches };
    let (reads, writes) =
        (node.inputs.iter().copied().collect(), node.outputs.iter().copied().collect());
    planner.push(node, run, memory, scratch, reads, writes);
    Ok(())
}

/// The input, counted without the choice, in whose bytes an output stays: one that a branch hands on as it is, and that nobody reads
/// afterwards. The other branches write over it, so that what a loop carries through a branch is there once.
fn handed_on(
    planner: &Planner,
    node: &Node,
    output: usize,
    taken: &[Option<usize>],
) -> Option<usize> {
    let ty = planner.graph().ty(node.outputs[output]);
    let of = |graph: &Graph| graph.inputs.iter().position(|id| *id == graph.outputs[output]);
    node.regions
        .iter()
        .filter_map(|graph| of(graph))
        .find(|input| !taken.contains(&Some(*input)) && planner.can_take_over(node, input + 1, ty))
}

/// A result that lies in the bytes of a variable, or of what is given up.
pub(crate) fn at_home(
    planner: &mut Planner,
    node: &Node,
    input: ValueId,
    output: ValueId,
) -> Result<()> {
    let Placed { layout, .. } = planner.place(input)?;
    if layout.offset != 0 || !layout.is_contiguous() {
        return Err(bad(node));
    }
    planner.alias(output, input)
}

/// The error of a node whose attributes do not fit its op.
pub(crate) fn bad(node: &Node) -> tonnage_core::Error {
    let what = format!("{} with the attributes {:?}", node.op.name, node.attrs);
    ErrorKind::BadGraph { what }.into()
}

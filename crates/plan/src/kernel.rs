//! Kernels: which of their inputs are made resident, and which they read from files as they go.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;

use crate::files::{self, StreamedInput};
use crate::place::Planner;
use crate::plan::{At, KernelCall, Run, Streamed};

/// A node that is a kernel's call.
pub(crate) fn node(planner: &mut Planner, node: &Node) -> Result<()> {
    if files::rows_in_file(planner, node)? {
        return Ok(());
    }
    let streamed = in_memory(planner, node)?;
    let memory = planner.outputs(node)?;
    let stored = layouts(&streamed, node.inputs.len());
    let target = planner.target();
    let scratch = planner.graph().with_call(node, |call| target.scratch(node.op, call, &stored));
    drop(stored);
    let call = (!planner.is_dynamic(node)).then(|| Box::new(kernel_call(planner.graph(), node)));
    planner.step(node, Run::Kernel(call), memory, scratch);
    planner.stream(streamed);
    Ok(())
}

/// What a kernel's call needs that its types say.
fn kernel_call(graph: &Graph, node: &Node) -> KernelCall {
    let sizes = |id: &ValueId| graph.ty(*id).shape.sizes().unwrap_or_default();
    KernelCall {
        outputs: node.outputs.iter().map(sizes).collect(),
        cost: graph.with_call(node, |call| (node.op.cost)(call)),
    }
}

/// Makes every input of a node that is a recipe resident, but for what its kernel reads from outside of memory:
/// those are handed back.
fn in_memory(planner: &mut Planner, node: &Node) -> Result<Streamed> {
    let mut streamed = Streamed::new();
    for (i, id) in node.inputs.iter().enumerate() {
        let target = planner.target();
        if let At::Recipe(recipe) = &planner.place(*id)?.at
            && let Some((_, layout)) = recipe.as_stored()
            && let Some(count) =
                planner.graph().with_call(node, |call| target.streamed(node.op, call, i, layout))
        {
            streamed.push(StreamedInput { input: i, recipe: recipe.clone(), count });
            continue;
        }
        planner.materialize(node, *id)?;
    }
    Ok(streamed)
}

/// Where the inputs of a kernel lie that it reads from files, in the order of all of its inputs.
fn layouts(streamed: &Streamed, inputs: usize) -> SmallVec<[Option<&Layout>; 3]> {
    let layout = |input: usize| {
        let found = streamed.iter().find(|streamed| streamed.input == input)?;
        Some(found.recipe.as_stored()?.1)
    };
    (0..inputs).map(layout).collect()
}

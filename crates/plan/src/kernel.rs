//! Kernels: which of their inputs are made resident, and which they read from files as they go; and in which order of axes they write their
//! outputs.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::row::Lower;

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
    lay_out(planner, node)?;
    let stored = layouts(&streamed, node.inputs.len());
    let target = planner.target();
    let scratch = planner.graph().with_call(node, |call| target.scratch(node.op, call, &stored));
    drop(stored);
    let call = match planner.is_dynamic(node) {
        true => None,
        false => Some(Box::new(kernel_call(planner, node)?)),
    };
    planner.step(node, Run::Kernel(call), memory, scratch);
    planner.stream(streamed);
    Ok(())
}

/// What a kernel's call needs that its types say.
fn kernel_call(planner: &Planner, node: &Node) -> Result<KernelCall> {
    let graph = planner.graph();
    let lies = |id: &ValueId| -> Result<Layout> {
        let sizes = graph.ty(*id).shape.sizes().unwrap_or_default();
        let placed = &planner.place(*id)?.layout;
        // Of what lies otherwise the kernel knows by its inputs alone.
        Ok(if placed.sizes == sizes { placed.clone() } else { Layout::contiguous(sizes) })
    };
    Ok(KernelCall {
        outputs: node.outputs.iter().map(lies).collect::<Result<_>>()?,
        cost: graph.with_call(node, |call| (node.op.cost)(call)),
    })
}

/// Lets outputs lie so that those who read them in another order of axes find them in order, where the kernel can write them so: no
/// copy is needed to put them in order.
fn lay_out(planner: &mut Planner, node: &Node) -> Result<()> {
    if planner.is_dynamic(node) {
        return Ok(());
    }
    let graph = planner.graph();
    for (output, id) in node.outputs.iter().enumerate() {
        let target = planner.target();
        let can = graph.with_call(node, |call| target.lays_out(node.op, call, output));
        if can
            && planner.has_own_buffer(*id)
            && let Some(layout) = wanted(graph, planner.later_nodes(), *id)
        {
            planner.lay_out(*id, layout);
        }
    }
    Ok(())
}

/// The layout of a value in which a view that changes the order of its axes, and is copied to be read in order, lies in order.
fn wanted(graph: &Graph, later: &[Node], id: ValueId) -> Option<Layout> {
    let plain = Layout::contiguous(graph.ty(id).shape.sizes()?);
    let seen = |node: &Node, layout: &Layout| match node.op.lower {
        Lower::View(view) => Some(graph.with_call(node, |call| view(call, layout))),
        _ => None,
    };
    let readers = |of: ValueId| later.iter().filter(move |node| node.inputs.first() == Some(&of));
    readers(id).find_map(|reader| {
        let permuted = seen(reader, &plain)??;
        let is_copied = readers(reader.outputs[0]).any(|next| seen(next, &permuted) == Some(None));
        if !is_copied {
            return None;
        }
        let wanted = in_order_of(&plain, &permuted)?;
        (seen(reader, &wanted)??).is_contiguous().then_some(wanted)
    })
}

/// The layout of all elements in the order of a view of them; `None` where the view is more than another order of the axes, or
/// splits what lies side by side.
fn in_order_of(plain: &Layout, view: &Layout) -> Option<Layout> {
    let ordered = Layout::contiguous(view.sizes.clone());
    let mut wanted = plain.clone();
    for (axis, (stride, size)) in plain.strides.iter().zip(&plain.sizes).enumerate() {
        let of_view = view.strides.iter().zip(&view.sizes);
        let at = of_view.enumerate().position(|(_, (s, n))| (s, n) == (stride, size));
        match at {
            Some(at) => wanted.strides[axis] = ordered.strides[at],
            None if *size == 1 => {}
            None => return None,
        }
    }
    let is_same = view.sizes.len() == plain.sizes.len() && view.offset == 0;
    let side_by_side = wanted.strides.last() == Some(&1);
    (is_same && side_by_side).then_some(wanted)
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

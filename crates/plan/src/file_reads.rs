//! What lies in a file is brought into memory for each node that needs it there, and dropped behind it: a weight does
//! not stay from the forward pass to the backward pass.
//!
//! A value has one place in a plan. So where there are several readers, each gets a value of its own, which is the
//! same recipe, and is made resident, or not, apart from all others.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::row::Lower;

use crate::place::InputSpec;
use crate::rewrite::copy_of;

/// What takes no more is read once, and stays while it is needed.
const SMALL: usize = 1 << 18;

/// The graph with a value for each reader of what lies in a file.
pub fn split_file_reads(graph: &Arc<Graph>, inputs: &[InputSpec]) -> Arc<Graph> {
    let is_stored = |spec: &InputSpec| match spec {
        InputSpec::Recipe(recipe) => recipe.as_stored().is_some_and(|(generator, layout)| {
            layout.count().saturating_mul(generator.dtype().size()) > SMALL
        }),
        InputSpec::Bytes { .. } => false,
    };
    if !inputs.iter().any(is_stored) {
        return graph.clone();
    }
    let mut stored = vec![false; graph.value_count()];
    for (id, _) in graph.inputs.iter().zip(inputs).filter(|(_, spec)| is_stored(spec)) {
        stored[id.index()] = true;
    }
    let mut readers = vec![0; graph.value_count()];
    for node in &graph.nodes {
        let mut all: SmallVec<[ValueId; 4]> = node.inputs.iter().copied().collect();
        all.sort_unstable();
        all.dedup();
        all.iter().for_each(|id| readers[id.index()] += 1);
    }
    let mut made = (**graph).clone();
    for mut node in std::mem::take(&mut made.nodes) {
        if let (Lower::View(_), Some(out)) = (node.op.lower, node.outputs.first()) {
            stored[out.index()] = stored[node.inputs[0].index()];
        }
        for i in 0..node.inputs.len() {
            let id = node.inputs[i];
            // What was put there is behind all that the graph had.
            if id.index() < stored.len() && stored[id.index()] && readers[id.index()] > 1 {
                let kind = made.value(id).kind;
                let own = copy_of(&mut made, id, kind, &node);
                node.inputs.iter_mut().filter(|of| **of == id).for_each(|of| *of = own);
            }
        }
        made.nodes.push(node);
    }
    Arc::new(made)
}

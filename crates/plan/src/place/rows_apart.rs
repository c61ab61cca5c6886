//! Values whose rows lie apart: a device reads and writes them quicker where each begins at a multiple of an access. They take that much
//! more, and no reader loses its way to take their bytes over.
//!
//! Decision: `docs/decisions/rows-apart.md`.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::graph::{Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Lower, Mem};
use tonnage_ops::linalg::matmul::MATMUL;

use super::{Planner, most};

/// Readers in place behind one another, at most, whose rows have to lie apart too.
const DEPTH: usize = 4;

impl Planner<'_> {
    /// How the output of the node at hand lies where its rows are to lie apart.
    pub(super) fn rows_apart(&self, node: &Node) -> Result<Option<Layout>> {
        let Some(step) = self.row_step(node, self.steps.node(), DEPTH) else { return Ok(None) };
        let mut layouts: SmallVec<[&Layout; 4]> = SmallVec::new();
        for id in &node.inputs {
            layouts.push(&self.places.get(*id)?.layout);
        }
        let target = self.target();
        let on_host =
            self.graph.with_call(node, |call| target.host_scratch(node.op, call, &layouts));
        let sizes = most(self.graph.ty(node.outputs[0]), node.op.name)?;
        Ok(on_host.is_none().then(|| Layout::rows_apart(sizes, step)))
    }

    /// From a row of the output of a node to the next, where rows are to lie apart; the node's number is `at`.
    fn row_step(&self, node: &Node, at: usize, depth: usize) -> Option<usize> {
        let ([made], Lower::Kernel) = (&node.outputs[..], node.op.lower) else { return None };
        let step = self.target().row_step(self.graph.ty(*made))?;
        let is_output = self.graph.outputs.contains(made);
        if self.is_dynamic(node) || is_output || depth == 0 {
            return None;
        }
        let readers: SmallVec<[(usize, &Node); 4]> = (at + 1..)
            .zip(&self.graph.nodes[at + 1..])
            .filter(|(_, node)| node.inputs.contains(made))
            .collect();
        let multiplies = |node: &Node| *node.op == MATMUL;
        let is_multiplied = multiplies(node) || readers.iter().any(|(_, node)| multiplies(node));
        if !is_multiplied || !self.target().makes_rows_apart(node.op, &node.attrs) {
            return None;
        }
        let serves = |(at, reader): &(usize, &Node)| {
            matches!(reader.op.lower, Lower::Kernel | Lower::Tile(_))
                && (!takes_over(reader, *made)
                    || self.row_step(reader, *at, depth - 1) == Some(step))
        };
        readers.iter().all(serves).then_some(step)
    }
}

/// Whether a node may write its result over the bytes of a value.
fn takes_over(node: &Node, id: ValueId) -> bool {
    let reads = |input: &usize| node.inputs.get(*input) == Some(&id);
    match node.op.mem {
        Mem::Reuse(candidates) => candidates.iter().any(reads),
        Mem::Update(input) => reads(&input),
        _ => false,
    }
}

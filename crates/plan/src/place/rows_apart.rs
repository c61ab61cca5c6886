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

/// Who reads a value: the node's number, the node, and the value or the view of it that it could take over, which lies in order.
type Readers<'g> = SmallVec<[(usize, &'g Node, Option<ValueId>); 4]>;

/// Readers in place behind one another, at most, whose rows have to lie apart too.
const DEPTH: usize = 4;

impl<'g> Planner<'g> {
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
        if self.is_dynamic(node) || depth == 0 {
            return None;
        }
        let sizes = self.graph.ty(*made).shape.sizes()?;
        let mut readers = Readers::new();
        let lies = [Layout::rows_apart(sizes.clone(), step), Layout::contiguous(sizes)];
        self.readers((*made, at), lies, &mut readers)?;
        let multiplies = |node: &Node| *node.op == MATMUL;
        let is_multiplied = multiplies(node) || readers.iter().any(|(_, node, _)| multiplies(node));
        if !is_multiplied || !self.target().makes_rows_apart(node.op, &node.attrs) {
            return None;
        }
        let serves = |(at, reader, id): &(usize, &Node, Option<ValueId>)| {
            id.is_none_or(|id| !takes_over(reader, id))
                || self.row_step(reader, *at, depth - 1) == Some(step)
        };
        readers.iter().all(serves).then_some(step)
    }

    /// Adds who reads a value that was made by that node, itself or a view of it; `None` where somebody gets it who reads no layout. The
    /// layouts are that with rows apart, and that without.
    fn readers(
        &self,
        (of, at): (ValueId, usize),
        [apart, closely]: [Layout; 2],
        readers: &mut Readers<'g>,
    ) -> Option<()> {
        if self.graph.outputs.contains(&of) {
            return None;
        }
        for (at, node) in (at + 1..).zip(&self.graph.nodes[at + 1..]) {
            if !node.inputs.contains(&of) {
                continue;
            }
            match node.op.lower {
                Lower::Kernel | Lower::Tile(_) => {
                    readers.push((at, node, closely.is_contiguous().then_some(of)));
                }
                Lower::View(view) => {
                    let seen = |lies| self.graph.with_call(node, |call| view(call, lies));
                    let seen = [seen(&apart)?, seen(&closely)?];
                    self.readers((node.outputs[0], at), seen, readers)?;
                }
                _ => return None,
            }
        }
        Some(())
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

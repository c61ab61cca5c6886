//! Elementwise ops that stay alone although their readers could compute them: several nodes read the result, and the kernel before
//! them does the op as it makes its own. So nobody computes it twice, and it costs no pass over memory.
//!
//! Decision: `docs/decisions/epilogues.md`.

use tonnage_core::graph::ValueId;
use tonnage_core::layout::Layout;
use tonnage_core::row::Lower;

use super::Fusing;
use crate::plan::{TileRead, TileRun};

impl Fusing<'_> {
    /// Whether the kernel that makes an input of a node does the node too.
    pub fn ends_a_kernel(&self, at: usize) -> bool {
        let node = &self.graph.nodes[at];
        node.inputs.iter().any(|input| self.is_taken_up(at, *input).unwrap_or(false))
    }

    /// The same of one input, which no other node reads.
    fn is_taken_up(&self, at: usize, input: ValueId) -> Option<bool> {
        let (group, graph) = (self.groups[at].as_ref()?, self.graph);
        let kernel = graph.nodes.get(*self.makers.get(input.index())? as usize)?;
        let is_alone = self.readers[input.index()].as_slice() == [at as u32]
            && !self.is_output[input.index()]
            && kernel.outputs.first() == Some(&input)
            && !graph.nodes[at].inputs.iter().any(|other| kernel.outputs[1..].contains(other));
        let (ty, made) = (graph.ty(input), graph.ty(*graph.nodes[at].outputs.first()?));
        if !matches!(kernel.op.lower, Lower::Kernel) || !is_alone || ty != made {
            return None;
        }
        let domain = group.domain.sizes()?;
        let (program, loads) =
            group.finish(&|id| self.constant(id), &|id| graph.ty(id).shape.clone());
        let reads: Option<Vec<TileRead>> = loads
            .iter()
            .enumerate()
            .map(|(i, id)| {
                let plain = Layout::contiguous(graph.ty(*id).shape.sizes()?);
                Some(TileRead::Input(i, plain.broadcast_to(&domain)?))
            })
            .collect();
        let run = TileRun::new(program, domain, reads?);
        let own: Vec<usize> = (0..loads.len()).filter(|i| loads[*i] == input).collect();
        Some(self.target.takes_epilogue(kernel.op, ty.dtype, &run, &own))
    }
}

//! A graph as segments are looked for in it: who makes and who reads a value, and how many bytes it takes.

use smallvec::SmallVec;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::row::Lower;

use super::super::pieces::node::{BatchPart, is_last};
use crate::order::pressure::Pressure;

/// See the module.
pub struct Program<'g> {
    pub graph: &'g Graph,
    pub pressure: Pressure,
    /// For each value, the node that makes it; `usize::MAX` for inputs.
    maker: Vec<usize>,
    /// For each value, the nodes that read it, in order.
    pub readers: Vec<SmallVec<[u32; 4]>>,
    /// Which values leave.
    pub leaves: Vec<bool>,
    /// What is known of values while a region grows; all [`BatchPart::Whole`] between two regions.
    pub parts: Vec<BatchPart>,
}

impl<'g> Program<'g> {
    /// Reads a graph.
    pub fn of(graph: &'g Graph, pressure: Pressure) -> Program<'g> {
        let values = graph.value_count();
        let mut made = Program {
            graph,
            pressure,
            maker: vec![usize::MAX; values],
            readers: vec![SmallVec::new(); values],
            leaves: vec![false; values],
            parts: vec![BatchPart::Whole; values],
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            for id in &node.inputs {
                let readers = &mut made.readers[id.index()];
                if readers.last() != Some(&(at as u32)) {
                    readers.push(at as u32);
                }
            }
            node.outputs.iter().for_each(|id| made.maker[id.index()] = at);
        }
        graph.outputs.iter().for_each(|id| made.leaves[id.index()] = true);
        made
    }

    /// The node that makes a value.
    pub fn maker(&self, id: ValueId) -> Option<usize> {
        Some(self.maker[id.index()]).filter(|at| *at != usize::MAX)
    }

    /// Bytes of what a value lies in.
    pub fn bytes(&self, id: ValueId) -> u64 {
        self.pressure.size[self.pressure.root[id.index()] as usize]
    }

    /// Whether a node may run in pieces at all: it has no effect, no body, and is no transfer.
    pub fn may_be_cut(&self, at: usize) -> bool {
        let node = &self.graph.nodes[at];
        !is_last(node) && node.regions.is_empty() && !matches!(node.op.lower, Lower::Transfer(_))
    }
}

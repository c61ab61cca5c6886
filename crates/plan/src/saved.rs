//! What a plan saves between the forward pass and the backward pass: values that the one makes and the other reads.
//!
//! A node is of the backward pass if its results are gradients, as was said when it was emitted. What comes in from
//! outside is there anyway; recipes and views take nothing.

use std::collections::{HashMap, HashSet};

use tonnage_core::graph::{Node, ValueId};
use tonnage_core::row::Mem;
use tonnage_core::{Bytes, Kind};

use crate::explain::SourceShare;
use crate::plan::{At, Plan};
use crate::sort;

impl Plan {
    /// What is saved in the arena for the backward pass, by the line that made it, largest first. Nothing where
    /// there is no gradient.
    pub fn saved(&self) -> Vec<SourceShare> {
        let made_by: HashMap<ValueId, &Node> = self
            .graph
            .nodes
            .iter()
            .flat_map(|n| n.outputs.iter().map(move |id| (*id, n)))
            .collect();
        let is_backward = |node: &Node| {
            node.outputs.first().is_some_and(|id| self.graph.value(*id).kind == Kind::Gradient)
        };
        // Whose bytes a view looks at.
        let origin = |mut id: ValueId| {
            while let Some(node) = made_by.get(&id)
                && let Mem::View(input) = node.op.mem
            {
                id = node.inputs[input];
            }
            id
        };
        let mut seen = HashSet::new();
        let mut holders: Vec<SourceShare> = Vec::new();
        for id in self.graph.nodes.iter().filter(|n| is_backward(n)).flat_map(|n| &n.inputs) {
            let id = origin(*id);
            let Some(maker) = made_by.get(&id).filter(|maker| !is_backward(maker)) else {
                continue;
            };
            let Some(At::Buffer(buffer)) = self.place(id).map(|placed| &placed.at) else {
                continue;
            };
            if !seen.insert(id) {
                continue;
            }
            let (what, source) = (maker.op.name.to_string(), maker.source);
            let bytes = self.buffers[buffer.0].bytes;
            match holders.iter_mut().find(|h| h.what == what && h.source == source) {
                Some(holder) => {
                    holder.count += 1;
                    holder.bytes += bytes;
                }
                None => holders.push(SourceShare {
                    kind: Kind::Activation,
                    what,
                    source,
                    count: 1,
                    bytes,
                }),
            }
        }
        sort::by_key(&mut holders, |h| std::cmp::Reverse(h.bytes));
        holders
    }

    /// All of what is saved in the arena for the backward pass.
    pub fn saved_bytes(&self) -> Bytes {
        self.saved().iter().map(|holder| holder.bytes).sum()
    }
}

//! Dead code: nodes whose results nobody reads and that have no effect.

use smallvec::SmallVec;

use super::Graph;
use crate::attrs::Attrs;
use crate::row::{Fails, Mem, Remat};

impl Graph {
    /// Removes every node that neither leads to an output nor has an effect. Inputs stay.
    pub fn prune(&mut self) {
        let mut live = vec![false; self.value_count()];
        for id in &self.outputs {
            live[id.index()] = true;
        }
        let mut keep = vec![false; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().rev() {
            let read = node.outputs.iter().any(|id| live[id.index()]);
            if read || node.has_effect() {
                keep[at] = true;
                for id in &node.inputs {
                    live[id.index()] = true;
                }
            }
        }
        let mut kept = keep.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or(true));
    }
}

impl super::Node {
    /// True where running it does more than define its outputs, here or in a region.
    pub fn has_effect(&self) -> bool {
        self.op.remat == Remat::Never
            || !self.updates().is_empty()
            || self.regions.iter().any(|g| g.nodes.iter().any(super::Node::has_effect))
    }

    /// Inputs whose bytes it writes, each with the output that lies there from then on.
    pub fn updates(&self) -> SmallVec<[(usize, usize); 1]> {
        match (self.op.mem, &self.attrs) {
            (Mem::Update(input), _) => SmallVec::from_iter([(input, 0)]),
            (Mem::Regions, Attrs::Loop(spec)) => spec.updates.iter().map(|i| (*i, *i)).collect(),
            (Mem::Regions, Attrs::Branch { updates, .. }) => updates.iter().copied().collect(),
            _ => SmallVec::new(),
        }
    }

    /// True where it can fail once its types are right, here or in a region.
    pub fn can_fail(&self) -> bool {
        self.op.fails != Fails::Never
            || self.regions.iter().any(|g| g.nodes.iter().any(super::Node::can_fail))
    }
}

//! Dead code: nodes whose results have no readers and that have no effect, and what of a branch or a loop
//! is not needed.

use smallvec::SmallVec;

use super::Graph;
use crate::attrs::Attrs;
use crate::row::{Fails, Mem, Remat};

impl Graph {
    /// Removes every node that neither leads to an output nor has an effect; results of branches and loops
    /// without readers, and inputs that only they take. Inputs and outputs of the graph stay.
    pub fn prune(&mut self) {
        let mut live = vec![false; self.value_count()];
        for id in &self.outputs {
            live[id.index()] = true;
        }
        let mut keep = vec![false; self.nodes.len()];
        let deciders = self.size_deciders();
        // Backwards: a node's readers are all known when it is looked at.
        for at in (0..self.nodes.len()).rev() {
            let node = &mut self.nodes[at];
            let read = node.outputs.iter().any(|id| live[id.index()]);
            if read || node.has_effect() {
                keep[at] = true;
                if !node.regions.is_empty() {
                    super::shrink::shrink(node, &live);
                }
                for id in &node.inputs {
                    live[id.index()] = true;
                }
                // A size that it needs is decided by a node that has to run, though what that makes may have no readers.
                for by in deciders.get(at).into_iter().flatten() {
                    self.nodes[*by].outputs.iter().for_each(|id| live[id.index()] = true);
                }
            }
        }
        let mut kept = keep.into_iter();
        self.nodes.retain(|_| kept.next().unwrap_or(true));
    }

    /// Which values any node reads, or leave.
    pub fn read_values(&self) -> Vec<bool> {
        let mut read = vec![false; self.value_count()];
        for id in self.nodes.iter().flat_map(|n| &n.inputs).chain(&self.outputs) {
            read[id.index()] = true;
        }
        read
    }
}

impl super::Node {
    /// True where running it does more than define its outputs, here or in a region.
    pub fn has_effect(&self) -> bool {
        self.op.remat == Remat::Never
            || !self.updates().is_empty()
            || self.regions.iter().any(|g| g.nodes.iter().any(super::Node::has_effect))
    }

    /// True where running it does something outside of the graph, here or in a region: it prints, it calls back.
    pub fn calls_host(&self) -> bool {
        matches!(self.attrs, Attrs::Host { .. })
            || self.regions.iter().any(|g| g.nodes.iter().any(super::Node::calls_host))
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
        let spills = match &self.attrs {
            Attrs::Loop(spec) => self.aux && spec.spills,
            Attrs::LoopGrad(spec) => spec.of.spills,
            _ => false,
        };
        spills
            || self.op.fails != Fails::Never
            || self.regions.iter().any(|g| g.nodes.iter().any(super::Node::can_fail))
    }
}

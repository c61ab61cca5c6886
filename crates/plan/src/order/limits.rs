//! Constraints on every order: which nodes have to run before which.

use std::collections::HashMap;

use smallvec::SmallVec;
use tonnage_core::graph::Graph;
use tonnage_core::row::Mem;
use tonnage_ops::world::buckets::world;

use crate::rewrite::shares;

/// For each node, those that must come before it.
#[derive(Debug)]
pub struct Limits {
    pub before: Vec<SmallVec<[u32; 4]>>,
    /// Nodes that can fail, in the order of the program.
    pub failing: Vec<u32>,
    /// Nodes that must not run before any node of `failing` with a smaller number has.
    pub waits: Vec<bool>,
}

impl Limits {
    /// Reads a graph.
    pub fn of(graph: &Graph) -> Limits {
        let count = graph.nodes.len();
        let mut maker: Vec<Option<u32>> = vec![None; graph.value_count()];
        let mut root: Vec<u32> = (0..graph.value_count() as u32).collect();
        // Nodes that read a root since it was last updated.
        let mut readers: HashMap<u32, Vec<u32>> = HashMap::new();
        let mut made = Limits {
            before: Vec::with_capacity(count),
            failing: Vec::new(),
            waits: vec![false; count],
        };
        let updated: Vec<bool> = updated_roots(graph);
        let (mut last_effect, mut last_transfer): (Option<u32>, Option<u32>) = (None, None);
        let deciders = graph.size_deciders();
        for (at, node) in graph.nodes.iter().enumerate() {
            let mut before: SmallVec<[u32; 4]> =
                node.inputs.iter().filter_map(|id| maker[id.index()]).collect();
            before.extend(deciders.get(at).into_iter().flatten().map(|by| *by as u32));
            for id in &node.inputs {
                let r = root[id.index()];
                if updated[r as usize] {
                    readers.entry(r).or_default().push(at as u32);
                }
            }
            let updates = node.updates();
            for (input, _) in &updates {
                let r = root[node.inputs[*input].index()];
                let read = std::mem::take(readers.entry(r).or_default());
                before.extend(read.into_iter().filter(|n| *n != at as u32));
                made.waits[at] = true;
            }
            for (input, output) in shares(node) {
                root[node.outputs[output].index()] = root[node.inputs[input].index()];
            }
            // An update alone is ordered by what it writes.
            if node.has_effect() && (updates.is_empty() || !node.regions.is_empty()) {
                before.extend(last_effect);
                last_effect = Some(at as u32);
            }
            // Ranks send in one order, also where their plans differ, as those of batches of other lengths do.
            if world(&node.attrs).is_some_and(|world| world.size() > 1) {
                before.extend(last_transfer.replace(at as u32));
            }
            if node.can_fail() {
                made.failing.push(at as u32);
            }
            for id in &node.outputs {
                maker[id.index()] = Some(at as u32);
            }
            before.sort_unstable();
            before.dedup();
            made.before.push(before);
        }
        made
    }

    /// How many nodes there are.
    pub fn count(&self) -> usize {
        self.before.len()
    }

    /// Whether an order holds all limits.
    pub fn allow(&self, order: &[u32]) -> bool {
        let mut done = vec![false; self.count()];
        let mut failing = self.failing.iter().copied().peekable();
        for n in order {
            while failing.next_if(|f| done[*f as usize]).is_some() {}
            let waits = self.waits[*n as usize] && failing.peek().is_some_and(|f| f < n);
            let all = self.before[*n as usize].iter().all(|b| done[*b as usize]);
            if waits || !all || std::mem::replace(&mut done[*n as usize], true) {
                return false;
            }
        }
        done.into_iter().all(|d| d)
    }
}

/// Roots that any node updates, by the number of a value.
fn updated_roots(graph: &Graph) -> Vec<bool> {
    let mut root: Vec<u32> = (0..graph.value_count() as u32).collect();
    let mut updated = vec![false; graph.value_count()];
    for node in &graph.nodes {
        for (input, output) in shares(node) {
            let r = root[node.inputs[input].index()];
            root[node.outputs[output].index()] = r;
            updated[r as usize] |= !matches!(node.op.mem, Mem::View(_));
        }
    }
    updated
}

//! Nodes in an order in which each comes behind those that it needs. The standard asks for that, and programs that rewrite models forget it.

use std::collections::HashMap;

use super::{AttributeValue, NodeMessage};

/// All names that a node reads, those in its graphs too.
fn reads<'n>(node: &'n NodeMessage, visit: &mut dyn FnMut(&'n str)) {
    node.inputs.iter().for_each(|name| visit(name));
    for attribute in &node.attributes {
        if let AttributeValue::Graph(graph) = &attribute.value {
            graph.nodes.iter().for_each(|inner| reads(inner, visit));
            graph.outputs.iter().for_each(|output| visit(&output.name));
        }
    }
}

/// Nodes as they are where they are in order; otherwise with those that a node needs moved before it. Nodes that need each other stay where
/// they are: whoever runs them finds that something is missing.
pub fn sorted(nodes: Vec<NodeMessage>) -> Vec<NodeMessage> {
    let mut makers: HashMap<&str, usize> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        for name in node.outputs.iter().filter(|name| !name.is_empty()) {
            makers.entry(name).or_insert(at);
        }
    }
    let mut needs: Vec<Vec<usize>> = Vec::with_capacity(nodes.len());
    for (at, node) in nodes.iter().enumerate() {
        let mut own = Vec::new();
        reads(node, &mut |name| own.extend(makers.get(name).filter(|maker| **maker > at)));
        needs.push(own);
    }
    if needs.iter().all(Vec::is_empty) {
        return nodes;
    }
    // Behind the first node that is out of order, what comes before may be needed too.
    for (at, node) in nodes.iter().enumerate() {
        needs[at].clear();
        reads(node, &mut |name| needs[at].extend(makers.get(name).filter(|maker| **maker != at)));
    }
    let (mut order, mut seen) = (Vec::with_capacity(nodes.len()), vec![false; nodes.len()]);
    for first in 0..nodes.len() {
        let mut open = vec![(first, 0)];
        while let Some((at, next)) = open.pop() {
            if next == 0 && std::mem::replace(&mut seen[at], true) {
                continue;
            }
            match needs[at].get(next) {
                Some(need) => {
                    open.push((at, next + 1));
                    if !seen[*need] {
                        open.push((*need, 0));
                    }
                }
                None => order.push(at),
            }
        }
    }
    let mut nodes: Vec<Option<NodeMessage>> = nodes.into_iter().map(Some).collect();
    order.into_iter().filter_map(|at| nodes[at].take()).collect()
}

//! The order in which nodes run: the one of several that takes the least memory, by `pressure`'s figure.
//!
//! Candidates are the order of the program, a greedy one that always runs what frees the most, and one that
//! makes nothing before it is needed. The program's own order wins a tie, so that what a user reads is what
//! runs. Whatever the order, a value is made before it is read, an update comes after every read of what
//! was there before and after every node that can fail that it came after, and effects keep their order.

mod greedy;
mod late;
pub mod limits;
pub mod pressure;

use std::sync::Arc;

use tonnage_core::graph::Graph;

use crate::place::InputSpec;
use crate::target::Target;
use limits::Limits;
use pressure::Pressure;

/// The graph with its nodes in the order that takes the least memory.
pub fn low_peak(graph: &Arc<Graph>, inputs: &[InputSpec], target: &dyn Target) -> Arc<Graph> {
    let count = graph.nodes.len();
    if count < 3 {
        return graph.clone(); // there is nothing to exchange
    }
    let pressure = Pressure::of(graph, inputs, target);
    let limits = Limits::of(graph);
    let program: Vec<u32> = (0..count as u32).collect();
    let mut best = (pressure.peak(&program).bytes, None);
    for order in [greedy::order(&limits, &pressure), late::order(&limits)] {
        debug_assert!(limits.allow(&order));
        let peak = pressure.peak(&order).bytes;
        if peak < best.0 {
            best = (peak, Some(order));
        }
    }
    match best.1 {
        None => graph.clone(),
        Some(order) => Arc::new(reordered(graph, &order)),
    }
}

pub fn reordered(graph: &Graph, order: &[u32]) -> Graph {
    let mut made = graph.clone();
    made.nodes = order.iter().map(|n| graph.nodes[*n as usize].clone()).collect();
    made
}

//! The order in which nodes run: the one of several that takes the least memory, by `pressure`'s figure.
//!
//! Candidates are the order of the program, a greedy one that always runs what frees the most, and one that
//! makes nothing before it is needed. The program's own order wins a tie, so that what a user reads is what
//! runs; but where values would wait for long for what reads them last, that runs as soon as it can. Whatever the order, a value is made before it is read, an update comes after every read of what
//! was there before and after every node that can fail that it came after, and effects keep their order.

mod greedy;
mod late;
pub mod limits;
pub mod pressure;
mod prompt;

use std::sync::Arc;

use tonnage_core::graph::Graph;

use crate::place::InputSpec;
use crate::target::Target;
use limits::Limits;
use pressure::Pressure;

/// What is freed earlier is worth another order where so little of what is held over time is left.
const SHORTER: f64 = 0.9;

/// The graph with its nodes in the order that takes the least memory.
pub fn low_peak(graph: &Arc<Graph>, inputs: &[InputSpec], target: &dyn Target) -> Arc<Graph> {
    let count = graph.nodes.len();
    if count < 3 {
        return graph.clone(); // there is nothing to exchange
    }
    let pressure = Pressure::of(graph, inputs, target);
    let limits = Limits::of(graph);
    let program: Vec<u32> = (0..count as u32).collect();
    let mut best = (pressure.peak(&program).bytes, program);
    for order in [greedy::order(&limits, &pressure), late::order(&limits)] {
        debug_assert!(limits.allow(&order));
        let peak = pressure.peak(&order).bytes;
        if peak < best.0 {
            best = (peak, order);
        }
    }
    let (peak, best) = best;
    let prompt = prompt::order(&best, &limits, &pressure);
    debug_assert!(limits.allow(&prompt));
    let shorter = || held(&pressure, &prompt) < held(&pressure, &best) * SHORTER;
    let best = if pressure.peak(&prompt).bytes <= peak && shorter() { prompt } else { best };
    match best.is_sorted() {
        true => graph.clone(),
        false => Arc::new(reordered(graph, &best)),
    }
}

/// The graph with its nodes in their order, but for those that read a value last: they run as soon as they can, also where that
/// takes more at once.
pub fn prompt(graph: &Arc<Graph>, inputs: &[InputSpec], target: &dyn Target) -> Arc<Graph> {
    let order: Vec<u32> = (0..graph.nodes.len() as u32).collect();
    let pressure = Pressure::of(graph, inputs, target);
    let order = prompt::order(&order, &Limits::of(graph), &pressure);
    match order.is_sorted() {
        true => graph.clone(),
        false => Arc::new(reordered(graph, &order)),
    }
}

/// What lives in the arena, summed over all nodes.
fn held(pressure: &Pressure, order: &[u32]) -> f64 {
    let mut held = 0.0;
    pressure.walk(order, |_, bytes| held += bytes as f64);
    held
}

pub fn reordered(graph: &Graph, order: &[u32]) -> Graph {
    let mut made = graph.clone();
    made.nodes = order.iter().map(|n| graph.nodes[*n as usize].clone()).collect();
    made
}

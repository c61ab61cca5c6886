//! What a plan sends to other ranks, and how long its call takes with that.

use tonnage_core::Bytes;
use tonnage_core::graph::{Graph, Node};
use tonnage_core::row::Cost;

use crate::budget::Machine;
use crate::plan::Plan;

impl Plan {
    /// Bytes that a rank sends to others in a call; of ranks that send different amounts, the most. Those of iterations that only the data count are
    /// those of one.
    pub fn sent(&self) -> Bytes {
        Bytes::new(cost(&self.graph).sent)
    }

    /// Seconds that a call is expected to take on a machine.
    pub fn seconds(&self, machine: &Machine) -> f64 {
        match &self.fitted {
            Some(fitted) => fitted.seconds,
            None => machine.graph(&self.graph) + self.seconds_of_files(machine),
        }
    }
}

fn cost(graph: &Graph) -> Cost {
    let of = |node: &Node| graph.with_call(node, node.op.cost);
    graph.nodes.iter().map(of).fold(Cost::default(), |sum, own| sum.with(own, u64::saturating_add))
}

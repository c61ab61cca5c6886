//! What a plan sends to other ranks, and how long its call takes with that.

use std::collections::HashMap;

use tonnage_core::Bytes;
use tonnage_core::graph::{Graph, Node};
use tonnage_core::row::Cost;

use crate::budget::Machine;
use crate::plan::{Plan, Run, Step};

impl Plan {
    /// Bytes that a rank sends to others in a call; of ranks that send different amounts, the most. Those of iterations that only the data count are
    /// those of one.
    pub fn sent(&self) -> Bytes {
        Bytes::new(cost(&self.graph).sent)
    }

    /// Seconds that a call is expected to take on a machine: without those of transfers that kernels hide.
    pub fn seconds(&self, machine: &Machine) -> f64 {
        match &self.fitted {
            Some(fitted) => fitted.seconds,
            None => {
                let hidden = hidden_seconds(&self.graph, &self.steps, machine);
                machine.graph(&self.graph) + self.seconds_of_files(machine) - hidden
            }
        }
    }
}

fn cost(graph: &Graph) -> Cost {
    let of = |node: &Node| graph.with_call(node, node.op.cost);
    graph.nodes.iter().map(of).fold(Cost::default(), |sum, own| sum.with(own, u64::saturating_add))
}

/// Seconds that steps take one after another, less those that they take beside the network lane, which does one transfer after another.
pub(crate) fn hidden_seconds(graph: &Graph, steps: &[Step], machine: &Machine) -> f64 {
    if !steps.iter().any(|step| step.in_flight) {
        return 0.0;
    }
    let (mut now, mut free, mut all) = (0.0f64, 0.0f64, 0.0f64);
    let mut ends: HashMap<usize, f64> = HashMap::new();
    for (at, step) in steps.iter().enumerate() {
        for begun in &step.awaits {
            now = ends.get(begun).map_or(now, |end| now.max(*end));
        }
        let does_something = !matches!(step.run, Run::Nothing);
        let Some(node) = graph.nodes.get(step.node).filter(|_| does_something) else { continue };
        let seconds = machine.node(graph, node);
        all += seconds;
        match step.in_flight {
            true => {
                free = free.max(now) + seconds;
                ends.insert(at, free);
            }
            false => now += seconds,
        }
    }
    (all - now.max(free)).max(0.0)
}

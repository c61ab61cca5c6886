//! Liveness of values: when each is read last, and which bytes that the caller owns may be overwritten.

use tonnage_core::graph::{Graph, ValueId};

use super::InputSpec;
use crate::plan::At;

/// Who may be overwritten, and from when on.
pub(super) struct Liveness {
    /// The last node that reads each value; `usize::MAX` for outputs.
    last_use: Vec<usize>,
    /// Which inputs the call may overwrite.
    donated: Vec<bool>,
    /// For each output of a region, the input in whose bytes it may stay.
    homes: Vec<Option<usize>>,
}

impl Liveness {
    /// That of a graph whose nodes stand in the order in which they run.
    pub fn new(graph: &Graph, inputs: &[InputSpec], homes: &[Option<usize>]) -> Liveness {
        let mut last_use = vec![0; graph.value_count()];
        for (at, node) in graph.nodes.iter().enumerate() {
            for id in &node.inputs {
                last_use[id.index()] = at;
            }
        }
        for id in &graph.outputs {
            last_use[id.index()] = usize::MAX;
        }
        let donated = inputs.iter().map(InputSpec::is_donated).collect();
        Liveness { last_use, donated, homes: homes.to_vec() }
    }

    /// Whether a value is read after that node, or returned.
    pub fn is_read_after(&self, id: ValueId, node: usize) -> bool {
        self.last_use[id.index()] > node
    }

    /// Whether the call may overwrite bytes once their values are dead: its own buffers, and inputs that are given up.
    pub fn is_given_up(&self, at: &At) -> bool {
        match at {
            At::Buffer(_) => true,
            At::Input(input) => self.donated[*input],
            At::Output(_) | At::Recipe(_) => false,
        }
    }

    /// Whether the output of a region may stay in the bytes of that input.
    pub fn may_stay(&self, output: usize, input: usize) -> bool {
        self.homes.get(output) == Some(&Some(input)) && self.donated[input]
    }
}

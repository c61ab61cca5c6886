//! How long work takes, from the rows' figures: what rungs of the ladder are compared by.
//!
//! The planner has no clock. A machine's figures are an argument; those that stand here are of a small server core,
//! and a short calibration gives others.

use serde::{Deserialize, Serialize};
use tonnage_core::graph::{Graph, Node};
use tonnage_core::row::Cost;

/// What a machine does in a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Floating-point operations, in kernels that are bound by them.
    pub flops: f64,
    /// Bytes read and written, in kernels that are bound by memory.
    pub bytes: f64,
    /// Seconds that a step takes whatever it does.
    pub step: f64,
    /// Bytes written to a file and read back.
    pub disk: f64,
}

impl Machine {
    /// Two cores of a server of 2024.
    pub const DEFAULT: Machine =
        Machine { flops: 1.5e11, bytes: 2.0e10, step: 1.0e-6, disk: 5.0e8 };

    /// Seconds that such work takes: bound by arithmetic or by memory, whichever is slower.
    pub fn seconds(&self, cost: Cost) -> f64 {
        let (flops, bytes) = (cost.flops as f64 / self.flops, cost.bytes as f64 / self.bytes);
        self.step + flops.max(bytes)
    }

    /// Seconds that a node takes.
    pub fn node(&self, graph: &Graph, node: &Node) -> f64 {
        self.seconds(graph.with_call(node, node.op.cost))
    }
}

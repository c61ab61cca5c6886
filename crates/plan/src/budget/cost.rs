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
    /// Bytes written to a file; 0 where nothing may be.
    pub write: f64,
    /// Bytes read back from a file that was written a moment ago: most of it is in the system's cache still.
    pub read: f64,
}

impl Machine {
    /// Two cores of a server of 2024.
    pub const DEFAULT: Machine =
        Machine { flops: 1.5e11, bytes: 2.0e10, step: 1.0e-6, write: 5.0e8, read: 2.0e9 };

    /// The same without a file to spill to.
    #[must_use]
    pub fn without_disk(self) -> Machine {
        Machine { write: 0.0, read: 0.0, ..self }
    }

    /// Whether values may be spilled.
    pub fn has_disk(&self) -> bool {
        self.write > 0.0 && self.read > 0.0
    }

    /// Seconds that a transfer takes from computing, however well it is hidden: its bytes go through memory once more.
    pub fn shared(&self, bytes: u64) -> f64 {
        self.step + bytes as f64 / self.bytes
    }

    /// Seconds that the disk lane takes to write or to read so many bytes.
    pub fn transfer(&self, bytes: u64, to_file: bool) -> f64 {
        self.step + bytes as f64 / if to_file { self.write } else { self.read }
    }

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

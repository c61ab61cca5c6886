//! How long work takes, from the rows' figures: what points of the frontier are compared by.
//!
//! The planner has no clock. A machine's figures are an argument; those that stand here are of a small server core,
//! and a short calibration gives others.
//!
//! Decision: `docs/decisions/cost-of-small-steps.md`.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node};
use tonnage_core::looping::{Iterations, Loop};
use tonnage_core::row::{Cost, Lower, Region};

/// What a machine does in a second.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Machine {
    /// Floating-point operations, in kernels that are bound by them.
    pub flops: f64,
    /// Bytes read and written, in kernels that are bound by memory.
    pub bytes: f64,
    /// Seconds that a step takes whatever it does.
    pub step: f64,
    /// Seconds that it takes to share a step among threads; a step that is shorter is not shared.
    pub fork: f64,
    /// Bytes written to a file; 0 where nothing may be.
    pub write: f64,
    /// Bytes read back from a file that was written a moment ago: most of it is in the system's cache still.
    pub read: f64,
    /// Bytes sent to other ranks.
    pub send: f64,
    /// Seconds that a message to one of them takes, however short it is.
    pub message: f64,
    /// Floating-point operations in products of 16-bit floats, where units of their own do those; 0 where they take as long as others.
    #[serde(skip)]
    pub matrix: f64,
    /// The same in attention.
    #[serde(skip)]
    pub attention: f64,
    /// Floating-point operations in elementwise functions; 0 where they are a sixth of those in other kernels.
    #[serde(skip)]
    pub elementwise: f64,
}

impl Machine {
    /// Two cores of a server of 2024, and a network of 10 gigabits.
    pub const DEFAULT: Machine = Machine {
        flops: 1.5e11,
        bytes: 2.0e10,
        step: 1.0e-6,
        fork: 6.0e-6,
        write: 5.0e8,
        read: 2.0e9,
        send: 1.0e9,
        message: 1.0e-5,
        matrix: 0.0,
        attention: 0.0,
        elementwise: 0.0,
    };

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

    /// Seconds that the disk lane takes to write or to read that many bytes.
    pub fn transfer(&self, bytes: u64, to_file: bool) -> f64 {
        self.step + bytes as f64 / if to_file { self.write } else { self.read }
    }

    /// Seconds that such work takes: bound by arithmetic or by memory, whichever is slower. Sharing it among threads takes
    /// time too; little work is left to one of them and takes longer for that. So the same work in many small steps
    /// takes more than in one.
    fn seconds(&self, cost: Cost, flops: f64) -> f64 {
        let (flops, bytes) = (cost.flops as f64 / flops, cost.bytes as f64 / self.bytes);
        let work = flops.max(bytes);
        let sent = cost.sent as f64 / self.send + cost.messages as f64 * self.message;
        self.step + work + work.min(self.fork) + sent
    }

    /// Seconds that a node takes. One with bodies takes what their nodes take, in every iteration that there is; of
    /// branches the longest; one iteration where only the data know how many there are.
    pub fn node(&self, graph: &Graph, node: &Node) -> f64 {
        let body = |body: &Arc<Graph>| -> f64 { self.graph(body) };
        match (&node.attrs, node.op.lower) {
            (_, Lower::Tile(_)) => {
                let rate = if self.elementwise > 0.0 { self.elementwise } else { self.flops / 6.0 };
                self.seconds(graph.with_call(node, node.op.cost), rate)
            }
            _ if node.regions.is_empty() => {
                self.seconds(graph.with_call(node, node.op.cost), self.of_kernel(graph, node))
            }
            (Attrs::Loop(spec), _) => {
                let iteration: f64 = node.regions.iter().map(body).sum();
                self.step + iteration * iterations(spec)
            }
            (Attrs::LoopGrad(spec), _) => {
                let iteration: f64 = node.regions.iter().map(body).sum();
                self.step + iteration * iterations(&spec.of)
            }
            (_, Lower::Region(Region::Branch)) => {
                self.step + node.regions.iter().map(body).fold(0.0, f64::max)
            }
            // The first region is what runs.
            _ => self.step + node.regions.first().map_or(0.0, body),
        }
    }

    /// Floating-point operations in a second in the kernel of a node.
    fn of_kernel(&self, graph: &Graph, node: &Node) -> f64 {
        let units = match node.attrs {
            Attrs::Matmul { .. } => self.matrix,
            Attrs::Attention { .. } => self.attention,
            _ => 0.0,
        };
        let is_half = node.inputs.first().is_some_and(|id| {
            let dtype = graph.ty(*id).dtype;
            dtype.is_float() && dtype.size() == 2
        });
        if is_half && units > 0.0 { units } else { self.flops }
    }

    /// Seconds that all nodes of a graph take.
    pub fn graph(&self, graph: &Graph) -> f64 {
        graph.nodes.iter().map(|node| self.node(graph, node)).sum()
    }
}

fn iterations(spec: &Loop) -> f64 {
    match &spec.iterations {
        Iterations::Times(dim) => dim.most().map_or(1.0, |n| n as f64),
        Iterations::While { .. } => 1.0,
    }
}

//! Variants of a graph: the same results by another graph, over each of which the frontier of recomputation runs.
//!
//! `max_checkpoints` changes how many states the gradients of loops checkpoint, and `residuals` saves more than
//! states; `batch` runs the batch in pieces; `segments` cuts what lies between narrow values; `bf16` holds idle values in half precision, where the user allows it. A variant
//! knows what it does (`VariantSummary`), which the plan lists, and what it takes in time with nothing recomputed.
//! None of them depends on a budget.
//!
//! Decision: `docs/decisions/levers-are-graph-variants.md`.

mod batch;
mod bf16;
mod loop_checkpoints;
mod loop_residuals;
mod segments;

use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Graph;

use super::choose::Dropped;
use super::cost::Machine;
use super::draw::{Sketch, SketchStep};
use super::front::Priced;
use super::rematerialize;
use super::segments::{Goal, Segment};
use super::sketch::ProgramProfile;
use crate::fuse::fuse;
use crate::order::pressure::Pressure;
use crate::place::InputSpec;
use crate::target::Target;

/// What may be done to fit a budget besides what keeps every bit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed {
    /// The batch and segments may run in pieces: sums over them are then added in another order.
    pub micro_batches: bool,
    /// Values of f32 that are idle for long may be held as bf16 meanwhile.
    pub bf16: bool,
}

impl Allowed {
    /// Nothing that changes a bit.
    pub const EXACT: Allowed = Allowed { micro_batches: false, bf16: false };
}

impl Default for Allowed {
    /// What changes the order of a sum, and nothing that rounds more.
    fn default() -> Allowed {
        Allowed { micro_batches: true, bf16: false }
    }
}

/// What a variant does, as the plan lists it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct VariantSummary {
    /// States that gradients of loops checkpoint at once, where that is not what they do without a budget.
    pub max_checkpoints: Option<u64>,
    /// Iterations of loops that are recomputed; `None` where only the data know.
    pub recomputed_iterations: Option<u64>,
    /// Loops whose expensive residuals are saved for their gradients.
    pub residuals: usize,
    /// Pieces that the batch runs in.
    pub micro_batches: Option<usize>,
    /// Values that are held as bf16 while they are idle.
    pub in_bf16: usize,
}

/// A graph that gives what the program gives, with its nodes in the order in which they run.
#[derive(Debug)]
pub struct Variant {
    pub graph: Arc<Graph>,
    pub pressure: Pressure,
    pub used: VariantSummary,
    /// Seconds that it takes with nothing recomputed.
    pub seconds: f64,
    /// The body of a loop in which values may be dropped too.
    pub within: Option<Within>,
    /// Segments that run in pieces in all of its points.
    pub segments: Vec<Segment>,
}

/// A body in which values may be dropped and recomputed.
#[derive(Debug)]
pub struct Within {
    /// The node whose only region it is.
    pub node: usize,
    pub body: Arc<Graph>,
    pub pressure: Pressure,
}

/// One way to run a variant.
#[derive(Debug, Clone)]
pub struct FrontierPoint {
    /// Nodes in the order in which they run.
    pub runs: Vec<SketchStep>,
    /// Those of the body in which values are dropped.
    pub within: Vec<SketchStep>,
    /// What segments are cut for, where they are: the cuts follow from it.
    pub cut: Option<Goal>,
    /// Seconds in all.
    pub seconds: f64,
    /// The most that lives in the arena, about.
    pub peak: u64,
    /// What it may take more so that kernels hide transfers between ranks.
    pub ahead: Bytes,
}

impl Priced for FrontierPoint {
    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn peak(&self) -> u64 {
        self.peak
    }
}

impl FrontierPoint {
    /// Nodes that are recomputed.
    pub fn recomputed(&self) -> usize {
        let is_recompute = |run: &&SketchStep| matches!(run, SketchStep::Recompute(_));
        self.runs.iter().chain(&self.within).filter(is_recompute).count()
    }

    /// Whether every node runs once, and nothing else.
    pub fn is_plain(&self) -> bool {
        !is_changed(&self.runs) && !is_changed(&self.within) && self.cut.is_none()
    }
}

impl Variant {
    /// The graph as it is, and what is known of it for sketching.
    pub fn of(
        graph: Arc<Graph>,
        inputs: &[InputSpec],
        target: &dyn Target,
        machine: &Machine,
    ) -> (Variant, ProgramProfile) {
        let pressure = Pressure::of(&graph, inputs, target);
        let program = ProgramProfile::of(&graph, pressure.clone(), machine);
        let seconds = (program.seconds() + loop_checkpoints::correction(&graph, machine)).max(0.0);
        let used = VariantSummary {
            recomputed_iterations: loop_checkpoints::recomputed_iterations(&graph),
            ..VariantSummary::default()
        };
        let segments = Vec::new();
        (Variant { graph, pressure, used, seconds, within: None, segments }, program)
    }

    /// The point of a sketch.
    pub fn point(&self, sketch: Sketch) -> FrontierPoint {
        FrontierPoint {
            runs: sketch.runs,
            within: Vec::new(),
            cut: None,
            seconds: self.seconds + sketch.seconds,
            peak: sketch.peak.bytes,
            ahead: Bytes::ZERO,
        }
    }

    /// The graph of a point.
    pub fn graph(&self, point: &FrontierPoint, target: &dyn Target) -> Result<Arc<Graph>> {
        let mut graph = self.graph.clone();
        if let Some(within) = self.within.as_ref().filter(|_| is_changed(&point.within)) {
            let body = rematerialize::graph(&within.body, &within.pressure, &point.within);
            let body = fuse(body, target)?;
            let mut changed = (*graph).clone();
            changed.nodes[within.node].regions = vec![Arc::new(body)];
            graph = Arc::new(changed);
        }
        if is_changed(&point.runs) {
            // What is recomputed may now be written into what reads it.
            let changed = rematerialize::graph(&graph, &self.pressure, &point.runs);
            graph = Arc::new(fuse(changed, target)?);
        }
        Ok(graph)
    }
}

fn is_changed(runs: &[SketchStep]) -> bool {
    runs.iter().any(|run| !matches!(run, SketchStep::Node(_)))
}

/// What all variants are made from.
pub struct VariantBase<'a> {
    pub inputs: &'a [InputSpec],
    pub target: &'a dyn Target,
    pub machine: &'a Machine,
    /// The graph as it is, in each of its orders.
    pub programs: &'a [ProgramProfile],
    /// What is dropped in its points.
    pub dropped: &'a [Dropped],
    /// Seconds that it takes with nothing dropped.
    pub seconds: f64,
    /// What may be done.
    pub allowed: Allowed,
}

impl VariantBase<'_> {
    /// Seconds of a variant that changes bits: never fewer than those of the graph as it is, whatever the figures
    /// say, so that nothing is changed where everything fits.
    fn slower(&self, seconds: f64) -> f64 {
        seconds.max(self.seconds * 1.001)
    }
}

/// What the other variants of a graph are handed to as they are made, each with its points: only those that are worth
/// it are held.
pub trait VariantSink {
    /// Takes a variant.
    fn add(&mut self, variant: Variant, points: Vec<FrontierPoint>);

    /// Takes a point of the graph itself, in one of its orders.
    fn add_to_own(&mut self, order: usize, point: FrontierPoint);
}

/// The other variants of a graph.
pub fn all(
    own: &[Variant],
    with_residuals: &[Arc<Graph>],
    base: &VariantBase,
    sink: &mut impl VariantSink,
) {
    loop_checkpoints::variants(own, base, sink);
    let Some(first) = own.first() else { return };
    for graph in with_residuals {
        loop_residuals::variant(graph, &first.graph, base, sink);
    }
    segments::variants(first, base, sink);
    segments::points(own, base, sink);
    if base.allowed.micro_batches {
        batch::variants(&first.graph, base, sink);
    }
    if base.allowed.bf16 {
        bf16::variants(&first.graph, &first.pressure, base, sink);
    }
}

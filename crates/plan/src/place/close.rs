//! The end of a plan: places for the outputs, then addresses; or, without addresses, what the plan takes at least.
//! It comes after the last node has its place.
//!
//! The invariant: an outline is never above the plan of the same graph, so what it rules out for a budget cannot fit.

use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Node;

use super::outputs::Outputs;
use super::{InputSpec, Planner};
use crate::kept::Kept;
use crate::network;
use crate::plan::{OutputPlan, Plan, Space};
use crate::staging;
use crate::traffic::hidden_seconds;
use crate::{epilogue, joined};

/// What is known of a plan before its buffers have addresses.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Outline {
    /// The peak is at least this: no arena is smaller than what lives in it at once.
    pub peak: Bytes,
    /// What a call reads from files.
    pub reads: Bytes,
    /// What it writes to files that outlive it.
    pub writes: Bytes,
    /// Seconds of transfers between ranks that kernels hide.
    pub hidden: f64,
}

impl Planner<'_> {
    /// Places for the outputs, and the copies that put them there.
    fn place_outputs(&mut self) -> Result<Vec<OutputPlan>> {
        let given = self.options.outputs_given;
        Outputs::new(self).place(given)
    }

    /// Which transfers run on the network lane: what they hold lives until they are awaited.
    fn find_flights(&mut self) {
        let Some(most) = self.most_beside_network else { return };
        let (places, buffers) = (self.places.all(), self.buffers.all());
        for flight in network::find_flights(self.graph, places, self.steps.all(), buffers, most) {
            for buffer in &flight.buffers {
                self.buffers.extend_to(*buffer, flight.awaited - 1);
            }
            self.steps.note_flight(flight.begins, flight.awaited);
        }
    }

    /// What the inputs take.
    fn inputs(&self) -> Bytes {
        self.specs.iter().map(InputSpec::bytes).sum()
    }

    /// What an arena of that many bytes takes. That of a region is no block of its own but a piece of a step's scratch:
    /// rounded again, its end would be bytes that are never used.
    fn whole(&self, arena: Bytes) -> Bytes {
        if self.options.outputs_given { arena } else { self.options.target.block(arena) }
    }

    /// The plan.
    pub(super) fn finish(mut self) -> Result<Plan> {
        let outputs = self.place_outputs()?;
        self.find_flights();
        let bound = self.buffers.pack()?;
        let arena = self.whole(self.buffers.end_of(Space::Memory));
        let inputs = self.inputs();
        let disk = self.buffers.end_of(Space::Disk);
        let host_spill = self.buffers.end_of(Space::Host).rounded();
        self.steps.note_lifetimes(&self.buffers);
        let written = self.steps.written_inputs(&self.places, self.graph.inputs.len());
        let is_bound = self.steps.is_bound();
        let mut steps = self.steps.into_all();
        staging::note(self.graph, self.places.all(), &mut steps, &*self.options.target);
        epilogue::join(self.graph, self.places.all(), &mut steps, &*self.options.target);
        joined::join(self.places.all(), &mut steps, &self.options.target.tile_limits());
        // A plan is kept for as long as its function.
        steps.shrink_to_fit();
        let mut buffers = self.buffers.into_all();
        buffers.shrink_to_fit();
        Ok(Plan {
            graph: self.graph.clone(),
            program: self.graph.clone(),
            inputs,
            input_bytes: self.specs.iter().map(InputSpec::bytes).collect(),
            specs: self.specs,
            target: self.options.target,
            places: self.places.into_all(),
            steps,
            buffers,
            outputs,
            arena,
            disk,
            host_spill,
            file_values: self.file_values.into_all(),
            bound,
            written,
            is_bound,
            calls_host: self.graph.nodes.iter().any(Node::calls_host),
            fitted: None,
            segments: Vec::new(),
            kept: Kept::default(),
        })
    }

    /// What lives in the arena at once, at most, where transfers run as steps.
    pub(super) fn bound(mut self) -> Result<Bytes> {
        self.place_outputs()?;
        self.buffers.bound()
    }

    /// What the plan takes at least, and does with files.
    pub(super) fn outline(mut self) -> Result<Outline> {
        let outputs = self.place_outputs()?;
        self.find_flights();
        let arena = self.whole(self.buffers.bound()?);
        let own: Bytes = outputs.iter().map(OutputPlan::own_bytes).sum();
        Ok(Outline {
            peak: self.inputs() + arena + own,
            reads: self.steps.reads_stored(),
            writes: self.file_values.bytes(),
            hidden: hidden_seconds(self.graph, self.steps.all(), &self.options.target.machine()),
        })
    }
}

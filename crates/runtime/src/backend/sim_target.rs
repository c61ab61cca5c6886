//! What `sim:0` tells the planner: the CPU's kernels, in memory with rules of its own.

use tonnage_core::layout::Layout;
use tonnage_core::row::Call;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, OpDef, Scalar};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{Machine, SharedTarget, Target};

/// A device that runs the kernels of a CPU.
#[derive(Debug)]
pub struct SimTarget(pub SharedTarget);

impl Target for SimTarget {
    fn name(&self) -> String {
        format!("sim, as {}", self.0.name())
    }

    fn machine(&self) -> Machine {
        self.0.machine()
    }

    fn tile_limits(&self) -> TileLimits {
        self.0.tile_limits()
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        super::sim::block(bytes)
    }

    fn cuts_from(&self) -> Option<Bytes> {
        None
    }

    fn scratch(&self, op: &OpDef, call: &Call, stored: &[Option<&Layout>]) -> Bytes {
        self.0.scratch(op, call, stored)
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        self.0.tile_scratch(program, domain)
    }

    fn streamed(&self, op: &OpDef, call: &Call, input: usize, layout: &Layout) -> Option<usize> {
        self.0.streamed(op, call, input, layout)
    }

    fn has_epilogue(&self, op: &OpDef) -> bool {
        self.0.has_epilogue(op)
    }

    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        self.0.file_pieces(bytes)
    }

    fn rows_in_file(&self, op: &OpDef, attrs: &Attrs, table: usize, rows: usize) -> Option<Bytes> {
        self.0.rows_in_file(op, attrs, table, rows)
    }

    fn uniform(
        &self,
        program: &TileProgram,
        domain: &[usize],
        inputs: &[Scalar],
    ) -> Option<Scalar> {
        self.0.uniform(program, domain, inputs)
    }
}

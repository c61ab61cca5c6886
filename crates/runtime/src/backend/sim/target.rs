//! What `sim:0` tells the planner: the CPU's kernels, in memory with rules of its own.

use tonnage_core::layout::Layout;
use tonnage_core::row::Call;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, DType, OpDef, Scalar};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{Machine, SharedTarget, Space, Target, TileRun};

/// A device that runs the kernels of a CPU.
#[derive(Debug)]
pub struct SimTarget {
    /// Whose kernels it runs.
    pub cpu: SharedTarget,
    /// Whether it leaves them to the host, all but tile programs.
    pub no_kernels: bool,
}

impl Target for SimTarget {
    fn name(&self) -> String {
        format!("sim, as {}", self.cpu.name())
    }

    fn machine(&self) -> Machine {
        self.cpu.machine()
    }

    fn tile_limits(&self) -> TileLimits {
        self.cpu.tile_limits()
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        super::block(bytes)
    }

    fn cuts_from(&self) -> Option<Bytes> {
        None
    }

    fn scratch(&self, op: &OpDef, call: &Call, stored: &[Option<&Layout>]) -> Bytes {
        match self.no_kernels {
            true => Bytes::ZERO,
            false => self.cpu.scratch(op, call, stored),
        }
    }

    fn keeps_bits(&self, op: &OpDef, whole: &Call, piece: &Call) -> bool {
        self.cpu.keeps_bits(op, whole, piece)
    }

    fn spill_space(&self) -> Space {
        Space::Host
    }

    fn host_scratch(&self, op: &OpDef, call: &Call, _: &[&Layout]) -> Option<Bytes> {
        let on_host = self.no_kernels || matches!(call.attrs, Attrs::Host { .. });
        on_host.then(|| self.cpu.scratch(op, call, &[]))
    }

    fn host_tile_scratch(&self, _: &TileRun) -> Option<Bytes> {
        None
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        self.cpu.tile_scratch(program, domain)
    }

    fn streamed(&self, op: &OpDef, call: &Call, input: usize, layout: &Layout) -> Option<usize> {
        match self.no_kernels {
            true => None,
            false => self.cpu.streamed(op, call, input, layout),
        }
    }

    fn takes_epilogue(&self, op: &OpDef, dtype: DType, run: &TileRun, made: &[usize]) -> bool {
        !self.no_kernels && self.cpu.takes_epilogue(op, dtype, run, made)
    }

    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        self.cpu.file_pieces(bytes)
    }

    fn rows_in_file(&self, op: &OpDef, attrs: &Attrs, table: usize, rows: usize) -> Option<Bytes> {
        self.cpu.rows_in_file(op, attrs, table, rows)
    }

    fn uniform(
        &self,
        program: &TileProgram,
        domain: &[usize],
        inputs: &[Scalar],
    ) -> Option<Scalar> {
        self.cpu.uniform(program, domain, inputs)
    }
}

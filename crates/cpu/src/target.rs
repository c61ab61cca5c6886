//! What the CPU tells the planner: the workspace of its kernels by the number of threads, its tile programs, its rates.

use tonnage_core::bytes::{Bytes, LARGE};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Lower, Mem};
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, DType, OpDef, Scalar};
use tonnage_ops::OpId;
use tonnage_ops::tile::{TileLimits, domain};
use tonnage_plan::{Machine, Space, Target, TileRun, keeps_order};

use crate::index::rows_in_parts;
use crate::linalg::matmul;
use crate::table::kernel_of;
use crate::tile;

/// A CPU with so many threads.
///
/// ```
/// use tonnage_core::{Attrs, Call, DType, TensorType};
/// use tonnage_cpu::CpuTarget;
/// use tonnage_ops::linalg::matmul::MATMUL;
/// use tonnage_plan::{Machine, Target};
/// let types = [TensorType::new(DType::F32, [512, 512]), TensorType::new(DType::F32, [512, 512])];
/// let attrs = Attrs::Matmul { transpose_a: false, transpose_b: false };
/// let call = Call::new(&MATMUL, &types, &attrs);
/// let scratch = |threads| CpuTarget::new(threads, Machine::DEFAULT).scratch(&MATMUL, &call, &[]);
/// assert!(scratch(1) <= scratch(8), "threads pack panels of their own");
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CpuTarget {
    /// Threads that kernels run on.
    pub threads: usize,
    machine: Machine,
}

impl CpuTarget {
    /// With so many threads, and those rates.
    pub const fn new(threads: usize, machine: Machine) -> CpuTarget {
        CpuTarget { threads, machine }
    }

    /// Workspace of an op that is a tile program: of the reduction that it ends in, or of what goes to a file.
    fn program_scratch(&self, op: &OpDef, call: &Call) -> Bytes {
        let scratch = match call.attrs {
            Attrs::Tile(_) if op.mem == Mem::File => (op.infer)(call)
                .ok()
                .and_then(|made| made.first()?.bytes(call.op).ok())
                .map(|bytes| self.file_pieces(bytes)),
            Attrs::Tile(program) => domain(call, program)
                .ok()
                .and_then(|domain| domain.most())
                .map(|domain| tile::scratch(program, &domain)),
            Attrs::Reduce { axes, .. } => {
                call.inputs[0].shape.most().map(|domain| tile::reduction_scratch(&domain, axes))
            }
            _ => None,
        };
        scratch.unwrap_or(Bytes::ZERO)
    }
}

impl Target for CpuTarget {
    fn name(&self) -> String {
        format!("cpu, {} thread{}", self.threads, if self.threads == 1 { "" } else { "s" })
    }

    fn machine(&self) -> Machine {
        self.machine
    }

    fn tile_limits(&self) -> TileLimits {
        tile::LIMITS
    }

    fn has_network_lane(&self) -> bool {
        true
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        bytes.rounded()
    }

    fn cuts_from(&self) -> Option<Bytes> {
        Some(Bytes::new(LARGE))
    }

    fn scratch(&self, op: &OpDef, call: &Call, stored: &[Option<&Layout>]) -> Bytes {
        match (op.lower, kernel_of(op)) {
            (_, Some(kernel)) => kernel.workspace(call, stored, self.threads),
            (Lower::Tile(_), None) => self.program_scratch(op, call),
            _ => Bytes::ZERO,
        }
    }

    fn keeps_bits(&self, op: &OpDef, whole: &Call, piece: &Call) -> bool {
        match op.id == OpId::Matmul as u16 {
            true => matmul::keeps_bits(whole, piece),
            false => keeps_order(op, whole),
        }
    }

    fn spill_space(&self) -> Space {
        Space::Disk
    }

    fn host_scratch(&self, _: &OpDef, _: &Call, _: &[&Layout]) -> Option<Bytes> {
        None
    }

    fn host_tile_scratch(&self, _: &TileRun) -> Option<Bytes> {
        None
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        tile::scratch(program, domain)
    }

    fn streamed(&self, op: &OpDef, call: &Call, input: usize, layout: &Layout) -> Option<usize> {
        (kernel_of(op)?.streaming?.reads)(call, input, layout)
    }

    // Numbers of 16 bits are summed in more, and would be rounded once where two steps round twice.
    fn takes_epilogue(&self, op: &OpDef, dtype: DType, _: &TileRun, _: &[usize]) -> bool {
        let hands_over = kernel_of(op).is_some_and(|kernel| kernel.has_epilogue);
        hands_over && matches!(dtype, DType::F32 | DType::F64)
    }

    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        tile::file_pieces(bytes, self.threads)
    }

    fn rows_in_file(&self, op: &OpDef, attrs: &Attrs, table: usize, rows: usize) -> Option<Bytes> {
        rows_in_parts::can(op, attrs, table, rows).then(|| rows_in_parts::order_bytes(rows))
    }

    fn uniform(
        &self,
        program: &TileProgram,
        domain: &[usize],
        inputs: &[Scalar],
    ) -> Option<Scalar> {
        tile::uniform(program, domain, inputs)
    }
}

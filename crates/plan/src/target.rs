//! What a device tells the planner: data and pure functions, so that plans for a device are made, printed and tested where there
//! is none.
//!
//! Decision: `docs/decisions/ops-and-kernels-apart.md`.

use std::fmt;
use std::sync::Arc;

use tonnage_core::bytes::LARGE;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Lower};
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, DType, OpDef, Scalar, TensorType};
use tonnage_ops::tile::TileLimits;

use crate::budget::Machine;
use crate::plan::{Space, TileRun};

/// A device, as far as plans depend on it.
pub trait Target: fmt::Debug + Send + Sync {
    /// What it is called: `cpu, 2 threads`.
    fn name(&self) -> String;

    /// What it does in a second, and what its links to files carry.
    fn machine(&self) -> Machine;

    /// The largest tile programs that it runs.
    fn tile_limits(&self) -> TileLimits;

    /// What a block of memory takes that holds that many bytes: an arena is one. The rule that its ledger has too.
    fn block(&self, bytes: Bytes) -> Bytes;

    /// Results of so many bytes and more are cut out of the arena when a call ends, and smaller ones have blocks of their own; `None`
    /// where a block can only go back whole, so that all have their own.
    fn cuts_from(&self) -> Option<Bytes>;

    /// Workspace of one call of an op; `stored` says where inputs lie outside of memory, in the order of the inputs, and is empty
    /// where none does.
    fn scratch(&self, op: &OpDef, call: &Call, stored: &[Option<&Layout>]) -> Bytes;

    /// Where values wait that a plan spills: in a file, or of a device in host memory.
    fn spill_space(&self) -> Space;

    /// Whether transfers to other ranks run beside its kernels.
    fn has_network_lane(&self) -> bool {
        false
    }

    /// From a row of a tensor to the next, in elements, where products that make or read it are quicker with rows that lie apart;
    /// `None` where they follow each other closely.
    fn row_step(&self, _ty: &TensorType) -> Option<usize> {
        None
    }

    /// Whether the kernel of an op can write the rows of its one output apart.
    fn makes_rows_apart(&self, _op: &OpDef, _attrs: &Attrs) -> bool {
        false
    }

    /// Workspace in host memory of one call of an op that a device leaves to the host, because it has no kernel for it; `None` where
    /// it runs the op itself. `layouts` are those of the inputs, in their order, as far as they lie in memory.
    fn host_scratch(&self, op: &OpDef, call: &Call, layouts: &[&Layout]) -> Option<Bytes>;

    /// The same for a tile program.
    fn host_tile_scratch(&self, run: &TileRun) -> Option<Bytes>;

    /// Workspace of a tile program over a domain.
    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes;

    /// How many elements the kernel of an op reads of an input that lies outside of memory in that layout; `None` where the input
    /// is to be brought into memory.
    fn streamed(&self, op: &OpDef, call: &Call, input: usize, layout: &Layout) -> Option<usize>;

    /// Whether the kernel of an op gives a piece of its results, from pieces of its inputs, the bits that this piece has in the
    /// whole. A kernel that cuts its sums by the size of a call does not.
    fn keeps_bits(&self, op: &OpDef, whole: &Call, piece: &Call) -> bool;

    /// Whether the kernel of an op can finish its first output, of that dtype, by a tile program as it makes it; `made` are the loads
    /// of the program that read it.
    fn takes_epilogue(&self, op: &OpDef, dtype: DType, run: &TileRun, made: &[usize]) -> bool;

    /// Whether the kernel of an op writes an output in any order of its axes but the last, along which elements lie side by side.
    fn lays_out(&self, _: &OpDef, _: &Call, _: usize) -> bool {
        false
    }

    /// What elements are made in on their way to a file that takes that many bytes.
    fn file_pieces(&self, bytes: Bytes) -> Bytes;

    /// Workspace of an op that puts that many rows into a table that stays in a file; `None` where it cannot.
    fn rows_in_file(&self, op: &OpDef, attrs: &Attrs, table: usize, rows: usize) -> Option<Bytes>;

    /// The one value that a program gives where each input has one value everywhere, in the bits of its kernels; `None` where
    /// it is left to the call.
    fn uniform(&self, program: &TileProgram, domain: &[usize], inputs: &[Scalar])
    -> Option<Scalar>;
}

/// Whether an op adds up what belongs to an element in an order that does not depend on how many elements there are: all but
/// products and what is made of them. An answer for [`Target::keeps_bits`] where a device knows no better.
pub fn keeps_order(op: &OpDef, call: &Call) -> bool {
    let of_products = matches!(call.attrs, Attrs::Conv(_) | Attrs::Attention { .. });
    !matches!(op.lower, Lower::Kernel) || (!of_products && (op.axes)(call).summed.is_empty())
}

/// A device that is only described: kernels without workspace, and no constants folded.
///
/// For examples, and for a first size of a program on a device that is not there.
#[derive(Debug, Clone)]
pub struct DescribedTarget {
    /// What it is called.
    pub name: String,
    /// What it does in a second.
    pub machine: Machine,
    /// The largest tile programs that it runs.
    pub tile_limits: TileLimits,
    /// Memory is obtained in blocks of whole multiples of this.
    pub block: Bytes,
    /// See [`Target::cuts_from`].
    pub cuts_from: Option<Bytes>,
    /// See [`Target::spill_space`].
    pub spill_space: Space,
}

impl Default for DescribedTarget {
    fn default() -> DescribedTarget {
        DescribedTarget {
            name: "described".to_string(),
            machine: Machine::DEFAULT,
            tile_limits: TileLimits { registers: 128, stores: 4, live: 32 },
            block: Bytes::new(64),
            cuts_from: Some(Bytes::new(LARGE)),
            spill_space: Space::Disk,
        }
    }
}

impl Target for DescribedTarget {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn machine(&self) -> Machine {
        self.machine
    }

    fn tile_limits(&self) -> TileLimits {
        self.tile_limits
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        let blocks = bytes.get().div_ceil(self.block.get().max(1));
        Bytes::new(blocks.saturating_mul(self.block.get().max(1)))
    }

    fn cuts_from(&self) -> Option<Bytes> {
        self.cuts_from
    }

    fn scratch(&self, _: &OpDef, _: &Call, _: &[Option<&Layout>]) -> Bytes {
        Bytes::ZERO
    }

    fn spill_space(&self) -> Space {
        self.spill_space
    }

    fn host_scratch(&self, _: &OpDef, _: &Call, _: &[&Layout]) -> Option<Bytes> {
        None
    }

    fn host_tile_scratch(&self, _: &TileRun) -> Option<Bytes> {
        None
    }

    fn tile_scratch(&self, _: &TileProgram, _: &[usize]) -> Bytes {
        Bytes::ZERO
    }

    fn streamed(&self, _: &OpDef, _: &Call, _: usize, _: &Layout) -> Option<usize> {
        None
    }

    fn keeps_bits(&self, op: &OpDef, whole: &Call, _: &Call) -> bool {
        keeps_order(op, whole)
    }

    fn takes_epilogue(&self, _: &OpDef, _: DType, _: &TileRun, _: &[usize]) -> bool {
        false
    }

    fn file_pieces(&self, bytes: Bytes) -> Bytes {
        bytes
    }

    fn rows_in_file(&self, _: &OpDef, _: &Attrs, _: usize, _: usize) -> Option<Bytes> {
        None
    }

    fn uniform(&self, _: &TileProgram, _: &[usize], _: &[Scalar]) -> Option<Scalar> {
        None
    }
}

/// A device that several plans are for.
pub type SharedTarget = Arc<dyn Target>;

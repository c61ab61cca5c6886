//! What a device does: it runs the steps of plans and the ops of eager mode over byte ranges of its memory.
//!
//! [`Backend`] is one device. Whoever launches something says what is to run (a [`TileLaunch`], a [`KernelLaunch`], ...) and on which
//! [`Regions`], which [`Lender`](crate::lend::Lender) has checked; values, places and loops are not known here. `cpu` runs it at once,
//! over slices; `sim` puts it into a queue, and its memory has no slices.
//!
//! Decision: `docs/decisions/devices-are-backends.md`.

mod copies;
mod cpu;
mod cuda;
mod host_step;
mod sim;

use std::fmt;

use smallvec::SmallVec;
use tonnage_core::dtype::DType;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Stored};
use tonnage_core::row::{Call, Cost, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, Device};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{FileValuePlan, SharedTarget, TileRead, TileRun};

use crate::interrupt::Stop;
use crate::lend::{ByteRange, Region, RegionMut, Regions};
use crate::spill::FileValue;
use crate::system::HostPin;

pub use copies::{CopyTicket, HostBlock, HostPart};
pub use cpu::CPU;
pub use cuda::Cuda;
pub use sim::{Sim, SimTarget};
pub use tonnage_cuda::driver::library::set_packages;
pub use tonnage_cuda::driver::{DeviceMoment, GpuInfo, RecordedLaunches, list as gpus};

pub use host_step::{HostStep, HostStepPolicy, refused as refused_on_host};

use host_step::host_step;

/// A device that runs things. What is launched runs in the order of the launches, and may run late.
///
/// An error of something that runs late comes out of whatever waits for it; what was launched behind it is not run then, so an update
/// behind an error does not happen.
pub trait Backend: fmt::Debug + Send + Sync {
    /// Its name.
    fn device(&self) -> Device;

    /// What plans for it are made for.
    fn target(&self) -> SharedTarget;

    /// The largest tile programs that it runs.
    fn tile_limits(&self) -> TileLimits;

    /// Workspace of one call of an op that is a kernel; see [`Target::scratch`](tonnage_plan::Target::scratch).
    fn scratch(
        &self,
        op: &'static OpDef,
        call: &Call,
        stored: &[Option<&Layout>],
        cost: Cost,
    ) -> Bytes;

    /// Workspace of a tile program over a domain.
    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes;

    /// All the memory that it has, where that is known.
    fn capacity(&self) -> Option<Bytes>;

    /// Other processes that have memory of it, and how much where that is known.
    fn other_processes(&self) -> Vec<(String, Option<Bytes>)> {
        Vec::new()
    }

    /// Runs a tile program.
    fn tile(&self, launch: &TileLaunch<'_>, regions: Regions<'_>) -> Result<()>;

    /// Whether it has a short way for ops of one instruction.
    fn has_direct(&self) -> bool {
        false
    }

    /// Runs an op of one instruction over elements that lie in order, the short way; false where this one has none. Its regions: the
    /// inputs; the output.
    fn direct(&self, _launch: &DirectLaunch<'_>, _regions: &Regions<'_>) -> Result<bool> {
        Ok(false)
    }

    /// Runs a kernel; the sizes of its outputs, as it decided them.
    fn kernel(
        &self,
        launch: KernelLaunch<'_>,
        regions: Regions<'_>,
    ) -> Result<SmallVec<[Sizes; 2]>>;

    /// Runs a tile program whose output is a value in a file, made piece by piece in the region that is written.
    fn tile_to_file(&self, launch: &TileToFile<'_>, regions: Regions<'_>) -> Result<()>;

    /// Puts rows into a table that stays in a file; pieces are made in the region that is written.
    fn rows_to_file(&self, launch: RowsToFile<'_>, regions: Regions<'_>) -> Result<()>;

    /// Copies the region that is read to the one that is written: all of it, or the elements of a layout, each of so many bytes, in
    /// their order.
    fn copy(&self, elements: Option<(&Layout, usize)>, regions: Regions<'_>) -> Result<()>;

    /// Copies a region to the host, and waits for it: a number that says what runs next, or a value that is read.
    fn read(&self, from: Region<'_>, to: &mut [u8]) -> Result<()>;

    /// Copies bytes of the host to a region.
    fn write(&self, from: &[u8], to: RegionMut<'_>) -> Result<()>;

    /// Pins host memory until that is dropped, which is before the memory is; nothing on a device that copies as fast without.
    fn pin(&self, _bytes: &mut [u8]) -> Option<Box<dyn HostPin>> {
        None
    }

    /// Begins to copy a region to host memory, in the lane of copies: behind what was launched before, beside what is launched next.
    /// Nobody may write the region before the copy is awaited. A device without such a lane copies at once.
    fn begin_copy_out(&self, from: Region<'_>, to: HostPart) -> Result<CopyTicket> {
        to.with_bytes(|to| self.read(from, to))?;
        Ok(CopyTicket(0))
    }

    /// Begins to copy host memory to a region, in the same lane. Nobody may use the region before the copy is awaited.
    fn begin_copy_in(&self, from: HostPart, to: RegionMut<'_>) -> Result<CopyTicket> {
        from.with_bytes(|from| self.write(from, to))?;
        Ok(CopyTicket(0))
    }

    /// Puts what is launched from now on behind a copy.
    fn await_copy(&self, _copy: CopyTicket) -> Result<()> {
        Ok(())
    }

    /// A moment behind what was launched so far, by the clock of a device that runs late; nothing where all has run by now that was launched.
    fn moment(&self) -> Option<DeviceMoment> {
        None
    }

    /// Whether it records calls, to launch them again as one.
    fn records(&self) -> bool {
        false
    }

    /// Records what `launch` launches on this thread, instead of running it; nothing where that cannot be recorded or is not worth it.
    fn record(&self, _launch: &mut dyn FnMut() -> Result<()>) -> Option<RecordedLaunches> {
        None
    }

    /// Launches what it recorded.
    fn replay(&self, _recorded: &RecordedLaunches) -> Result<()> {
        let what = "it records nothing".into();
        Err(ErrorKind::DeviceFailed { device: self.device(), what }.into())
    }

    /// Waits for all that was launched, copies too.
    fn wait(&self) -> Result<()>;
}

/// Byte ranges that a launch is lent to read.
pub type Reads = SmallVec<[ByteRange; 4]>;

/// Where the operands of a launch are read from, in their order.
pub type ReadSources = SmallVec<[ReadSource; 4]>;

/// Where a launch reads something from.
#[derive(Debug, Clone)]
pub enum ReadSource {
    /// The region of that number.
    Range(usize),
    /// Its own output of that number.
    Output(usize),
    /// No memory: computed, or in a file.
    Generator(Generator),
}

impl ReadSource {
    /// Bytes that are an output's, or are to be lent.
    pub fn of(byte_range: ByteRange, outputs: &[ByteRange], reads: &mut Reads) -> ReadSource {
        match outputs.iter().position(|w| same_start(w, &byte_range)) {
            Some(output) => ReadSource::Output(output),
            None => {
                reads.push(byte_range);
                ReadSource::Range(reads.len() - 1)
            }
        }
    }
}

/// Whether two byte ranges start at the same byte, and have any.
fn same_start(a: &ByteRange, b: &ByteRange) -> bool {
    a.base == b.base && a.offset == b.offset && a.len > 0 && b.len > 0
}

/// A tile program and what it runs over. Its regions: what its loads read; its outputs, and behind them its scratch, if it has any.
#[derive(Debug)]
pub struct TileLaunch<'a> {
    /// The program.
    pub program: &'a TileProgram,
    /// What it runs over.
    pub domain: &'a [usize],
    /// What its loads read.
    pub loads: &'a [ReadSource],
    /// How that lies.
    pub layouts: SmallVec<[&'a Layout; 4]>,
    /// How many outputs there are.
    pub outputs: usize,
    /// What it takes, to decide on threads.
    pub cost: Cost,
    /// What stops it before its end.
    pub stop: Option<&'a Stop>,
}

/// An op of one instruction whose inputs are as long as its result, or one element for all.
#[allow(missing_debug_implementations, reason = "a call has none")]
pub struct DirectLaunch<'a> {
    /// The op, without attributes.
    pub op: &'static OpDef,
    /// Its call.
    pub call: &'a Call<'a>,
    /// How many elements each input has.
    pub lengths: &'a [usize],
    /// How many elements the result has.
    pub count: usize,
}

/// An input of a kernel.
#[derive(Debug, Clone)]
pub struct KernelInput {
    /// Its dtype.
    pub dtype: DType,
    /// How it lies.
    pub layout: Layout,
    /// Where.
    pub from: ReadSource,
}

/// An output of a kernel.
#[derive(Debug, Clone)]
pub struct KernelOutput {
    /// Its dtype.
    pub dtype: DType,
    /// Its sizes, at their bounds where the kernel decides them, and how its elements lie: in order, but where the
    /// [device](tonnage_plan::Target::lays_out) writes them in another.
    pub layout: Layout,
}

/// A kernel and what it runs over. Its regions: what it and its epilogue read; its outputs, and behind them its scratch, if it has any.
#[derive(Debug)]
pub struct KernelLaunch<'a> {
    /// The op.
    pub op: &'static OpDef,
    /// Attributes, with all sizes known.
    pub attrs: &'a Attrs,
    /// Its inputs.
    pub inputs: SmallVec<[KernelInput; 4]>,
    /// Its outputs.
    pub outputs: SmallVec<[KernelOutput; 2]>,
    /// Whether it decides sizes of its outputs.
    pub decides: bool,
    /// The tile program that finishes what it makes, and what its loads read.
    pub epilogue: Option<(&'a TileRun, &'a [ReadSource])>,
    /// What it takes, to decide on threads.
    pub cost: Cost,
    /// What stops it before its end.
    pub stop: Option<&'a Stop>,
}

/// A tile program whose output is a value in a file. Its regions: what its loads read; where threads make pieces.
#[derive(Debug)]
pub struct TileToFile<'a> {
    /// The program and its domain.
    pub run: &'a TileRun,
    /// What its loads read.
    pub loads: &'a [ReadSource],
    /// What the value is.
    pub planned: &'a FileValuePlan,
    /// Where it goes.
    pub to: &'a FileValue,
}

/// A table in a file with some of its rows changed, to another place. Its regions: indices and rows; where threads make pieces, behind
/// the order of the rows.
#[derive(Debug)]
pub struct RowsToFile<'a> {
    /// How rows are changed.
    pub op: &'static OpDef,
    /// The sizes of the table.
    pub sizes: &'a [usize],
    /// Its dtype.
    pub dtype: DType,
    /// The table as it is.
    pub old: &'a Stored,
    /// Indices and rows.
    pub inputs: SmallVec<[KernelInput; 2]>,
    /// Where the table goes.
    pub to: &'a FileValue,
}

/// How what the loads of a planned program read lies.
pub fn load_layouts(run: &TileRun) -> impl Iterator<Item = &Layout> {
    run.reads.iter().map(|read| {
        let (TileRead::Generator(_, layout) | TileRead::Input(_, layout)) = read;
        layout
    })
}

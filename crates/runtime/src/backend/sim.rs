//! `sim:0`: a device for tests, without hardware.
//!
//! It has what makes devices hard: addresses that host code cannot dereference, a limit of its own, and a queue that runs as late as it
//! may. Kernels are the CPU's, so results have its bits, and whoever assumes host memory, or forgets to wait, fails at once.
//!
//! Addresses are those of hidden host memory, moved to where no machine maps anything. Nothing runs when it is launched: all waits in the
//! queue until somebody reads something, or waits for the device. Bytes that are released go back behind what was launched before.
#![allow(unsafe_code, reason = "makes slices of the device's own memory")]

use std::collections::VecDeque;
use std::fmt;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Cost, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, Device};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::{SharedTarget, TileRun};

use super::sim_target::SimTarget;
use super::{
    Backend, CPU, KernelInput, KernelLaunch, KernelOutput, ReadSource, RowsToFile, TileLaunch,
    TileToFile, host_step,
};
use crate::lend::{Region, RegionMut, Regions};
use crate::system::{Backing, Memory, MemoryBlock};

/// How far addresses are moved: with the highest bit but one, no system on 64 bits maps anything there.
const MOVED: usize = 1 << 62;

/// The device.
pub struct Sim(Mutex<SimState>);

#[derive(Default)]
struct SimState {
    queue: VecDeque<Command>,
    blocks: Vec<MemoryBlock>,
    /// What failed, until somebody who waits is told.
    failed: Option<Error>,
    /// Commands until one fails.
    fail_in: Option<u64>,
}

/// Something that was launched and has not run.
enum Command {
    Run {
        work: Box<Work>,
        reads: Vec<Span>,
        writes: Vec<Span>,
    },
    /// Bytes of the host, to an address.
    CopyIn {
        from: Vec<u8>,
        to: Span,
    },
    Release {
        address: NonZero<usize>,
    },
}

/// Bytes of the device, by where they really are.
#[derive(Clone, Copy)]
struct Span {
    start: usize,
    len: usize,
}

/// What a launch is, owned: what launched it is gone when it runs.
#[allow(clippy::large_enum_variant, reason = "it is boxed whole")]
enum Work {
    Tile {
        program: TileProgram,
        domain: Sizes,
        loads: Vec<ReadSource>,
        layouts: SmallVec<[Layout; 4]>,
        outputs: usize,
        cost: Cost,
    },
    Kernel {
        op: &'static OpDef,
        attrs: Attrs,
        inputs: SmallVec<[KernelInput; 4]>,
        outputs: SmallVec<[KernelOutput; 2]>,
        epilogue: Option<(TileRun, Vec<ReadSource>)>,
        cost: Cost,
    },
    Copy(Option<(Layout, usize)>),
    Fill(u8),
}

impl Sim {
    /// A device of its own, with nothing in its memory.
    pub fn new() -> Arc<Sim> {
        Arc::new(Sim(Mutex::default()))
    }

    /// Makes the `n`th launch that runs from now on (1 is the next) fail as a device does that stops working. `None` calls that off.
    /// For tests.
    pub fn fail_nth(&self, n: Option<u64>) {
        self.lock().fail_in = n;
    }

    fn lock(&self) -> MutexGuard<'_, SimState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self, work: Work, regions: &Regions<'_>) {
        let reads = regions.reads.iter().map(|region| Span::of(region.address(), region.len()));
        let writes = regions.writes.iter().map(|region| Span::of(region.address(), region.len()));
        let (reads, writes) = (reads.collect(), writes.collect());
        let work = Box::new(work);
        self.lock().queue.push_back(Command::Run { work, reads, writes });
    }

    /// Runs what waits, and then this, over the device's memory.
    fn at_once<R>(
        &self,
        regions: &Regions<'_>,
        f: impl FnOnce(Regions<'_>) -> Result<R>,
    ) -> Result<R> {
        let mut state = self.lock();
        state.run_all()?;
        let reads: Vec<Span> =
            regions.reads.iter().map(|region| Span::of(region.address(), region.len())).collect();
        let writes: Vec<Span> =
            regions.writes.iter().map(|region| Span::of(region.address(), region.len())).collect();
        state.count()?;
        f(hidden(&reads, &writes))
    }
}

impl SimState {
    /// Runs what waits; the error of what failed, once.
    fn run_all(&mut self) -> Result<()> {
        while let Some(command) = self.queue.pop_front() {
            // Behind an error nothing runs: what an update would write stays as it is.
            if let Err(error) = self.run(command) {
                self.failed.get_or_insert(error);
            }
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    fn run(&mut self, command: Command) -> Result<()> {
        match command {
            Command::Release { address } => {
                self.blocks.retain(|block| block.address() != address.get());
                Ok(())
            }
            _ if self.failed.is_some() => Ok(()),
            Command::CopyIn { from, to } => {
                let to = hidden(&[], &[to]).writes.remove(0);
                to.into_bytes()?.copy_from_slice(&from);
                Ok(())
            }
            Command::Run { work, reads, writes } => {
                self.count()?;
                work.run(hidden(&reads, &writes))
            }
        }
    }

    /// Counts down to the launch that is made to fail.
    fn count(&mut self) -> Result<()> {
        let Some(left) = self.fail_in else { return Ok(()) };
        self.fail_in = left.checked_sub(1).filter(|left| *left > 0);
        match left {
            ..=1 => {
                let what = "it was made to fail".into();
                Err(ErrorKind::DeviceFailed { device: Device::SIM, what }.into())
            }
            _ => Ok(()),
        }
    }
}

impl Span {
    /// That of an address of the device.
    fn of(address: usize, len: usize) -> Span {
        Span { start: address.wrapping_sub(MOVED), len }
    }
}

/// Regions of hidden memory that a launch was lent.
fn hidden<'l>(reads: &[Span], writes: &[Span]) -> Regions<'l> {
    // SAFETY: the spans are of blocks of the device, which are released through its queue and so after what was launched before;
    // they are initialized. `lend` found that none that is written overlaps another of its launch, and launches run one at a time, under
    // the lock.
    unsafe {
        Regions {
            reads: reads.iter().map(|span| Region::at(span.start, span.len)).collect(),
            writes: writes.iter().map(|span| RegionMut::at(span.start, span.len)).collect(),
        }
    }
}

impl Work {
    fn run(self, regions: Regions<'_>) -> Result<()> {
        match self {
            Work::Tile { program, domain, loads, layouts, outputs, cost } => {
                let (program, domain, loads) = (&program, &domain[..], &loads[..]);
                let stop = None;
                let layouts = layouts.iter().collect();
                let launch = TileLaunch { program, domain, loads, layouts, outputs, cost, stop };
                CPU.tile(&launch, regions)
            }
            Work::Kernel { op, attrs, inputs, outputs, epilogue, cost } => {
                let (attrs, decides, stop) = (&attrs, false, None);
                let epilogue = epilogue.as_ref().map(|(run, loads)| (run, &loads[..]));
                let launch =
                    KernelLaunch { op, attrs, inputs, outputs, decides, epilogue, cost, stop };
                CPU.kernel(launch, regions).map(|_| ())
            }
            Work::Copy(elements) => {
                CPU.copy(elements.as_ref().map(|(layout, size)| (layout, *size)), regions)
            }
            Work::Fill(byte) => regions.writes.into_iter().try_for_each(|region| {
                region.into_bytes()?.fill(byte);
                Ok(())
            }),
        }
    }
}

/// Memory of the device comes in whole multiples of this: not the host's rule.
const BLOCK: u64 = 512;

pub(super) fn block(bytes: Bytes) -> Bytes {
    Bytes::new(bytes.get().checked_next_multiple_of(BLOCK).unwrap_or(bytes.get()))
}

impl Memory for Sim {
    fn device(&self) -> Device {
        Device::SIM
    }

    fn block(&self, bytes: Bytes) -> Bytes {
        block(bytes)
    }

    fn obtain(&self, len: usize) -> Option<NonZero<usize>> {
        let block = MemoryBlock::obtain(Backing::NATIVE, Bytes::of(len))?;
        let address = NonZero::new(block.expose()? + MOVED)?;
        self.lock().blocks.push(block);
        Some(address)
    }

    fn release(&self, address: NonZero<usize>, _: usize) {
        if let Some(address) = NonZero::new(address.get().wrapping_sub(MOVED)) {
            self.lock().queue.push_back(Command::Release { address });
        }
    }

    fn copy_in(&self, from: &[u8], to: usize) -> Result<()> {
        let to = Span::of(to, from.len());
        self.lock().queue.push_back(Command::CopyIn { from: from.to_vec(), to });
        Ok(())
    }

    fn copy_out(&self, from: usize, to: &mut [u8]) -> Result<()> {
        let mut state = self.lock();
        state.run_all()?;
        let from = hidden(&[Span::of(from, to.len())], &[]).reads.remove(0);
        to.copy_from_slice(from.bytes()?);
        Ok(())
    }

    fn copy_within(&self, from: usize, to: usize, len: usize) -> Result<()> {
        let (reads, writes) = (vec![Span::of(from, len)], vec![Span::of(to, len)]);
        let work = Box::new(Work::Copy(None));
        self.lock().queue.push_back(Command::Run { work, reads, writes });
        Ok(())
    }

    fn fill(&self, at: usize, len: usize, byte: u8) -> Result<()> {
        let (reads, writes) = (Vec::new(), vec![Span::of(at, len)]);
        let work = Box::new(Work::Fill(byte));
        self.lock().queue.push_back(Command::Run { work, reads, writes });
        Ok(())
    }
}

impl Backend for Sim {
    fn device(&self) -> Device {
        Device::SIM
    }

    fn target(&self) -> SharedTarget {
        Arc::new(SimTarget(CPU.target()))
    }

    fn tile_limits(&self) -> TileLimits {
        CPU.tile_limits()
    }

    fn scratch(
        &self,
        op: &'static OpDef,
        call: &Call,
        stored: &[Option<&Layout>],
        cost: Cost,
    ) -> Bytes {
        CPU.scratch(op, call, stored, cost)
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        CPU.tile_scratch(program, domain)
    }

    fn capacity(&self) -> Option<Bytes> {
        CPU.capacity()
    }

    fn tile(&self, launch: &TileLaunch<'_>, regions: Regions<'_>) -> Result<()> {
        let work = Work::Tile {
            program: launch.program.clone(),
            domain: launch.domain.into(),
            loads: launch.loads.to_vec(),
            layouts: launch.layouts.iter().map(|layout| (*layout).clone()).collect(),
            outputs: launch.outputs,
            cost: launch.cost,
        };
        self.launch(work, &regions);
        Ok(())
    }

    fn kernel(
        &self,
        launch: KernelLaunch<'_>,
        regions: Regions<'_>,
    ) -> Result<SmallVec<[Sizes; 2]>> {
        if matches!(launch.attrs, Attrs::Host { .. }) {
            return host_step(self, launch, regions);
        }
        if launch.decides {
            return self.at_once(&regions, |regions| CPU.kernel(launch, regions));
        }
        let sizes = launch.outputs.iter().map(|output| output.sizes.clone()).collect();
        let work = Work::Kernel {
            op: launch.op,
            attrs: launch.attrs.clone(),
            inputs: launch.inputs,
            outputs: launch.outputs,
            epilogue: launch.epilogue.map(|(run, loads)| (run.clone(), loads.to_vec())),
            cost: launch.cost,
        };
        self.launch(work, &regions);
        Ok(sizes)
    }

    fn tile_to_file(&self, launch: &TileToFile<'_>, regions: Regions<'_>) -> Result<()> {
        self.at_once(&regions, |regions| CPU.tile_to_file(launch, regions))
    }

    fn rows_to_file(&self, launch: RowsToFile<'_>, regions: Regions<'_>) -> Result<()> {
        self.at_once(&regions, |regions| CPU.rows_to_file(launch, regions))
    }

    fn copy(&self, elements: Option<(&Layout, usize)>, regions: Regions<'_>) -> Result<()> {
        let elements = elements.map(|(layout, size)| (layout.clone(), size));
        self.launch(Work::Copy(elements), &regions);
        Ok(())
    }

    fn read(&self, from: Region<'_>, to: &mut [u8]) -> Result<()> {
        self.copy_out(from.address(), to)
    }

    fn write(&self, from: &[u8], to: RegionMut<'_>) -> Result<()> {
        self.copy_in(from, to.address())
    }

    fn wait(&self) -> Result<()> {
        self.lock().run_all()
    }
}

impl fmt::Debug for Sim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("sim:0")
    }
}

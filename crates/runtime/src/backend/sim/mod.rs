//! `sim:0`: a device for tests, without hardware.
//!
//! It has what makes devices hard: addresses that host code cannot dereference, a limit of its own, and a queue that runs as late as it
//! may. Kernels are the CPU's, so results have its bits, and whoever assumes host memory, or forgets to wait, fails at once.
//!
//! Addresses are those of hidden host memory, moved to where no machine maps anything. Nothing runs when it is launched: all waits in the
//! queue until somebody reads something, or waits for the device. Bytes that are released go back behind what was launched before.
mod queue;
mod target;

use std::fmt;
use std::num::NonZero;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Cost, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, Device};
use tonnage_ops::tile::TileLimits;
use tonnage_plan::SharedTarget;

use super::{
    Backend, CPU, CopyTicket, HostPart, KernelLaunch, RowsToFile, TileLaunch, TileToFile, host_step,
};
use crate::lend::{Region, RegionMut, Regions};
use crate::system::{Backing, Memory, MemoryBlock};

use queue::{Command, SimState, Span, Work, hidden};
pub use target::SimTarget;

/// How far addresses are moved: with the highest bit but one, no system on 64 bits maps anything there.
const MOVED: usize = 1 << 62;

/// The device.
pub struct Sim(Mutex<SimState>);

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

    /// Whether it has no kernels, so that all but tile programs run as host steps. What was planned before stays planned for those that
    /// it had. For tests.
    pub fn without_kernels(&self, without: bool) {
        self.lock().no_kernels = without;
    }

    /// What plans for it are made for, where it runs the kernels of that CPU.
    pub fn target_beside(&self, cpu: SharedTarget) -> SharedTarget {
        Arc::new(SimTarget { cpu, no_kernels: self.lock().no_kernels })
    }

    fn lock(&self) -> MutexGuard<'_, SimState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn launch(&self, work: Work, regions: &Regions<'_>) {
        let reads = regions.reads.iter().map(|region| Span::of(region.address(), region.len()));
        let writes = regions.writes.iter().map(|region| Span::of(region.address(), region.len()));
        let (reads, writes) = (reads.collect(), writes.collect());
        let (work, source) = (Box::new(work), regions.source.copied());
        self.lock().queue.push_back(Command::Run { work, reads, writes, source });
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
        let mut block = MemoryBlock::obtain(Backing::NATIVE, Bytes::of(len))?;
        // Who reads what nobody wrote finds no zeros.
        block.bytes_mut()?.fill(0xa5);
        let address = NonZero::new(block.expose()? + MOVED)?;
        let mut state = self.lock();
        state.blocks.push(block);
        state.given += Bytes::of(len);
        Some(address)
    }

    fn release(&self, address: NonZero<usize>, len: usize) {
        if let Some(address) = NonZero::new(address.get().wrapping_sub(MOVED)) {
            let mut state = self.lock();
            state.given -= Bytes::of(len);
            state.queue.push_back(Command::Release { address });
        }
    }

    fn taken(&self) -> Option<Bytes> {
        Some(self.lock().given)
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
        let (work, source) = (Box::new(Work::Copy(None)), None);
        self.lock().queue.push_back(Command::Run { work, reads, writes, source });
        Ok(())
    }
}

impl Backend for Sim {
    fn device(&self) -> Device {
        Device::SIM
    }

    fn target(&self) -> SharedTarget {
        self.target_beside(CPU.target())
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
        match self.lock().no_kernels {
            true => Bytes::ZERO,
            false => CPU.scratch(op, call, stored, cost),
        }
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
        if matches!(launch.attrs, Attrs::Host { .. }) || self.lock().no_kernels {
            return host_step(self, launch, regions);
        }
        if launch.decides {
            return self.at_once(&regions, |regions| CPU.kernel(launch, regions));
        }
        let sizes = launch.outputs.iter().map(|output| output.layout.sizes.clone()).collect();
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

    fn begin_copy_out(&self, from: Region<'_>, to: HostPart) -> Result<CopyTicket> {
        Ok(self.lock().begin_copy(Span::of(from.address(), from.len()), to, true))
    }

    fn begin_copy_in(&self, from: HostPart, to: RegionMut<'_>) -> Result<CopyTicket> {
        Ok(self.lock().begin_copy(Span::of(to.address(), to.len()), from, false))
    }

    fn await_copy(&self, copy: CopyTicket) -> Result<()> {
        self.lock().queue.push_back(Command::Await(copy));
        Ok(())
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

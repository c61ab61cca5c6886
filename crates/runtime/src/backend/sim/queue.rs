//! What was launched on `sim:0` and has not run: its queue of work, and the lane of copies beside it.
//!
//! Both run as late as they may. Work waits until somebody waits for the device; a copy waits until work behind it runs, so whoever
//! forgets to await one finds bytes that have not come yet, or have been overwritten.
#![allow(unsafe_code, reason = "makes slices of the device's own memory")]

use std::collections::VecDeque;
use std::num::NonZero;

use smallvec::SmallVec;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Cost, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Attrs, Bytes, Device, Source};
use tonnage_plan::TileRun;

use super::MOVED;
use crate::backend::{
    Backend, CPU, CopyTicket, HostPart, KernelInput, KernelLaunch, KernelOutput, ReadSource,
    TileLaunch,
};
use crate::lend::{Region, RegionMut, Regions};
use crate::system::MemoryBlock;

#[derive(Default)]
pub struct SimState {
    pub queue: VecDeque<Command>,
    /// Copies that were begun, in their order.
    copies: VecDeque<Copy>,
    /// How many copies were begun, ever.
    begun: u64,
    pub blocks: Vec<MemoryBlock>,
    /// What was obtained and not released.
    pub given: Bytes,
    /// What failed, until somebody who waits is told.
    failed: Option<Error>,
    /// Commands until one fails.
    pub fail_in: Option<u64>,
    /// Whether kernels run on the host, as those do that a device does not have.
    pub no_kernels: bool,
}

/// A copy between the device and host memory.
struct Copy {
    ticket: CopyTicket,
    host: HostPart,
    device: Span,
    out: bool,
}

/// Something that was launched and has not run.
pub enum Command {
    Run {
        work: Box<Work>,
        reads: Vec<Span>,
        writes: Vec<Span>,
        source: Option<Source>,
    },
    /// What follows runs behind that copy.
    Await(CopyTicket),
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
#[derive(Debug, Clone, Copy)]
pub struct Span {
    start: usize,
    len: usize,
}

/// What a launch is, owned: what launched it is gone when it runs.
#[allow(clippy::large_enum_variant, reason = "it is boxed whole")]
pub enum Work {
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
}

impl SimState {
    /// Begins a copy, which runs when it is awaited.
    pub fn begin_copy(&mut self, device: Span, host: HostPart, out: bool) -> CopyTicket {
        self.begun += 1;
        let ticket = CopyTicket(self.begun);
        self.copies.push_back(Copy { ticket, host, device, out });
        ticket
    }

    /// Runs what waits; the error of what failed, once.
    pub fn run_all(&mut self) -> Result<()> {
        while let Some(command) = self.queue.pop_front() {
            // Behind an error nothing runs: what an update would write stays as it is.
            if let Err(error) = self.run(command) {
                self.failed.get_or_insert(error);
            }
        }
        if let Err(error) = self.run_copies(CopyTicket(u64::MAX)) {
            self.failed.get_or_insert(error);
        }
        self.failed.take().map_or(Ok(()), Err)
    }

    /// Runs copies up to that one. What was launched before they were begun has run: it stands before whatever awaits them.
    fn run_copies(&mut self, last: CopyTicket) -> Result<()> {
        while self.copies.front().is_some_and(|copy| copy.ticket <= last) {
            let Some(Copy { host, device, out, .. }) = self.copies.pop_front() else { break };
            if self.failed.is_none() {
                self.count()?;
                host.with_bytes(|bytes| match out {
                    true => {
                        bytes.copy_from_slice(hidden(&[device], &[]).reads.remove(0).bytes()?);
                        Ok(())
                    }
                    false => {
                        let to = hidden(&[], &[device]).writes.remove(0).into_bytes()?;
                        to.copy_from_slice(bytes);
                        Ok(())
                    }
                })?;
            }
        }
        Ok(())
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
            Command::Await(ticket) => self.run_copies(ticket),
            Command::Run { work, reads, writes, source } => {
                let ran = self.count().and_then(|()| work.run(hidden(&reads, &writes)));
                ran.map_err(|error| match source {
                    Some(source) => error.at(source),
                    None => error,
                })
            }
        }
    }

    /// Counts down to the launch that is made to fail.
    pub fn count(&mut self) -> Result<()> {
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
    pub fn of(address: usize, len: usize) -> Span {
        Span { start: address.wrapping_sub(MOVED), len }
    }
}

/// Regions of hidden memory that a launch was lent.
pub fn hidden<'l>(reads: &[Span], writes: &[Span]) -> Regions<'l> {
    // SAFETY: the spans are of blocks of the device, which are released through its queue and so after what was launched before;
    // they are initialized. `lend` found that none that is written overlaps another of its launch, and launches run one at a time, under
    // the lock.
    unsafe {
        Regions {
            reads: reads.iter().map(|span| Region::at(span.start, span.len)).collect(),
            writes: writes.iter().map(|span| RegionMut::at(span.start, span.len)).collect(),
            source: None,
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
        }
    }
}

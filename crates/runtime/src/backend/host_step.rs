//! A kernel that a device does not have runs on the host: what it reads is copied out, and what it makes is copied in.

use std::sync::PoisonError;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::row::Call;
use tonnage_core::shape::Sizes;
use tonnage_core::tile::Form;
use tonnage_core::{Attrs, Bytes, Device, ErrorKind, Kind, Source, TensorType};
use tonnage_plan::staged_range;

use super::{Backend, CPU, KernelLaunch, ReadSource, TileLaunch};
use crate::buffer::Buffer;
use crate::context::{Context, host_ledger};
use crate::ledger::Owner;
use crate::lend::{ByteRange, Lender, Region, RegionMut, Regions};

/// An op that ran on the host for a device.
#[derive(Debug, Clone, Copy)]
pub struct HostStep {
    /// The op.
    pub op: &'static str,
    /// The device that has no kernel for it.
    pub device: Device,
    /// What passed through host memory.
    pub bytes: Bytes,
    /// The line that it was run for, where that is known.
    pub source: Option<Source>,
}

/// What is done about ops that a device leaves to the host.
#[derive(Debug, Clone, Copy)]
pub enum HostStepPolicy {
    /// They run, and somebody is told.
    Run {
        /// Who.
        tell: Option<fn(&HostStep)>,
    },
    /// They are an error.
    Refuse,
}

impl HostStepPolicy {
    /// That of the context in use.
    pub fn current() -> HostStepPolicy {
        let context = Context::current();
        *context.settings().host_steps.read().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The error of an op that would run on the host where that is refused.
pub fn refused(op: &'static str, device: Device) -> tonnage_core::Error {
    let what = format!("{device} has no kernel for it");
    let help =
        "allow steps on the host with `device::set_host_steps`, or move its inputs to the CPU"
            .into();
    ErrorKind::BadArgument { op, what, help }.into()
}

/// Runs a kernel on the CPU for a device, with the workspace that it has there. Nothing of the device is held meanwhile: the kernel may
/// call back to the user's program.
pub fn host_step(
    backend: &dyn Backend,
    launch: KernelLaunch<'_>,
    mut regions: Regions<'_>,
) -> Result<SmallVec<[Sizes; 2]>> {
    let mut launch = launch;
    for input in &mut launch.inputs {
        if let ReadSource::Range(region) = input.from {
            let form = Form::Elements(input.dtype);
            input.layout = narrowed(&mut regions.reads[region], &input.layout, form)?;
        }
    }
    // The device's own workspace is not the CPU's.
    regions.writes.truncate(launch.outputs.len());
    let scratch = {
        let types: SmallVec<[TensorType; 4]> = launch
            .inputs
            .iter()
            .map(|input| TensorType::new(input.dtype, &input.layout.sizes[..]))
            .collect();
        let call = Call { op: launch.op.name, inputs: &types, attrs: launch.attrs, regions: &[] };
        // What the plan has for it, whatever the CPU would take for so small a call.
        CPU.target().scratch(launch.op, &call, &[])
    };
    let in_place = launch.inputs.iter().any(|input| matches!(input.from, ReadSource::Output(_)));
    let is_host = matches!(launch.attrs, Attrs::Host { .. });
    let staged = Staged { name: launch.op.name, in_place, scratch, is_host };
    staged.run(backend, regions, |regions| CPU.kernel(launch, regions))
}

/// Runs a tile program on the CPU for a device: one that reads a file.
pub fn host_tile(
    backend: &dyn Backend,
    launch: &TileLaunch<'_>,
    mut regions: Regions<'_>,
) -> Result<()> {
    let mut layouts: SmallVec<[Layout; 4]> = SmallVec::new();
    let sources = launch.loads.iter().zip(&launch.layouts).zip(&launch.program.loads);
    for ((source, layout), form) in sources {
        layouts.push(match source {
            ReadSource::Range(region) => narrowed(&mut regions.reads[*region], layout, *form)?,
            _ => (*layout).clone(),
        });
    }
    let launch = &TileLaunch { layouts: layouts.iter().collect(), ..*launch };
    regions.writes.truncate(launch.outputs);
    let scratch = CPU.target().tile_scratch(launch.program, launch.domain);
    let in_place = launch.loads.iter().any(|source| matches!(source, ReadSource::Output(_)));
    let staged = Staged { name: "tile program", in_place, scratch, is_host: false };
    staged.run(backend, regions, |regions| CPU.tile(launch, regions))
}

/// Leaves of a region what is copied of it, and says how the operand lies in that.
fn narrowed(region: &mut Region<'_>, layout: &Layout, form: Form) -> Result<Layout> {
    let range = staged_range(layout, form);
    *region = region.part(range)?;
    let mut layout = layout.clone();
    if let Form::Elements(_) = form {
        // Of no elements nothing is left, wherever they would start.
        layout.offset = layout.offset.saturating_sub(layout.window().start);
    }
    Ok(layout)
}

/// Copies of regions in host memory.
struct Staged {
    name: &'static str,
    /// Whether what is written is read too.
    in_place: bool,
    /// Workspace behind what is written.
    scratch: Bytes,
    /// Whether it is the host's by its nature: it calls back.
    is_host: bool,
}

impl Staged {
    fn obtain(&self, bytes: Bytes) -> Result<Buffer> {
        Buffer::obtain(&host_ledger(), bytes, Owner::new(Kind::Staging, self.name))
    }

    fn run<R>(
        &self,
        backend: &dyn Backend,
        regions: Regions<'_>,
        run: impl FnOnce(Regions<'_>) -> Result<R>,
    ) -> Result<R> {
        let staged: usize = regions.reads.iter().map(Region::len).sum::<usize>()
            + regions.writes.iter().map(RegionMut::len).sum::<usize>();
        match HostStepPolicy::current() {
            _ if self.is_host => {}
            HostStepPolicy::Run { tell: None } => {}
            HostStepPolicy::Run { tell: Some(tell) } => {
                let (op, device, bytes) = (self.name, backend.device(), Bytes::of(staged));
                tell(&HostStep { op, device, bytes, source: regions.source.copied() });
            }
            HostStepPolicy::Refuse => return Err(refused(self.name, backend.device())),
        }
        let mut inputs: SmallVec<[Buffer; 4]> = SmallVec::new();
        for region in &regions.reads {
            let mut buffer = self.obtain(Bytes::of(region.len()))?;
            backend.read(*region, buffer.bytes_mut()?)?;
            inputs.push(buffer);
        }
        let mut outputs: SmallVec<[Buffer; 3]> = SmallVec::new();
        for region in &regions.writes {
            let mut buffer = self.obtain(Bytes::of(region.len()))?;
            if self.in_place {
                backend.read(region.as_read(), buffer.bytes_mut()?)?;
            }
            outputs.push(buffer);
        }
        if !self.scratch.is_zero() {
            outputs.push(self.obtain(self.scratch)?);
        }
        let made = {
            let mut lender = Lender::default();
            let whole = |base, len| ByteRange { base, offset: 0, len, align: 1 };
            let reads: SmallVec<[ByteRange; 4]> =
                inputs.iter().map(|buffer| whole(lender.add(buffer), buffer.len())).collect();
            let mut writes: SmallVec<[ByteRange; 3]> = SmallVec::new();
            for buffer in &mut outputs {
                let len = buffer.len();
                writes.push(whole(lender.add(buffer), len));
            }
            run(lender.lend(&reads, &writes)?)?
        };
        // The workspace stays behind.
        for (buffer, region) in outputs.iter().zip(regions.writes) {
            backend.write(buffer.bytes()?, region)?;
        }
        Ok(made)
    }
}

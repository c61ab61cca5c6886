//! A kernel that a device does not have runs on the host: what it reads is copied out, and what it makes is copied in.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::row::Call;
use tonnage_core::shape::Sizes;
use tonnage_core::{Bytes, Kind, TensorType};

use super::{Backend, CPU, KernelLaunch, ReadSource, TileLaunch};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Owner;
use crate::lend::{ByteRange, Lender, Regions};

/// Runs a kernel on the CPU for a device, with the workspace that it has there. Nothing of the device is held meanwhile: the kernel may
/// call back to the user's program.
pub fn host_step(
    backend: &dyn Backend,
    launch: KernelLaunch<'_>,
    mut regions: Regions<'_>,
) -> Result<SmallVec<[Sizes; 2]>> {
    // The device's own workspace is not the CPU's.
    regions.writes.truncate(launch.outputs.len());
    let scratch = {
        let types: SmallVec<[TensorType; 4]> = launch
            .inputs
            .iter()
            .map(|input| TensorType::new(input.dtype, &input.layout.sizes[..]))
            .collect();
        let call = Call { op: launch.op.name, inputs: &types, attrs: launch.attrs, regions: &[] };
        CPU.scratch(launch.op, &call, &[], launch.cost)
    };
    let in_place = launch.inputs.iter().any(|input| matches!(input.from, ReadSource::Output(_)));
    let staged = Staged { name: launch.op.name, in_place, scratch };
    staged.run(backend, regions, |regions| CPU.kernel(launch, regions))
}

/// Runs a tile program on the CPU for a device: one that reads a file.
pub fn host_tile(
    backend: &dyn Backend,
    launch: &TileLaunch<'_>,
    mut regions: Regions<'_>,
) -> Result<()> {
    regions.writes.truncate(launch.outputs);
    let scratch = CPU.tile_scratch(launch.program, launch.domain);
    let in_place = launch.loads.iter().any(|source| matches!(source, ReadSource::Output(_)));
    let staged = Staged { name: "tile program", in_place, scratch };
    staged.run(backend, regions, |regions| CPU.tile(launch, regions))
}

/// Copies of regions in host memory.
struct Staged {
    name: &'static str,
    /// Whether what is written is read too.
    in_place: bool,
    /// Workspace behind what is written.
    scratch: Bytes,
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

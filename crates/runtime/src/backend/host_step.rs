//! A kernel that a device does not have runs on the host: what it reads is copied out, and what it makes is copied in.

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::shape::Sizes;
use tonnage_core::{Bytes, Kind};

use super::{Backend, CPU, KernelLaunch};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Owner;
use crate::lend::{ByteRange, Lender, Regions};

/// Runs a kernel on the CPU for a device. Nothing of the device is held meanwhile: the kernel may call back to the user's program.
pub fn host_step(
    backend: &dyn Backend,
    launch: KernelLaunch<'_>,
    regions: Regions<'_>,
) -> Result<SmallVec<[Sizes; 2]>> {
    let name = launch.op.name;
    let staging = |len: usize| {
        Buffer::obtain(&host_ledger(), Bytes::of(len), Owner::new(Kind::Staging, name))
    };
    let mut inputs: SmallVec<[Buffer; 4]> = SmallVec::new();
    for region in &regions.reads {
        let mut buffer = staging(region.len())?;
        backend.read(*region, buffer.bytes_mut()?)?;
        inputs.push(buffer);
    }
    let lengths = regions.writes.iter().map(|region| staging(region.len()));
    let mut outputs = lengths.collect::<Result<SmallVec<[Buffer; 2]>>>()?;
    let made = {
        let mut lender = Lender::default();
        let whole = |base, len| ByteRange { base, offset: 0, len, align: 1 };
        let reads: SmallVec<[ByteRange; 4]> =
            inputs.iter().map(|buffer| whole(lender.add(buffer), buffer.len())).collect();
        let mut writes: SmallVec<[ByteRange; 2]> = SmallVec::new();
        for buffer in &mut outputs {
            let len = buffer.len();
            writes.push(whole(lender.add(buffer), len));
        }
        CPU.kernel(launch, lender.lend(&reads, &writes)?)?
    };
    for (buffer, region) in outputs.iter().zip(regions.writes) {
        backend.write(buffer.bytes()?, region)?;
    }
    Ok(made)
}

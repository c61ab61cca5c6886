//! The CPU: regions become slices here, and kernels and tile programs are called with them, at once.
//!
//! The invariant: nothing else sees a slice of a region, or calls a kernel of a launch.
//!
//! `tile` runs a tile program, `kernel` a kernel, `file_value` what goes to a file piece by piece.

mod file_value;
mod kernel;
mod tile;

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::row::{Call, Cost, OpDef};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Bytes, Device};
use tonnage_cpu::kernel_of;
use tonnage_ops::tile::TileLimits;
use tonnage_plan::SharedTarget;

use super::{Backend, KernelLaunch, RowsToFile, TileLaunch, TileToFile};
use crate::lend::{Region, RegionMut, Regions};
use crate::pool::pool;
use crate::system;

/// The cores of this machine.
#[derive(Debug)]
pub struct Cpu;

/// The one that there is.
pub static CPU: Cpu = Cpu;

impl Backend for Cpu {
    fn device(&self) -> Device {
        Device::CPU
    }

    fn target(&self) -> SharedTarget {
        crate::machine::target()
    }

    fn tile_limits(&self) -> TileLimits {
        tonnage_cpu::tile::LIMITS
    }

    fn scratch(
        &self,
        op: &'static OpDef,
        call: &Call,
        stored: &[Option<&Layout>],
        cost: Cost,
    ) -> Bytes {
        let threads = pool().threads_for(cost);
        kernel_of(op).map_or(Bytes::ZERO, |kernel| kernel.workspace(call, stored, threads))
    }

    fn tile_scratch(&self, program: &TileProgram, domain: &[usize]) -> Bytes {
        tonnage_cpu::tile::scratch(program, domain)
    }

    fn capacity(&self) -> Option<Bytes> {
        system::machine_memory()
    }

    fn tile(&self, launch: &TileLaunch<'_>, regions: Regions<'_>) -> Result<()> {
        tile::run(launch, regions)
    }

    fn kernel(
        &self,
        launch: KernelLaunch<'_>,
        regions: Regions<'_>,
    ) -> Result<SmallVec<[Sizes; 2]>> {
        kernel::run(launch, regions)
    }

    fn tile_to_file(&self, launch: &TileToFile<'_>, regions: Regions<'_>) -> Result<()> {
        file_value::tile(launch, regions)
    }

    fn rows_to_file(&self, launch: RowsToFile<'_>, regions: Regions<'_>) -> Result<()> {
        file_value::rows(launch, regions)
    }

    fn copy(&self, elements: Option<(&Layout, usize)>, regions: Regions<'_>) -> Result<()> {
        let (Some(from), Some(to)) = (regions.reads.first(), regions.writes.into_iter().next())
        else {
            return Err(ErrorKind::BadGraph { what: "nothing to copy".into() }.into());
        };
        let (from, to) = (from.bytes()?, to.into_bytes()?);
        let Some((layout, size)) = elements else {
            to.copy_from_slice(from);
            return Ok(());
        };
        let mut chunks = to.chunks_exact_mut(size);
        layout.for_each(|at| {
            if let Some(chunk) = chunks.next() {
                chunk.copy_from_slice(&from[at * size..(at + 1) * size]);
            }
        });
        Ok(())
    }

    fn read(&self, from: Region<'_>, to: &mut [u8]) -> Result<()> {
        to.copy_from_slice(from.bytes()?);
        Ok(())
    }

    fn write(&self, from: &[u8], to: RegionMut<'_>) -> Result<()> {
        to.into_bytes()?.copy_from_slice(from);
        Ok(())
    }

    fn wait(&self) -> Result<()> {
        Ok(())
    }
}

/// Scratch of no bytes, at an address that suits the elements that a kernel may take it for.
fn nothing<'a>() -> &'a mut [u8] {
    bytemuck::cast_slice_mut::<u128, u8>(&mut [])
}

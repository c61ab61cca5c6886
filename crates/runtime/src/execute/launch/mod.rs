//! What runs on the device: byte ranges become slices here, and kernels and tile programs are called with them.
//!
//! The invariant: nothing else of the executor sees a slice or calls a kernel. The rest says what is to run, on which byte
//! ranges, and keeps account of it; values, places and loops are not known here.
//!
//! `tile` launches a tile program, `kernel` a kernel, `file_value` what goes to a file piece by piece; `bytes` copies, and
//! reads and writes the few numbers that say what runs next.

pub mod bytes;
mod file_value;
mod kernel;
mod tile;

use smallvec::SmallVec;
use tonnage_core::recipe::Generator;

use crate::lend::ByteRange;

pub use file_value::{RowsToFile, TileToFile};
pub use kernel::{KernelLaunch, find_kernel};
pub use tile::TileLaunch;

/// Byte ranges that a launch is lent to read.
pub type Reads = SmallVec<[ByteRange; 4]>;

/// Where the operands of a launch are read from, in their order.
pub type ReadSources = SmallVec<[ReadSource; 4]>;

/// Where a launch reads something from.
pub enum ReadSource {
    /// The byte range of that number.
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

/// Scratch of no bytes, at an address that suits the elements that a kernel may take it for.
fn nothing<'a>() -> &'a mut [u8] {
    bytemuck::cast_slice_mut::<u128, u8>(&mut [])
}

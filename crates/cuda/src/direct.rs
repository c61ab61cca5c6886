//! The short way to a kernel: elementwise ops over elements that lie in order, which were launched before. What they launch is looked up by
//! a few numbers, and their words are the count and the addresses.

use std::sync::{Mutex, PoisonError};

use smallvec::SmallVec;
use tonnage_core::DType;

use crate::driver::LoadedKernel;

/// Inputs, at most.
pub const MOST: usize = 3;

/// What decides on the kernel of such an op and on its grid, where all addresses are multiples of the widest access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DirectKey {
    /// Where its definition lies.
    pub op: usize,
    /// Of the inputs: the dtype, and whether it is one element for all.
    pub inputs: [Option<(DType, bool)>; MOST],
    /// The elements of the result.
    pub count: u64,
}

/// The widest access of a kernel.
pub const ALIGNED: u64 = 16;

/// Entries; of two that map to the same entry the later one replaces the earlier.
const ENTRIES: usize = 64;

/// Kernels that were launched so before.
#[derive(Debug)]
pub struct DirectKernels(Mutex<[Option<(DirectKey, LoadedKernel)>; ENTRIES]>);

impl Default for DirectKernels {
    fn default() -> DirectKernels {
        DirectKernels(Mutex::new([None; ENTRIES]))
    }
}

impl DirectKey {
    fn entry(&self) -> usize {
        let dtypes = self.inputs.iter().flatten();
        let dtypes =
            dtypes.fold(0, |all, (dtype, one)| all * 64 + *dtype as usize * 2 + usize::from(*one));
        ((self.op / 8) ^ dtypes ^ self.count as usize) % ENTRIES
    }
}

impl DirectKernels {
    /// The kernel that was launched for such an op.
    pub fn get(&self, key: &DirectKey) -> Option<LoadedKernel> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known[key.entry()].filter(|(other, _)| other == key).map(|(_, kernel)| kernel)
    }

    /// Keeps it for the next.
    pub fn put(&self, key: DirectKey, kernel: LoadedKernel) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known[key.entry()] = Some((key, kernel));
    }
}

/// The words of such a launch.
pub fn words(count: u64, addresses: impl Iterator<Item = u64>) -> SmallVec<[u64; 6]> {
    std::iter::once(count).chain(addresses).collect()
}

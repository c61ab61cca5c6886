//! What a kernel is lent: its inputs, its outputs, its scratch and threads. It gets nothing else, and
//! it allocates nothing.
//!
//! A [`KernelDef`] is what the table of kernels knows of one: how it runs, and what it asks for.

use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::lent::{In, Out};
use tonnage_core::{Attrs, Bytes, Call};

use crate::workers::Workers;

/// How the CPU runs an op that has a kernel.
#[derive(Clone, Copy)]
pub struct KernelDef {
    /// Runs it over lent slices.
    pub run: fn(&mut Kernel) -> Result<()>,
    /// Its workspace, from types and the number of threads.
    pub scratch: fn(&Call, usize) -> Bytes,
    /// Whether it hands its one output over to [`Kernel::epilogue`] as it is made.
    pub has_epilogue: bool,
    /// Of a kernel that reads inputs from outside of memory, a part at a time.
    pub streaming: Option<Streaming>,
}

/// How a kernel reads inputs that lie outside of memory.
#[derive(Clone, Copy)]
pub struct Streaming {
    /// How many elements of that input it reads, where it can read it as it lies there.
    pub reads: Reads,
    /// Its workspace where some inputs lie outside of memory.
    pub staging: Staging,
}

/// Elements that a kernel reads of an input that lies outside of memory in that layout; `None` where it is to be brought into memory.
pub type Reads = fn(&Call, usize, &Layout) -> Option<usize>;

/// Workspace of a kernel that reads inputs from outside of memory: for each input its layout there, `None` where it is in memory; and
/// the threads.
pub type Staging = fn(&Call, &[Option<&Layout>], usize) -> Bytes;

impl KernelDef {
    /// What it is lent to work with, where inputs lie outside of memory in those layouts.
    pub fn workspace(&self, call: &Call, stored: &[Option<&Layout>], threads: usize) -> Bytes {
        match self.streaming {
            Some(streaming) if stored.iter().any(Option::is_some) => {
                (streaming.staging)(call, stored, threads)
            }
            _ => (self.scratch)(call, threads),
        }
    }
}

/// For kernels that need no workspace.
pub fn no_scratch(_: &Call, _: usize) -> Bytes {
    Bytes::ZERO
}

/// What an output becomes while it is still in cache: the elementwise step behind the kernel's.
///
/// An element is handed over once, when nothing more is added to it. How the output is cut is open, so what becomes of an
/// element depends on its position and value alone.
pub trait Epilogue: Sync {
    /// Works on parts of the output in place.
    fn apply(&self, parts: &mut dyn Parts);
}

/// Parts of an output, each a run of elements.
pub trait Parts {
    /// How many.
    fn count(&self) -> usize;

    /// The position of the first element of a part in the output, and the part's bytes.
    fn part(&mut self, i: usize) -> (usize, &mut [u8]);
}

/// A run of elements is one part.
impl Parts for (usize, &mut [u8]) {
    fn count(&self) -> usize {
        1
    }

    fn part(&mut self, _: usize) -> (usize, &mut [u8]) {
        (self.0, self.1)
    }
}

/// One call of a kernel.
pub struct Kernel<'a, 'o> {
    /// What it is told besides its inputs.
    pub attrs: &'a Attrs,
    /// Lent to read.
    pub inputs: &'a [In<'a>],
    /// Lent to write; with the row's aux outputs behind the others where a gradient is wanted.
    pub outputs: &'a mut [Out<'o>],
    /// Lent to use; as many bytes as the row asked for, aligned as buffers are.
    pub scratch: &'a mut [u8],
    /// Threads.
    pub workers: &'a dyn Workers,
    /// What the first output becomes. For a kernel that [has one](KernelDef::has_epilogue); others are lent `None`.
    pub epilogue: Option<&'a dyn Epilogue>,
}

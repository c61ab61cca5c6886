//! What a kernel is lent: its inputs, its outputs, its scratch and threads. It gets nothing else, and
//! it allocates nothing.
//!
//! In place means that an input and an output are the same bytes. `&[T]` beside `&mut [T]` over the
//! same bytes would be undefined behaviour, so such an input comes as [`Data::Output`] and is read
//! through the output.

use bytemuck::{cast_slice, cast_slice_mut};

use crate::attrs::Attrs;
use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::layout::Layout;
use crate::recipe::Elements;
use crate::shape::Sizes;
use crate::workers::Workers;

/// Bytes of an input.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// Its own.
    Slice(&'a [u8]),
    /// Those of the output of that number.
    Output(usize),
    /// None in memory: elements that a [`Streaming`](crate::row::Lower::Streaming) kernel reads as it goes.
    Stored(&'a dyn Elements),
}

/// An input that is lent to a kernel.
#[derive(Debug, Clone)]
pub struct In<'a> {
    /// Of its elements.
    pub dtype: DType,
    /// Where its elements lie in its bytes.
    pub layout: Layout,
    /// Its bytes.
    pub data: Data<'a>,
}

impl In<'_> {
    /// Its elements as they lie in its own bytes, or in a file that the system shows as memory; nothing where it is the output's.
    pub fn slice<T: Element>(&self) -> &[T] {
        match self.data {
            Data::Slice(bytes) => cast_slice(bytes),
            Data::Stored(elements) => elements.mapped().map_or(&[], cast_slice),
            Data::Output(_) => &[],
        }
    }

    /// Whether all that was read of it from outside of memory could be.
    ///
    /// # Errors
    /// Where it could not.
    pub fn check(&self) -> Result<()> {
        match self.data {
            Data::Stored(elements) => elements.check(),
            Data::Slice(_) | Data::Output(_) => Ok(()),
        }
    }

    /// The elements close together, where they lie so.
    pub fn contiguous<T: Element>(&self) -> Option<&[T]> {
        if !self.layout.is_contiguous() {
            return None;
        }
        self.slice::<T>().get(self.layout.offset..self.layout.offset + self.layout.count())
    }
}

/// An output that is lent to a kernel: contiguous, at its largest size.
#[derive(Debug)]
pub struct Out<'a> {
    /// Of its elements.
    pub dtype: DType,
    /// Its sizes. A kernel whose sizes the data decide writes the real ones here.
    pub sizes: Sizes,
    /// Its bytes.
    pub data: &'a mut [u8],
}

impl Out<'_> {
    /// Its elements.
    pub fn slice<T: Element>(&mut self) -> &mut [T] {
        cast_slice_mut(self.data)
    }

    /// Its sizes, and its elements.
    pub fn parts<T: Element>(&mut self) -> (&[usize], &mut [T]) {
        (&self.sizes, cast_slice_mut(self.data))
    }
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
    /// What the first output becomes. For a kernel that its row says to be [`WithEpilogue`](crate::row::Lower::WithEpilogue); others
    /// are lent `None`.
    pub epilogue: Option<&'a dyn Epilogue>,
}

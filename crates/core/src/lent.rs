//! Host memory that is lent: the inputs and outputs of a kernel that runs on the host, and of a host callback.
//!
//! In place means that an input and an output are the same bytes. `&[T]` beside `&mut [T]` over the
//! same bytes would be undefined behaviour, so such an input comes as [`Data::Output`] and is read
//! through the output.

use bytemuck::{cast_slice, cast_slice_mut};

use crate::dtype::{DType, Element};
use crate::error::Result;
use crate::layout::Layout;
use crate::recipe::Elements;
use crate::shape::Sizes;

/// Bytes of an input.
#[derive(Debug, Clone, Copy)]
pub enum Data<'a> {
    /// Its own.
    Slice(&'a [u8]),
    /// Those of the output of that number.
    Output(usize),
    /// None in memory: elements that a streaming kernel reads as it goes.
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

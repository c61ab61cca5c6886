//! What a closure is lent: a tensor's bytes where they lie, for as long as it runs.

use std::fmt;

use tonnage_core::layout::Slice;
use tonnage_core::lent::In;
use tonnage_core::{
    DType, Element, ErrorKind, FromScalar, Kind, Layout, Mark, Result, Scalar, Source, TensorType,
    with_element,
};
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

use crate::convert::Native;
use crate::display::{self, PrintOptions};
use crate::tensor::Tensor;

/// A tensor that is lent to a closure: its values where they lie, not a copy. It ends with the closure; what is
/// to stay, or to be computed with, [`Lent::tensor`] copies.
#[derive(Clone, Copy)]
pub struct Lent<'a>(&'a In<'a>);

impl<'a> Lent<'a> {
    pub(crate) fn new(input: &'a In<'a>) -> Lent<'a> {
        Lent(input)
    }

    /// What was lent.
    pub(crate) fn input(&self) -> &'a In<'a> {
        self.0
    }

    /// Dtype of its elements.
    pub fn dtype(&self) -> DType {
        self.0.dtype
    }

    /// Its lengths: known numbers, whatever was open in the function.
    pub fn sizes(&self) -> &[usize] {
        &self.0.layout.sizes
    }

    /// Dtype and shape.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype(), self.sizes())
    }

    /// Its elements in logical order. The dtype must be `T`'s.
    ///
    /// # Errors
    /// Where the dtype is another.
    #[track_caller]
    pub fn to_vec<T: Native>(&self) -> Result<Vec<T>> {
        self.elements::<T>("to_vec").map_err(|e| e.at(Source::here()))
    }

    /// Its only element.
    ///
    /// # Errors
    /// Where there are more, none, or ones of another dtype.
    #[track_caller]
    pub fn scalar<T: Native>(&self) -> Result<T> {
        let source = Source::here();
        match *self.elements::<T>("scalar").map_err(|e| e.at(source))?.as_slice() {
            [only] => Ok(only),
            _ => {
                let what = format!("{} has {} elements", self.ty(), self.0.layout.count());
                let help = "it takes just one; use `to_vec` for more";
                Err(tonnage_core::error::bad_argument("scalar", what, help).at(source))
            }
        }
    }

    /// The element of that number in logical order. There must be one.
    pub fn nth(&self, number: usize) -> Scalar {
        let place = self.0.layout.nth(number);
        with_element!(self.dtype(), T => self.0.slice::<T>()[place].to_scalar())
    }

    /// A copy that may be kept and computed with. It is in the ledger under this line.
    ///
    /// # Errors
    /// Where there is no memory for it.
    #[track_caller]
    pub fn tensor(&self) -> Result<Tensor> {
        let source = Source::here();
        let mark = Mark { source, kind: Kind::Input };
        let owner = Owner { kind: mark.kind, what: "lent tensor", name: None, source };
        let copy = || {
            let bytes = self.ty().bytes("lent tensor")?;
            let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner)?;
            let (out, mut at) = (buffer.bytes_mut()?, 0);
            let size = self.dtype().size();
            let from: &[u8] = self.bytes();
            self.0.layout.for_each(|i| {
                out[at..at + size].copy_from_slice(&from[i * size..(i + 1) * size]);
                at += size;
            });
            let layout = Layout::contiguous(self.0.layout.sizes.clone());
            Ok(Tensor::from_array(Array::from_buffer(buffer, self.dtype(), layout)))
        };
        copy().map_err(|e: tonnage_core::Error| e.at(source))
    }

    fn bytes(&self) -> &[u8] {
        match self.0.data {
            tonnage_core::lent::Data::Slice(bytes) => bytes,
            _ => &[], // nothing that is lent is written, or outside of memory
        }
    }

    fn elements<T: Native>(&self, op: &'static str) -> Result<Vec<T>> {
        let (left, right): (DType, DType) = (self.dtype(), T::Element::DTYPE);
        if left != right {
            let help = format!("read it as {left}, or `cast` it to {right} first");
            return Err(ErrorKind::DTypeMismatch { op, left, right, help }.into());
        }
        let mut made = Vec::with_capacity(self.0.layout.count());
        let from = self.0.slice::<T::Element>();
        self.0.layout.for_each(|i| made.push(T::from_element(from[i])));
        Ok(made)
    }

    /// The elements of a layout over its bytes.
    pub(super) fn scalars(&self, layout: &Layout) -> Vec<Scalar> {
        let mut made = Vec::with_capacity(layout.count());
        with_element!(self.dtype(), T => {
            let from = self.0.slice::<T>();
            layout.for_each(|i| made.push(from[i].to_scalar()));
        });
        made
    }

    pub(super) fn layout(&self) -> &Layout {
        &self.0.layout
    }

    /// Its values as text, shown as the options say.
    pub(super) fn text(&self, options: PrintOptions) -> String {
        let fetch = |part: &[Slice]| Ok(self.scalars(&self.0.layout.slice(part)));
        display::laid_out(self.sizes(), self.dtype(), options, &fetch)
            .unwrap_or_else(|error| format!("<{error}>"))
    }
}

impl fmt::Display for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(
            &self.text(PrintOptions { precision: f.precision(), ..PrintOptions::default() }),
        )
    }
}

impl fmt::Debug for Lent<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Lent({}, {self})", self.ty())
    }
}

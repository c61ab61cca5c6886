//! Tensors of strings: bytes beside each other, and for each element where its bytes begin and how many they are.
//!
//! That is Arrow's list-view layout of bytes with 64-bit offsets and sizes. Offsets and sizes are tensors of the shape of the whole, so that every op that moves
//! elements is that op on both of them and touches no byte: [`Strings::each`]. The parts are tensors like others: the ledger counts them, functions take and give
//! them, plans place them. How many bytes there are is no part of the type: a trace serves every number of them.
//!
//! `value` is a tensor of either kind, for what does not care; `make` and `read` lead in and out, `join` brings several into one, `step` runs closures over
//! strings, and `compare` are the first of those. What needs tables or patterns is in the crate `tonnage-formats`.
//!
//! Decision: `docs/decisions/strings-are-three-tensors.md`.

mod compare;
mod join;
mod make;
mod read;
mod step;
mod value;

pub use join::over_the_same_bytes;
pub use make::filled;
pub use step::{LentStrings, Sink, broadcast_source, look, step};
pub use value::Value;

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Dim, Result, Shape, Symbol};

use crate::tensor::Tensor;
use crate::tree::Tree;

/// A tensor whose elements are strings of bytes, of any length each, UTF-8 or not.
///
/// ```
/// use tonnage::{Index, strings::Strings};
/// let x = Strings::new(&["tensor", "", "flow"], [3])?;
/// assert_eq!(x.shape().to_string(), "[3]");
/// assert_eq!(x.each(|part| part.get(&[Index::At(2)]))?.to_vec()?, [b"flow"]);
/// // 3 offsets and 3 sizes of 8 bytes, and 10 bytes of text.
/// let (offsets, sizes, bytes) = x.parts();
/// assert_eq!(offsets.to_vec::<i64>()?, [0, 6, 6]);
/// assert_eq!(sizes.to_vec::<i64>()?, [6, 0, 4]);
/// assert_eq!(bytes.to_vec::<u8>()?, b"tensorflow");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Clone)]
pub struct Strings {
    offsets: Tensor,
    sizes: Tensor,
    bytes: Tensor,
}

impl Strings {
    /// One of its parts: for each element where its bytes begin and how many they are, and the bytes of all.
    ///
    /// # Errors
    /// Where the parts are of other dtypes, or offsets and sizes of different shapes. Whether an element lies within the bytes is looked at when it is read.
    pub fn from_parts(offsets: Tensor, sizes: Tensor, bytes: Tensor) -> Result<Strings> {
        let fits = offsets.dtype() == DType::I64
            && sizes.dtype() == DType::I64
            && bytes.dtype() == DType::U8
            && bytes.rank() == 1
            && offsets.shape() == sizes.shape();
        match fits {
            true => Ok(Strings { offsets, sizes, bytes }),
            false => {
                let what = format!("{}, {} and {}", offsets.ty(), sizes.ty(), bytes.ty());
                let help = "give offsets and sizes of i64 in one shape, and a row of bytes";
                Err(bad_argument("strings", what, help))
            }
        }
    }

    /// One without values: what a signature is written in. The number of bytes is open by that name.
    pub fn spec(shape: impl Into<Shape>, bytes: &str) -> Strings {
        let shape = shape.into();
        Strings {
            offsets: Tensor::spec(DType::I64, shape.clone()),
            sizes: Tensor::spec(DType::I64, shape),
            bytes: Tensor::spec(DType::U8, [Dim::open(bytes)]),
        }
    }

    /// Offsets, sizes and bytes.
    pub fn parts(&self) -> (&Tensor, &Tensor, &Tensor) {
        (&self.offsets, &self.sizes, &self.bytes)
    }

    /// Its shape; while a function is traced, dims may be open.
    pub fn shape(&self) -> Shape {
        self.sizes.shape()
    }

    /// How many axes.
    pub fn rank(&self) -> usize {
        self.sizes.rank()
    }

    /// How many bytes each string has: `i64`, in the same shape.
    pub fn sizes(&self) -> &Tensor {
        &self.sizes
    }

    /// Whether a part stands for values to come.
    pub fn is_symbolic(&self) -> bool {
        self.offsets.is_symbolic() || self.sizes.is_symbolic() || self.bytes.is_symbolic()
    }

    /// The same strings elsewhere: applies an op that moves elements and computes nothing, such as a reshape or a gather, to offsets and sizes. What it fills in
    /// with zeros are empty strings.
    ///
    /// # Errors
    /// Those of the op.
    pub fn each(&self, op: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Strings> {
        Strings::from_parts(op(&self.offsets)?, op(&self.sizes)?, self.bytes.clone())
    }

    /// The same bytes at other places.
    ///
    /// # Errors
    /// As [`Strings::from_parts`].
    pub fn spans(&self, offsets: Tensor, sizes: Tensor) -> Result<Strings> {
        Strings::from_parts(offsets, sizes, self.bytes.clone())
    }
}

impl Tree for Strings {
    fn for_each(&self, f: &mut dyn FnMut(&Tensor)) {
        [&self.offsets, &self.sizes, &self.bytes].into_iter().for_each(f);
    }

    fn map(self, f: &mut dyn FnMut(Tensor) -> Result<Tensor>) -> Result<Strings> {
        let (offsets, sizes) = (f(self.offsets)?, f(self.sizes)?);
        Ok(Strings { offsets, sizes, bytes: f(self.bytes)? })
    }

    fn take(self, f: &mut dyn FnMut(Tensor)) {
        [self.offsets, self.sizes, self.bytes].into_iter().for_each(f);
    }

    fn share(&self) -> Strings {
        self.clone()
    }

    fn describe(&self, text: &mut String) {
        text.push_str("strings");
    }

    fn paths(&self, path: &mut String, f: &mut dyn FnMut(&str)) {
        for part in [".offsets", ".sizes", ".bytes"] {
            crate::tree::within(path, part, |path| f(path));
        }
    }

    fn map_values(self, f: &mut dyn FnMut(Value) -> Result<Value>) -> Result<Strings> {
        f(Value::Strings(self))?.strings()
    }
}

/// The length of the bytes of the strings that are leaf `number` of a tree: every call has its own.
pub(crate) fn open_bytes(number: usize) -> Dim {
    Dim::symbol(Symbol::new(format!("bytes{number}")))
}

//! Strings of Rust data.

use tonnage_core::error::bad_argument;
use tonnage_core::{DType, Element, Kind, Layout, Mark, Result, Scalar, Shape, Source, TensorType};
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

use super::Strings;
use crate::make;
use crate::tensor::Tensor;
use crate::trace;

impl Strings {
    /// A tensor of these strings, in that shape. What takes memory is their bytes, and of more than one an offset and a size each.
    ///
    /// ```
    /// use tonnage::strings::Strings;
    /// let x = Strings::new(&["a", "bc", "", "d"], [2, 2])?;
    /// assert_eq!(x.to_vec()?, [&b"a"[..], b"bc", b"", b"d"]);
    /// assert!(Strings::new(&["a"], [2]).is_err());
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where the shape has another number of elements, or there is no memory.
    #[track_caller]
    pub fn new(texts: &[impl AsRef<[u8]>], shape: impl Into<Shape>) -> Result<Strings> {
        let mark = Mark { source: Source::here(), kind: Kind::Input };
        Strings::marked(texts, shape.into(), mark)
    }

    /// A string alone.
    ///
    /// # Errors
    /// Where there is no memory.
    #[track_caller]
    pub fn scalar(text: impl AsRef<[u8]>) -> Result<Strings> {
        let mark = Mark { source: Source::here(), kind: Kind::Input };
        Strings::marked(&[text], Shape::scalar(), mark)
    }

    /// The same for a line and a kind that the ledger knows it by.
    ///
    /// # Errors
    /// As [`Strings::new`].
    pub fn marked(texts: &[impl AsRef<[u8]>], shape: Shape, mark: Mark) -> Result<Strings> {
        if shape.count() != Some(texts.len()) {
            let what = format!("{} strings for shape {shape}", texts.len());
            let error = bad_argument("strings", what, "give one for each element");
            return Err(error.at(mark.source));
        }
        let total: usize = texts.iter().map(|text| text.as_ref().len()).sum();
        let bytes = filled::<u8>([total].into(), mark, |out| {
            let mut at = 0;
            for text in texts {
                let text = text.as_ref();
                out[at..at + text.len()].copy_from_slice(text);
                at += text.len();
            }
            Ok(())
        })?;
        if texts.len() == 1 {
            return alone(total, shape, bytes, mark);
        }
        let sizes = || texts.iter().map(|text| text.as_ref().len() as i64);
        let offsets = filled::<i64>(shape.clone(), mark, |out| {
            let mut at = 0;
            for (out, size) in out.iter_mut().zip(sizes()) {
                *out = at;
                at += size;
            }
            Ok(())
        })?;
        let sizes = filled::<i64>(shape, mark, |out| {
            out.iter_mut().zip(sizes()).for_each(|(out, size)| *out = size);
            Ok(())
        })?;
        Strings::from_parts(offsets, sizes, bytes)
    }
}

/// A string of `size` bytes everywhere. One number everywhere takes no memory.
pub(super) fn alone(size: usize, shape: Shape, bytes: Tensor, mark: Mark) -> Result<Strings> {
    // A constant, in a function too.
    let number = |n: usize| {
        let fill = || make::fill(Scalar::Int(n as i128), DType::I64, shape.clone(), mark.source);
        trace::outside(fill)
    };
    Strings::from_parts(number(0)?, number(size)?, bytes)
}

/// A tensor in host memory whose elements a closure writes, straight into its bytes.
///
/// # Errors
/// Those of the closure, or where there is no memory.
pub fn filled<T: Element>(
    shape: Shape,
    mark: Mark,
    write: impl FnOnce(&mut [T]) -> Result<()>,
) -> Result<Tensor> {
    let ty = TensorType::new(T::DTYPE, shape);
    let make = || -> Result<Tensor> {
        let owner = Owner { kind: mark.kind, what: "strings", name: None, source: mark.source };
        let mut buffer = Buffer::obtain(&host_ledger(), ty.bytes("strings")?, owner)?;
        let out: &mut [T] = bytemuck::cast_slice_mut(buffer.bytes_mut()?);
        write(&mut out[..ty.shape.count().unwrap_or(0)])?;
        let layout = Layout::contiguous(ty.shape.sizes().unwrap_or_default());
        Ok(Tensor::from_array(Array::from_buffer(buffer, T::DTYPE, layout)))
    };
    make().map_err(|e| e.at(mark.source))
}

//! Tensors in files.
//!
//! Files are read by positioned reads straight into counted buffers, and written a tensor at a time: neither takes more than
//! the tensor in hand. A file that is written appears whole or not at all.

mod atomic;
mod idx;
mod safetensors;

use atomic::write_atomically;
pub use atomic::{save_bytes, save_text};
pub use idx::{parse_idx, read_idx};
pub use safetensors::{SafeTensors, save_safetensors};

use std::path::Path;

use tonnage_core::layout::Layout;
use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Error, ErrorKind, Kind, Result, Shape, Source, TensorType};
use tonnage_runtime::{Array, Buffer, Ledger, Owner};

use crate::tensor::Tensor;

/// A tensor in a counted buffer of its own, which is filled in place.
fn filled(
    dtype: DType,
    sizes: Sizes,
    name: Option<&str>,
    source: Source,
    fill: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Tensor> {
    let ty = TensorType::new(dtype, Shape::from(sizes.as_slice()));
    let owner = Owner { kind: Kind::Input, what: "file", name: name.map(Into::into), source };
    let mut buffer = Buffer::obtain(Ledger::cpu(), ty.bytes("file")?, owner)?;
    fill(buffer.bytes_mut())?;
    Ok(Tensor::from_array(Array::from_buffer(buffer, dtype, Layout::contiguous(sizes))))
}

/// What is wrong with a file.
pub(crate) fn bad_file(path: &Path, what: impl Into<String>, help: &str) -> Error {
    let path = path.display().to_string();
    ErrorKind::BadFile { path, what: what.into(), help: help.into() }.into()
}

/// What the system says about a file.
pub(crate) fn failed(path: &Path, doing: &str, error: &std::io::Error) -> Error {
    use std::io::ErrorKind as Io;
    let help = match error.kind() {
        Io::NotFound => "look at the path",
        Io::PermissionDenied | Io::ReadOnlyFilesystem => "choose a place that you may use",
        Io::StorageFull | Io::QuotaExceeded | Io::FileTooLarge => "make room on the disk",
        Io::UnexpectedEof => "the file is cut short: get it again",
        _ => "look at the disk",
    };
    bad_file(path, format!("cannot be {doing} ({error})"), help)
}

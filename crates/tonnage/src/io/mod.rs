//! Tensors in files.
//!
//! Files are read by positioned reads straight into counted buffers, all at once or some rows at a time, or stay where they are and are
//! read by the ops that use them; they are written a piece at a time. None of it takes more than the tensor in hand. A file that is written appears whole or not at all. What a file says of itself is
//! checked against its length before any memory is taken for it.

mod atomic;
mod checksum;
mod convert;
mod csv;
mod foreign;
mod idx;
mod npy;
mod npz;
mod open;
mod pieces;
mod ranges;
mod regular;
mod rows;
mod safetensors;
mod stats;
mod stored;

use atomic::{WriteSeek, write_atomically};
pub use atomic::{can_save, save_bytes, save_text};
pub use checksum::{read_json, save_json};
pub use csv::{Csv, CsvRow};
pub use idx::{parse_idx, read_idx, save_idx};
pub use npy::{parse_npy, read_npy, save_npy};
pub use npz::{Npz, save_npz, save_npz_deflated};
pub use open::{TensorFile, constant_from_file};
pub use ranges::{RangeIndex, RangedTensors, TensorRange, save_ranges};
use regular::open_file;
pub use regular::{read_bytes, read_text};
pub use rows::{NpyRows, save_npy_rows};
pub use safetensors::{SafeTensors, save_safetensors, save_sharded};
pub use stats::Stats;
pub use stored::{FileTensor, Order};

use std::io::Write;
use std::path::Path;

use tonnage_core::layout::Layout;
use tonnage_core::{DType, Error, ErrorKind, Kind, Mark, Result, Shape, Source, TensorType};
use tonnage_runtime::placement::in_scope;
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

use crate::tensor::Tensor;

/// A tensor in a counted buffer of its own, which is filled in place.
fn filled(
    dtype: DType,
    layout: Layout,
    name: Option<&str>,
    source: Source,
    fill: impl FnOnce(&mut [u8]) -> Result<()>,
) -> Result<Tensor> {
    let ty = TensorType::new(dtype, Shape::from(layout.sizes.as_slice()));
    let owner = Owner { kind: Kind::Input, what: "file", name: name.map(Into::into), source };
    let mut buffer = Buffer::obtain(&host_ledger(), ty.bytes("file")?, owner)?;
    fill(buffer.bytes_mut()?)?;
    Ok(Tensor::from_array(in_scope(Array::from_buffer(buffer, dtype, layout))?))
}

/// Saves a tensor's elements and nothing else, atomically; [`FileTensor::raw`] reads them.
///
/// ```
/// use tonnage::io::{FileTensor, Order, save_raw};
/// let path = std::env::temp_dir().join(format!("raw-{}", std::process::id()));
/// let network = Order { big_endian: true, ..Order::default() };
/// save_raw(&path, &tonnage::tensor([[1u16, 2], [3, 4]])?, network)?;
/// assert_eq!(std::fs::read(&path).unwrap(), [0, 1, 0, 2, 0, 3, 0, 4]);
/// let back = FileTensor::raw(&path, 4, tonnage::DType::U16, &[2], network)?;
/// assert_eq!(back.read()?.to_vec::<u16>()?, [3, 4]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn save_raw(path: impl AsRef<Path>, tensor: &Tensor, order: Order) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    let save = || {
        let array = tensor.array("save_raw")?;
        write_atomically(path, |file| put_elements(file, array, order, path, source))
    };
    save().map_err(|e| e.at(source))
}

/// Writes a tensor's elements in an order, a piece at a time: see [`pieces`].
fn put_elements(
    file: &mut dyn Write,
    array: &Array,
    order: Order,
    path: &Path,
    source: Source,
) -> Result<()> {
    let mark = Mark { source, kind: Kind::Staging };
    let mut array = array.clone();
    if order.columns_first {
        if array.as_recipe().is_some() {
            // A recipe has no bytes to look at in another order.
            array = array.copied(mark, "save")?;
        }
        let back: Vec<usize> = (0..array.sizes().len()).rev().collect();
        array = array.view(array.layout().transpose(&back));
    }
    let dtype = array.dtype();
    let as_it_is = order.big_endian == cfg!(target_endian = "big") || dtype.size() == 1;
    let mut put = |bytes: &[u8]| file.write_all(bytes).map_err(|e| failed(path, "written", &e));
    pieces::for_each_piece(&array, mark, &mut |bytes| {
        if as_it_is {
            return put(bytes);
        }
        let mut swapped = [0; 4096];
        bytes.chunks(swapped.len()).try_for_each(|part| {
            let swapped = &mut swapped[..part.len()];
            swapped.copy_from_slice(part);
            order.swap_bytes(dtype, swapped);
            put(swapped)
        })
    })
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

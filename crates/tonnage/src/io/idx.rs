//! The idx format, which images of digits have come in since 1998: a magic number, lengths, and elements with their
//! highest byte first.

use std::io::Read;
use std::path::Path;
use std::sync::Arc;

use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Result, Shape, Source, TensorType};

use super::stored::{FileTensor, Opened, Order, bytes_of};
use super::{bad_file, failed, filled, put_elements, write_atomically};
use crate::tensor::Tensor;

const ORDER: Order = Order { columns_first: false, big_endian: true };

const HELP: &str = "it is no idx file, or damaged";

/// The kinds of elements, and what they are called.
const KINDS: [(u8, DType); 6] = [
    (0x08, DType::U8),
    (0x09, DType::I8),
    (0x0B, DType::I16),
    (0x0C, DType::I32),
    (0x0D, DType::F32),
    (0x0E, DType::F64),
];

/// Reads an idx file.
///
/// # Errors
/// Where it is not there, not an idx file, or not as long as its lengths say.
#[track_caller]
pub fn read_idx(path: impl AsRef<Path>) -> Result<Tensor> {
    let source = Source::here();
    FileTensor::idx(path).and_then(|file| file.read()).map_err(|e| e.at(source))
}

impl FileTensor {
    /// Of an idx file, whose header is read.
    ///
    /// # Errors
    /// As [`read_idx`] has them.
    pub fn idx(path: impl AsRef<Path>) -> Result<FileTensor> {
        let file = Arc::new(Opened::new(path.as_ref())?);
        let (dtype, sizes, start) = file.at_start(|start| header(start, file.bytes, &file.path))?;
        FileTensor::within(file, start, dtype, sizes, ORDER, None)
    }
}

/// The tensor of an idx file that is in memory, such as one that a program brings with it.
///
/// ```
/// use tonnage::io::parse_idx;
/// let x = parse_idx(&[0, 0, 0x0B, 1, 0, 0, 0, 2, 0, 5, 255, 255])?;
/// assert_eq!(x.to_vec::<i16>()?, [5, -1]);
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn parse_idx(mut bytes: &[u8]) -> Result<Tensor> {
    let (whole, source, path) = (bytes.len() as u64, Source::here(), Path::new("idx data"));
    let mut read = || {
        let (dtype, sizes, _) = header(&mut bytes, whole, path)?;
        filled(dtype, ORDER.layout(sizes), None, source, |into| {
            bytes.read_exact(into).map_err(|e| failed(path, "read", &e))?;
            ORDER.swap_bytes(dtype, into);
            Ok(())
        })
    };
    read().map_err(|e| e.at(source))
}

/// Saves a tensor as idx, atomically.
///
/// # Errors
/// Where the format has no such elements or lengths, or the file cannot be written.
#[track_caller]
pub fn save_idx(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    let save = || {
        let array = tensor.array("save_idx")?;
        let ty = array.ty();
        let wrong = || {
            let help = "use u8, i8, i16, i32, f32 or f64, and lengths under 2^32";
            bad_file(path, format!("cannot hold {ty}"), help)
        };
        let kind = KINDS.iter().find(|(_, dtype)| *dtype == ty.dtype).ok_or_else(wrong)?.0;
        let rank = u8::try_from(array.sizes().len()).map_err(|_| wrong())?;
        let mut header = vec![0, 0, kind, rank];
        for size in array.sizes() {
            header.extend(u32::try_from(*size).map_err(|_| wrong())?.to_be_bytes());
        }
        write_atomically(path, |file| {
            file.write_all(&header).map_err(|e| failed(path, "written", &e))?;
            put_elements(file, array, ORDER, path, source)
        })
    };
    save().map_err(|e| e.at(source))
}

/// Dtype, lengths, and where elements begin.
fn header(file: &mut dyn Read, whole: u64, path: &Path) -> Result<(DType, Sizes, u64)> {
    let mut word = || {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes).map(|()| bytes).map_err(|e| failed(path, "read", &e))
    };
    let [0, 0, code, rank] = word()? else {
        return Err(bad_file(path, "does not begin with two zeros", HELP));
    };
    let Some((_, dtype)) = KINDS.iter().find(|(kind, _)| *kind == code) else {
        let what = format!("has elements of the unknown kind {code:#04x}");
        return Err(bad_file(path, what, HELP));
    };
    let mut sizes = Sizes::new();
    for _ in 0..rank {
        sizes.push(u32::from_be_bytes(word()?) as usize);
    }
    let ty = TensorType::new(*dtype, Shape::from(sizes.as_slice()));
    let start = 4 + 4 * u64::from(rank);
    let (bytes, there) = (bytes_of(&ty, path)?, whole.saturating_sub(start));
    if bytes != there {
        let what = format!("says that it is {ty}, {bytes} bytes, and has {there} of them");
        return Err(bad_file(path, what, HELP));
    }
    Ok((*dtype, sizes, start))
}

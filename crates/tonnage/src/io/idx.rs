//! The idx format, which images of digits have come in since 1998: a magic number, lengths, and elements with their
//! highest byte first.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Result, Shape, Source, TensorType};

use super::{bad_file, failed, filled};
use crate::tensor::Tensor;

/// Reads an idx file.
///
/// # Errors
/// Where it is not there, not an idx file, or not as long as its lengths say.
#[track_caller]
pub fn read_idx(path: impl AsRef<Path>) -> Result<Tensor> {
    let (path, source) = (path.as_ref(), Source::here());
    let read = || {
        let mut file = File::open(path).map_err(|e| failed(path, "opened", &e))?;
        let whole = file.metadata().map_err(|e| failed(path, "read", &e))?.len();
        read(&mut file, whole, path, source)
    };
    read().map_err(|e| e.at(source))
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
    let (whole, source) = (bytes.len() as u64, Source::here());
    read(&mut bytes, whole, Path::new("idx data"), source).map_err(|e| e.at(source))
}

fn read(file: &mut dyn Read, whole: u64, path: &Path, source: Source) -> Result<Tensor> {
    let wrong = |what: String| bad_file(path, what, "it is no idx file, or damaged");
    let mut word = || {
        let mut bytes = [0; 4];
        file.read_exact(&mut bytes).map(|()| bytes).map_err(|e| failed(path, "read", &e))
    };
    let [0, 0, code, rank] = word()? else {
        return Err(wrong("does not begin with two zeros".into()));
    };
    let dtype = match code {
        0x08 => DType::U8,
        0x09 => DType::I8,
        0x0B => DType::I16,
        0x0C => DType::I32,
        0x0D => DType::F32,
        0x0E => DType::F64,
        other => return Err(wrong(format!("has elements of the unknown kind {other:#04x}"))),
    };
    let mut sizes = Sizes::new();
    for _ in 0..rank {
        sizes.push(u32::from_be_bytes(word()?) as usize);
    }
    let ty = TensorType::new(dtype, Shape::from(sizes.as_slice()));
    let bytes = ty.bytes("idx")?;
    let there = whole - 4 - 4 * u64::from(rank);
    if bytes.get() != there {
        return Err(wrong(format!("says that it is {ty}, {bytes}, and has {there} bytes of it")));
    }
    filled(dtype, sizes, None, source, |bytes| {
        file.read_exact(bytes).map_err(|e| failed(path, "read", &e))?;
        if cfg!(target_endian = "little") && dtype.size() > 1 {
            bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
        Ok(())
    })
}

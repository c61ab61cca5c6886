//! Files of other programs, told by how they begin: the error says what they are, not where they stop making sense as something else.

use std::path::Path;

use tonnage_core::Result;

use super::bad_file;
use super::stored::Opened;

const HELP: &str = "it is not supported yet: open it where it was made, and save the tensors there by their names as safetensors or npz";

/// How files of a format begin, and what they are.
const STARTS: &[(&[u8], &str)] = &[
    (b"\x89HDF\r\n\x1a\n", "is an HDF5 file, as Keras writes to .h5 and .weights.h5"),
    (b"GGUF", "is a GGUF file, as llama.cpp reads them"),
    (b"\x1f\x8b", "is compressed with gzip"),
    (b"\x28\xb5\x2f\xfd", "is compressed with zstd"),
    (b"\x80\x02", "is a pickle, as older versions of PyTorch write them"),
    (b"\x80\x03", "is a pickle"),
    (b"\x80\x04", "is a pickle"),
    (b"\x80\x05", "is a pickle"),
];

/// How the names of files in a zip end, and what that zip is.
const IN_ZIPS: &[(&str, &str)] = &[
    ("metadata.json", KERAS),
    ("config.json", KERAS),
    ("model.weights.h5", KERAS),
    ("/data.pkl", "is a file of PyTorch, a zip with a pickle in it"),
    ("/byteorder", "is a file of PyTorch, a zip with a pickle in it"),
];

const KERAS: &str =
    "is a file of Keras 3, a zip with a model's configuration and its weights as HDF5";

/// Fails where a file begins as one of another program does.
pub(super) fn check(file: &Opened) -> Result<()> {
    let mut start = [0; 30 + 64];
    let length = file.bytes.min(start.len() as u64) as usize;
    file.fill(0, &mut start[..length])?;
    let start = &start[..length];
    let found = STARTS.iter().find(|(begins, _)| start.starts_with(begins));
    match found.map(|(_, what)| *what).or_else(|| in_zip(start)) {
        None => Ok(()),
        Some(what) => Err(bad_file(&file.path, what, HELP)),
    }
}

/// What a zip is, by the name of its first file: that stands behind 30 bytes of a header, which says how long it is.
fn in_zip(start: &[u8]) -> Option<&'static str> {
    let (header, rest) = start.strip_prefix(b"PK\x03\x04")?.split_at_checked(26)?;
    let length = usize::from(u16::from_le_bytes([header[22], header[23]]));
    let name = std::str::from_utf8(rest.get(..length)?).ok()?;
    IN_ZIPS.iter().find(|(end, _)| name.ends_with(end)).map(|(_, what)| *what)
}

/// Fails where a folder is one of another program.
pub(super) fn check_folder(path: &Path) -> Result<()> {
    match ["saved_model.pb", "saved_model.pbtxt"].iter().any(|name| path.join(name).exists()) {
        false => Ok(()),
        true => Err(bad_file(path, "is a SavedModel of TensorFlow", HELP)),
    }
}

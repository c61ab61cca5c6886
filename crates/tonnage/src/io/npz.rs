//! NumPy's npz format: a zip archive of npy files, as they are or deflated.
//!
//! The archive is `zip`'s business. A tensor is inflated as it is read, straight into its buffer; sizes and checksums are held against
//! what comes.
//!
//! Decision: `docs/decisions/npy-here-zip-not.md`.

use std::fs::File;
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tonnage_core::{Result, Shape, Source, TensorType};
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use super::stored::{FileTensor, Opened, bytes_of};
use super::{WriteSeek, bad_file, failed, npy, open_file, write_atomically};
use crate::tensor::Tensor;

/// A byte that is deflated becomes no more than this many.
const MOST_DEFLATED: u64 = 1032;

/// An npz file. Opening it reads its directory; each tensor is read when it is asked for.
///
/// ```
/// use tonnage::io::{Npz, save_npz};
/// let path = std::env::temp_dir().join(format!("pair-{}.npz", std::process::id()));
/// let (x, y) = (tonnage::tensor([1.0f32, 2.0])?, tonnage::tensor([[7i64]])?);
/// save_npz(&path, [("x", &x), ("y", &y)])?;
/// let file = Npz::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["x", "y"]);
/// assert_eq!(file.read("y")?.to_vec::<i64>()?, [7]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct Npz {
    path: PathBuf,
    bytes: u64,
    names: Vec<String>,
    archive: Mutex<ZipArchive<BufReader<File>>>,
}

impl Npz {
    /// Reads the directory of a file.
    ///
    /// # Errors
    /// Where it is not there or no zip archive.
    pub fn open(path: impl AsRef<Path>) -> Result<Npz> {
        let path = path.as_ref();
        let (file, bytes) = open_file(path)?;
        let archive = ZipArchive::new(BufReader::new(file)).map_err(|e| wrong(path, e))?;
        let mut names = Vec::with_capacity(archive.len());
        for name in archive.file_names() {
            let name = name.map_err(|e| wrong(path, e))?;
            names.push(name.strip_suffix(".npy").unwrap_or(&name).to_string());
        }
        Ok(Npz { path: path.into(), bytes, names, archive: Mutex::new(archive) })
    }

    /// The tensors' names, as they stand in the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.names.iter().map(String::as_str)
    }

    /// Reads a tensor, straight into a buffer of its own.
    ///
    /// # Errors
    /// Where there is none of that name, or it is damaged.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let source = Source::here();
        self.found(name, source).map_err(|e| e.at(source))
    }

    /// The type of a tensor, from the start of its entry.
    ///
    /// # Errors
    /// Where there is none of that name, or its dtype is none of ours.
    pub fn ty(&self, name: &str) -> Result<TensorType> {
        let index = self.index(name)?;
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = archive.by_index(index).map_err(|e| wrong(&self.path, e))?;
        let header = npy::Header::read(&mut entry, &self.path.join(name))?;
        Ok(TensorType::new(header.dtype, Shape::from(header.sizes.as_slice())))
    }

    /// A tensor that stays in the file; `None` where it is deflated, and has to be read as a whole. Its checksum is not looked at.
    ///
    /// # Errors
    /// As [`ty`](Npz::ty) has them.
    pub fn tensor(&self, name: &str) -> Result<Option<FileTensor>> {
        let index = self.index(name)?;
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = archive.by_index(index).map_err(|e| wrong(&self.path, e))?;
        if entry.compression() != CompressionMethod::Stored || entry.encrypted() {
            return Ok(None);
        }
        let (start, inside) = (entry.data_start(), self.path.join(name));
        let npy::Header { dtype, sizes, order, bytes } = npy::Header::read(&mut entry, &inside)?;
        let ty = TensorType::new(dtype, Shape::from(sizes.as_slice()));
        let (needed, there) = (bytes_of(&ty, &inside)?, entry.size().saturating_sub(bytes));
        if needed > there {
            let what = format!("says that it holds {ty}, {needed} bytes, and has {there} of them");
            return Err(bad_file(&inside, what, "it is damaged"));
        }
        let Some(at) = start.and_then(|start| start.checked_add(bytes)) else { return Ok(None) };
        let file = Arc::new(Opened::new(&self.path)?);
        FileTensor::within(file, at, dtype, sizes, order, Some(name)).map(Some)
    }

    fn index(&self, name: &str) -> Result<usize> {
        self.names.iter().position(|own| own == name).ok_or_else(|| {
            let near = self.names().take(5).collect::<Vec<_>>().join("`, `");
            let what = format!("holds no `{name}` among its {} tensors", self.names.len());
            bad_file(&self.path, what, &format!("it begins with `{near}`"))
        })
    }

    fn found(&self, name: &str, source: Source) -> Result<Tensor> {
        let path = self.path.as_path();
        let index = self.index(name)?;
        let mut archive = self.archive.lock().unwrap_or_else(PoisonError::into_inner);
        let mut entry = archive.by_index(index).map_err(|e| wrong(path, e))?;
        // A size that more bytes than there are would have to be inflated to is a lie.
        let there = entry.compressed_size().min(self.bytes);
        let whole = entry.size().min(match entry.compression() {
            CompressionMethod::Stored => there,
            _ => there.saturating_mul(MOST_DEFLATED),
        });
        let inside = path.join(name);
        let tensor = npy::read(&mut entry, whole, &inside, Some(name), source)?;
        // The checksum is compared where the entry ends.
        match entry.read(&mut [0; 1]) {
            Ok(0) => Ok(tensor),
            Ok(_) => {
                let what = format!("goes on behind the elements of {}", tensor.ty());
                Err(bad_file(&inside, what, "it is damaged"))
            }
            Err(error) => Err(failed(&inside, "read", &error)),
        }
    }
}

/// Saves named tensors as they are, atomically.
///
/// # Errors
/// Where two tensors have one name, or the file cannot be written; the old one is then still there.
#[track_caller]
pub fn save_npz<'t>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    save(path, &mut tensors.into_iter(), CompressionMethod::Stored, source)
}

/// Saves named tensors deflated, atomically: smaller, and slower.
///
/// # Errors
/// As [`save_npz`] has them.
#[track_caller]
pub fn save_npz_deflated<'t>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    save(path, &mut tensors.into_iter(), CompressionMethod::Deflated, source)
}

fn save(
    path: &Path,
    tensors: &mut dyn Iterator<Item = (&str, &Tensor)>,
    how: CompressionMethod,
    source: Source,
) -> Result<()> {
    let write = |file: &mut dyn WriteSeek| {
        let options = SimpleFileOptions::default().compression_method(how);
        let mut archive = ZipWriter::new(file);
        for (name, tensor) in tensors {
            let array = tensor.array("save_npz")?;
            // Beyond 4 GiB sizes take eight bytes, and they come before the elements.
            let large = array.ty().bytes("save_npz")?.get() >= u64::from(u32::MAX) / 2;
            archive
                .start_file(format!("{name}.npy"), options.large_file(large))
                .map_err(|e| wrong(path, e))?;
            npy::put(&mut archive, array, path, source)?;
        }
        archive.finish().map(|_| ()).map_err(|e| wrong(path, e))
    };
    write_atomically(path, write).map_err(|e| e.at(source))
}

/// What the archive's library says.
fn wrong(path: &Path, error: ZipError) -> tonnage_core::Error {
    match error {
        ZipError::Io(error) => failed(path, "read or written", &error),
        other => bad_file(path, format!("is no npz file ({other})"), "look at what made it"),
    }
}

//! A file of tensors, whatever its format: found out from how it begins.

use std::path::{Path, PathBuf};

use tonnage_core::{Bytes, Result, Source, TensorType};

use super::stored::Opened;
use super::{Csv, FileTensor, Npz, SafeTensors, Stats, bad_file, foreign};
use crate::tensor::Tensor;

/// A file of one or several tensors: npy, npz, safetensors (also in several files), idx or csv. Opening it reads what it says of itself and
/// no elements.
///
/// ```
/// use tonnage::io::{TensorFile, save_npz};
/// let path = std::env::temp_dir().join(format!("open-{}.npz", std::process::id()));
/// save_npz(&path, [("x", &tonnage::tensor([1.0f32, 2.0])?)])?;
/// let file = TensorFile::open(&path)?;
/// assert_eq!((file.names(), file.ty("x")?.to_string()), (vec!["x"], "f32[2]".to_string()));
/// assert_eq!(file.lazy("x")?.sum_all()?.scalar::<f32>()?, 3.0);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct TensorFile {
    path: PathBuf,
    format: Format,
    holds: FileContents,
}

#[derive(Debug)]
enum FileContents {
    One(String, FileTensor),
    Npz(Npz),
    SafeTensors(SafeTensors),
    Table(String, Tensor),
}

/// What a format is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Npy,
    Npz,
    Idx,
    SafeTensors,
    Csv,
}

impl TensorFile {
    /// Opens a file, or a model in several files by its folder or index.
    ///
    /// # Errors
    /// Where it is not there, of no format that is known, or does not hold what it says.
    #[track_caller]
    pub fn open(path: impl AsRef<Path>) -> Result<TensorFile> {
        let (path, source) = (path.as_ref(), Source::here());
        let open = || {
            let name = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
            let format = format(path)?;
            let holds = match format {
                Format::Npy => FileContents::One(name(), FileTensor::npy(path)?),
                Format::Idx => FileContents::One(name(), FileTensor::idx(path)?),
                Format::Npz => FileContents::Npz(Npz::open(path)?),
                Format::SafeTensors => FileContents::SafeTensors(SafeTensors::open(path)?),
                Format::Csv => FileContents::Table(name(), Csv::new().read(path)?),
            };
            Ok(TensorFile { path: path.into(), format, holds })
        };
        open().map_err(|e: tonnage_core::Error| e.at(source))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What the format is called.
    pub fn format(&self) -> &'static str {
        match self.format {
            Format::Npy => "npy",
            Format::Npz => "npz",
            Format::Idx => "idx",
            Format::SafeTensors => "safetensors",
            Format::Csv => "csv",
        }
    }

    /// The tensors' names. That of a file of one tensor is the file's, without its end.
    pub fn names(&self) -> Vec<&str> {
        match &self.holds {
            FileContents::One(name, _) | FileContents::Table(name, _) => vec![name],
            FileContents::Npz(file) => file.names().collect(),
            FileContents::SafeTensors(file) => file.names().collect(),
        }
    }

    /// The type of a tensor.
    ///
    /// # Errors
    /// Where there is none of that name, or its dtype is none of ours.
    pub fn ty(&self, name: &str) -> Result<TensorType> {
        match &self.holds {
            FileContents::One(own, file) => self.only(own, name).map(|()| file.ty()),
            FileContents::Table(own, table) => self.only(own, name).map(|()| table.ty()),
            FileContents::Npz(file) => file.ty(name),
            FileContents::SafeTensors(file) => file.ty(name),
        }
    }

    /// A tensor that stays in the file; `None` where it is packed (deflated, or text) and has to be read as a whole.
    ///
    /// # Errors
    /// As [`ty`](TensorFile::ty) has them.
    pub fn tensor(&self, name: &str) -> Result<Option<FileTensor>> {
        match &self.holds {
            FileContents::One(own, file) => self.only(own, name).map(|()| Some(file.clone())),
            FileContents::Table(own, _) => self.only(own, name).map(|()| None),
            FileContents::Npz(file) => file.tensor(name),
            FileContents::SafeTensors(file) => file.tensor(name).map(Some),
        }
    }

    /// Reads a tensor.
    ///
    /// # Errors
    /// As [`ty`](TensorFile::ty) has them, and where there is no memory for it.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let source = Source::here();
        let read = match &self.holds {
            FileContents::One(own, file) => self.only(own, name).and_then(|()| file.read()),
            FileContents::Table(own, table) => self.only(own, name).map(|()| table.clone()),
            FileContents::Npz(file) => file.read(name),
            FileContents::SafeTensors(file) => file.read(name),
        };
        read.map_err(|e| e.at(source))
    }

    /// A tensor that is read as it is used, as [`FileTensor::lazy`] has it; one that is packed is read now.
    ///
    /// # Errors
    /// As [`read`](TensorFile::read) has them.
    #[track_caller]
    pub fn lazy(&self, name: &str) -> Result<Tensor> {
        let source = Source::here();
        match self.tensor(name).map_err(|e| e.at(source))? {
            Some(file) => Ok(file.lazy()),
            None => self.read(name).map_err(|e| e.at(source)),
        }
    }

    /// The least, the largest, the mean and what is no number, in one pass that takes 1 MiB; `progress` is told after each piece how
    /// many bytes it was.
    ///
    /// # Errors
    /// As [`read`](TensorFile::read) has them.
    #[track_caller]
    pub fn stats(&self, name: &str, progress: impl FnMut(Bytes)) -> Result<Stats> {
        let source = Source::here();
        let stats = match self.tensor(name) {
            Ok(Some(file)) => Stats::of(&file.lazy(), progress),
            Ok(None) => self.read(name).and_then(|tensor| Stats::of(&tensor, progress)),
            Err(error) => Err(error),
        };
        stats.map_err(|e| e.at(source))
    }

    fn only(&self, own: &str, asked: &str) -> Result<()> {
        match own == asked {
            true => Ok(()),
            false => {
                let what = format!("holds one tensor, which is not called `{asked}`");
                Err(bad_file(&self.path, what, &format!("it is called `{own}`")))
            }
        }
    }
}

/// A constant that stays in its file and is read as it is used, as [`FileTensor::lazy`] has it. Without a name the file has to hold one tensor.
///
/// ```
/// use tonnage::io::{constant_from_file, save_npy};
/// let path = std::env::temp_dir().join(format!("table-{}.npy", std::process::id()));
/// save_npy(&path, &tonnage::range(0i32, 1000, 1)?)?;
/// let table = constant_from_file(&path, None)?;
/// let f = tonnage::function(move |x: tonnage::Tensor| (&table * &x)?.sum_all());
/// assert_eq!(f.call(tonnage::tensor(2i32)?)?.scalar::<i32>()?, 999_000);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// As [`TensorFile::open`] and [`TensorFile::lazy`] have them, and where there are several tensors and none is named.
#[track_caller]
pub fn constant_from_file(path: impl AsRef<Path>, name: Option<&str>) -> Result<Tensor> {
    let source = Source::here();
    let open = || {
        let file = TensorFile::open(path)?;
        match (name, file.names().as_slice()) {
            (Some(name), _) => file.lazy(name),
            (None, [only]) => file.lazy(only),
            (None, names) => {
                let what = format!("holds {} tensors, and none is named", names.len());
                Err(bad_file(file.path(), what, "say which of them"))
            }
        }
    };
    open().map_err(|e| e.at(source))
}

/// The format, from how a file begins. A text that is none of them is a table if its name says so.
fn format(path: &Path) -> Result<Format> {
    if path.is_dir() || path.extension().is_some_and(|end| end == "json") {
        return Ok(Format::SafeTensors);
    }
    let file = Opened::new(path)?;
    let mut start = [0; 9];
    let length = file.bytes.min(start.len() as u64) as usize;
    file.fill(0, &mut start[..length])?;
    match start {
        [0x93, b'N', b'U', b'M', b'P', b'Y', ..] => Ok(Format::Npy),
        [b'P', b'K', 3 | 5, 4 | 6, ..] => foreign::check(&file).map(|()| Format::Npz),
        [0, 0, 0x08..=0x0E, 0..=32, ..] => Ok(Format::Idx),
        [.., b'{'] => Ok(Format::SafeTensors),
        _ => {
            foreign::check(&file)?;
            by_name(path)
        }
    }
}

/// The format that a file's name says. Files that do not begin as they should are damaged then, and say how.
fn by_name(path: &Path) -> Result<Format> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("csv") => Ok(Format::Csv),
        Some("npy") => Ok(Format::Npy),
        Some("npz") => Ok(Format::Npz),
        Some("idx") => Ok(Format::Idx),
        Some("safetensors") => Ok(Format::SafeTensors),
        _ => {
            let what = "does not begin as any file of tensors does";
            Err(bad_file(path, what, "use npy, npz, safetensors, idx or csv"))
        }
    }
}

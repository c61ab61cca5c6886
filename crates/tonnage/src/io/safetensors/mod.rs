//! The safetensors format: a header in JSON, then the bytes of all tensors; in one file, or in several with an index.

mod index;
mod save;

pub use save::{save_safetensors, save_sharded};

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tonnage_core::{DType, Result, Source, TensorType};

use super::checksum::{DIGITS, damaged, find_last, is_sealed};
use super::stored::{FileTensor, Opened, Order};
use super::{bad_file, failed, foreign};
use crate::tensor::Tensor;

/// The longest header, as the format's own library has it.
const MOST_HEADER: u64 = 100_000_000;

/// The note that holds checksums: that of the header, then those of the tensors in the order of their names.
const CHECKSUMS: &str = "tonnage.checksums";

/// How that note stands in a header. A name or another note cannot hold this text, since quotation marks are escaped in them.
fn before_checksums() -> String {
    format!("\"{CHECKSUMS}\":\"")
}

/// Named tensors in a file, or in several with an index. Opening reads headers; each tensor is read when it is asked for.
///
/// ```
/// use tonnage::io::{SafeTensors, save_safetensors};
/// use tonnage::tensor;
/// let path = std::env::temp_dir().join(format!("pair-{}.safetensors", std::process::id()));
/// let (a, b) = (tensor([1.0f32, 2.0])?, tensor([[7i64]])?);
/// save_safetensors(&path, [("a", &a), ("b", &b)], &[("made by", "an example")])?;
/// let file = SafeTensors::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b"]);
/// assert_eq!(file.read("a")?.to_vec::<f32>()?, [1.0, 2.0]);
/// assert_eq!(file.note("made by"), Some("an example"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug)]
pub struct SafeTensors {
    path: PathBuf,
    files: Vec<One>,
    /// In which file each is.
    tensors: BTreeMap<String, usize>,
}

/// One file.
#[derive(Debug)]
struct One {
    file: Arc<Opened>,
    /// Where the bytes of tensors begin.
    start: u64,
    tensors: BTreeMap<String, TensorInfo>,
    notes: HashMap<String, String>,
    /// The checksums of its tensors, by name; empty where it has none.
    sums: BTreeMap<String, u64>,
}

impl SafeTensors {
    /// Reads the header of a file, or of all files that an index (`.json`) or a folder with one names.
    ///
    /// # Errors
    /// Where a file is not there, is cut short, or its header does not describe it; where an index names a file outside of its folder, or
    /// tensors that are not where it says; where a header is not as it was saved.
    pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors> {
        let path = path.as_ref();
        if path.is_dir() || path.extension().is_some_and(|e| e == "json") {
            return index::open(path);
        }
        let one = One::open(path)?;
        let tensors = one.tensors.keys().map(|name| (name.clone(), 0)).collect();
        Ok(SafeTensors { path: path.into(), files: vec![one], tensors })
    }

    /// The file, or the index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The type of a tensor.
    pub fn ty(&self, name: &str) -> Result<TensorType> {
        self.tensor(name).map(|tensor| tensor.ty())
    }

    /// A text that was saved beside the tensors.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.files.iter().find_map(|one| one.notes.get(key)).map(String::as_str)
    }

    /// Reads a tensor, straight into a buffer of its own.
    ///
    /// # Errors
    /// Where there is none of that name, or it is not as it was saved.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let source = Source::here();
        self.tensor(name).and_then(|tensor| tensor.read()).map_err(|e| e.at(source))
    }

    /// Reads all tensors once and compares them with their checksums. Files of other programs have none, and pass.
    ///
    /// # Errors
    /// Where one of them is not as it was saved.
    pub fn check(&self) -> Result<()> {
        // One of a dtype that is none of ours cannot be read either.
        let ours = self.names().filter_map(|name| self.tensor(name).ok());
        ours.into_iter().try_for_each(|tensor| tensor.check())
    }

    /// A tensor that stays in the file, to be read some rows at a time.
    ///
    /// # Errors
    /// Where there is none of that name, or its dtype is none of ours.
    pub fn tensor(&self, name: &str) -> Result<FileTensor> {
        let found = self.tensors.get(name).and_then(|file| self.files.get(*file));
        let Some((one, info)) = found.and_then(|one| Some((one, one.tensors.get(name)?))) else {
            let near = self.names().take(5).collect::<Vec<_>>().join("`, `");
            let what = format!("holds no `{name}` among its {} tensors", self.tensors.len());
            return Err(bad_file(&self.path, what, &format!("it begins with `{near}`")));
        };
        let Some(dtype) = dtype_of(info.dtype) else {
            let what = format!("`{name}` is of the dtype {:?}", info.dtype);
            return Err(bad_file(&one.file.path, what, "convert it to one of ours, such as F32"));
        };
        let (sizes, at) = (info.shape.iter().copied().collect(), info.data_offsets.0 as u64);
        let (file, sum) = (one.file.clone(), one.sums.get(name).copied());
        FileTensor::within(file, one.start + at, dtype, sizes, Order::default(), Some(name))
            .map(|tensor| tensor.with_sum(sum))
    }
}

impl One {
    fn open(path: &Path) -> Result<One> {
        let wrong = |what: String| bad_file(path, what, "it is no safetensors file, or damaged");
        let file = Opened::new(path)?;
        let whole = file.bytes;
        let mut length = [0; 8];
        file.fill(0, &mut length)?;
        let length = u64::from_le_bytes(length);
        if length > MOST_HEADER || length + 8 > whole {
            foreign::check(&file)?;
            return Err(wrong(format!("says that its header has {length} bytes, of {whole}")));
        }
        let mut header = vec![0; length as usize];
        file.fill(8, &mut header)?;
        let text = header;
        // Checks offsets and sizes too.
        let header: Metadata =
            serde_json::from_slice(&text).map_err(|e| wrong(format!("has a bad header ({e})")))?;
        let (start, data) = (length + 8, header.data_len() as u64);
        if start + data != whole {
            let there = whole - start;
            return Err(wrong(format!("says that it holds {data} bytes of tensors, not {there}")));
        }
        let tensors = header.tensors().into_iter().map(|(name, info)| (name, info.clone()));
        let tensors: BTreeMap<String, TensorInfo> = tensors.collect();
        let sums = sums(&text, &tensors).ok_or_else(|| damaged(path, "its header"))?;
        let notes = header.metadata().iter().flatten();
        let notes = notes.map(|(key, note)| (key.clone(), note.clone())).collect();
        Ok(One { file: Arc::new(file), start, tensors, notes, sums })
    }
}

/// The checksums of tensors that a header holds, none where it holds no checksums; `None` where it is not as it was saved.
fn sums(header: &[u8], tensors: &BTreeMap<String, TensorInfo>) -> Option<BTreeMap<String, u64>> {
    let before = before_checksums();
    let Some(at) = find_last(header, &before).map(|at| at + before.len()) else {
        return Some(BTreeMap::new());
    };
    if !is_sealed(header, at) {
        return None;
    }
    let all = header[at + DIGITS..].chunks(DIGITS).map(|digits| {
        let digits = std::str::from_utf8(digits).ok()?;
        u64::from_str_radix(digits, 16).ok()
    });
    tensors.keys().zip(all).map(|(name, sum)| Some((name.clone(), sum?))).collect()
}

fn dtype_of(dtype: Dtype) -> Option<DType> {
    DType::ALL.into_iter().find(|ours| dtype_to(*ours) == dtype)
}

fn dtype_to(dtype: DType) -> Dtype {
    match dtype {
        DType::Bool => Dtype::BOOL,
        DType::U8 => Dtype::U8,
        DType::I8 => Dtype::I8,
        DType::U16 => Dtype::U16,
        DType::I16 => Dtype::I16,
        DType::U32 => Dtype::U32,
        DType::I32 => Dtype::I32,
        DType::U64 => Dtype::U64,
        DType::I64 => Dtype::I64,
        DType::F16 => Dtype::F16,
        DType::BF16 => Dtype::BF16,
        DType::F32 => Dtype::F32,
        DType::F64 => Dtype::F64,
    }
}

//! The safetensors format: a header in JSON, then the bytes of all tensors.

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tonnage_core::{DType, Kind, Mark, Result, Shape, Source, TensorType};

use super::{bad_file, failed, filled, write_atomically};
use crate::tensor::Tensor;

/// A header may take so much, as the format's own library has it.
const MOST_HEADER: u64 = 100_000_000;

/// A file of named tensors. Opening it reads its header; each tensor is read when it is asked for.
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
    file: Mutex<File>,
    /// Where the bytes of tensors begin.
    start: u64,
    tensors: BTreeMap<String, TensorInfo>,
    notes: HashMap<String, String>,
}

impl SafeTensors {
    /// Reads the header of a file.
    ///
    /// # Errors
    /// Where the file is not there, is cut short, or its header does not describe it.
    pub fn open(path: impl AsRef<Path>) -> Result<SafeTensors> {
        let path = path.as_ref();
        let wrong = |what: String| bad_file(path, what, "it is no safetensors file, or damaged");
        let mut file = File::open(path).map_err(|e| failed(path, "opened", &e))?;
        let whole = file.metadata().map_err(|e| failed(path, "read", &e))?.len();
        let mut length = [0; 8];
        file.read_exact(&mut length).map_err(|e| failed(path, "read", &e))?;
        let length = u64::from_le_bytes(length);
        if length > MOST_HEADER || length + 8 > whole {
            return Err(wrong(format!("says that its header has {length} bytes, of {whole}")));
        }
        let mut header = vec![0; length as usize];
        file.read_exact(&mut header).map_err(|e| failed(path, "read", &e))?;
        // Checks offsets and sizes too.
        let header: Metadata = serde_json::from_slice(&header)
            .map_err(|e| wrong(format!("has a bad header ({e})")))?;
        let (start, data) = (length + 8, header.data_len() as u64);
        if start + data != whole {
            let there = whole - start;
            return Err(wrong(format!("says that it holds {data} bytes of tensors, not {there}")));
        }
        let tensors = header.tensors().into_iter().map(|(name, info)| (name, info.clone()));
        let (tensors, notes) = (tensors.collect(), header.metadata().clone().unwrap_or_default());
        Ok(SafeTensors { path: path.into(), file: Mutex::new(file), start, tensors, notes })
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.tensors.keys().map(String::as_str)
    }

    /// The type of a tensor.
    pub fn ty(&self, name: &str) -> Result<TensorType> {
        self.found(name).map(|(ty, _)| ty)
    }

    /// A text that was saved beside the tensors.
    pub fn note(&self, key: &str) -> Option<&str> {
        self.notes.get(key).map(String::as_str)
    }

    /// Reads a tensor, straight into a buffer of its own.
    #[track_caller]
    pub fn read(&self, name: &str) -> Result<Tensor> {
        let source = Source::here();
        let read = || {
            let (ty, info) = self.found(name)?;
            let (sizes, at) = (info.shape.iter().copied().collect(), info.data_offsets.0 as u64);
            filled(ty.dtype, sizes, Some(name), source, |bytes| self.fill(at, bytes))
        };
        read().map_err(|e| e.at(source))
    }

    fn fill(&self, at: u64, into: &mut [u8]) -> Result<()> {
        let mut file = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        file.seek(SeekFrom::Start(self.start + at))
            .and_then(|_| file.read_exact(into))
            .map_err(|e| failed(&self.path, "read", &e))
    }

    fn found(&self, name: &str) -> Result<(TensorType, &TensorInfo)> {
        let Some(info) = self.tensors.get(name) else {
            let near = self.names().take(5).collect::<Vec<_>>().join("`, `");
            let what = format!("holds no `{name}` among its {} tensors", self.tensors.len());
            return Err(bad_file(&self.path, what, &format!("it begins with `{near}`")));
        };
        let Some(dtype) = dtype_of(info.dtype) else {
            let what = format!("`{name}` is of the dtype {:?}", info.dtype);
            return Err(bad_file(&self.path, what, "convert it to one of ours, such as F32"));
        };
        Ok((TensorType::new(dtype, Shape::from(info.shape.as_slice())), info))
    }
}

/// Saves named tensors and texts, atomically. Takes no more than the largest tensor that has to be written out (a recipe or
/// a view); those in memory are written from where they lie.
///
/// # Errors
/// Where two tensors have one name, or the file cannot be written; the old one is then still there.
#[track_caller]
pub fn save_safetensors<'t>(
    path: impl AsRef<Path>,
    tensors: impl IntoIterator<Item = (&'t str, &'t Tensor)>,
    notes: &[(&str, &str)],
) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    save(path, tensors.into_iter().collect(), notes, source).map_err(|e| e.at(source))
}

fn save(
    path: &Path,
    mut tensors: Vec<(&str, &Tensor)>,
    notes: &[(&str, &str)],
    source: Source,
) -> Result<()> {
    tensors.sort_by_key(|(name, _)| *name);
    if let Some(pair) = tensors.windows(2).find(|pair| pair[0].0 == pair[1].0) {
        let what = format!("two tensors are called `{}`", pair[0].0);
        return Err(bad_file(path, what, "give each a name of its own"));
    }
    let (mut infos, mut end) = (Vec::with_capacity(tensors.len()), 0usize);
    for (name, tensor) in &tensors {
        let array = tensor.array("save_safetensors")?;
        let start = end;
        end += array.ty().bytes("save_safetensors")?.as_usize();
        let (dtype, shape) = (dtype_to(array.dtype()), array.sizes().to_vec());
        infos.push((name.to_string(), TensorInfo { dtype, shape, data_offsets: (start, end) }));
    }
    let texts = notes.iter().map(|(key, text)| (key.to_string(), text.to_string())).collect();
    let header = Metadata::new(Some(texts), infos)
        .map_err(|e| e.to_string())
        .and_then(|header| serde_json::to_vec(&header).map_err(|e| e.to_string()))
        .map_err(|e| bad_file(path, format!("has no header ({e})"), "rename the tensors"))?;
    // Tensors begin at a multiple of 8.
    let padding = header.len().next_multiple_of(8) - header.len();
    write_atomically(path, |file| {
        let put = |file: &mut dyn Write, bytes: &[u8]| {
            file.write_all(bytes).map_err(|e| failed(path, "written", &e))
        };
        put(file, &((header.len() + padding) as u64).to_le_bytes())?;
        put(file, &header)?;
        put(file, &[b' '; 8][..padding])?;
        for (_, tensor) in &tensors {
            let mut array = tensor.array("save_safetensors")?.clone();
            if !array.is_whole() || array.as_recipe().is_some() {
                array = array.copied(Mark { source, kind: Kind::Staging }, "save_safetensors")?;
            }
            put(file, array.pin("save_safetensors", source)?.bytes())?;
        }
        Ok(())
    })
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

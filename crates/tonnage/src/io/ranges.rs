//! Tensors in ranges: several files, each with ranges of named tensors, and an index. Each rank of a job writes one file, and any number of ranks reads the ranges that
//! it needs.
//!
//! A range is elements of a tensor in their order, from a place on. In its file it lies in pieces, each a tensor of safetensors with a checksum of its own: who reads
//! a range reads the pieces that it touches, and knows that they are as they were saved.

use std::collections::BTreeMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};
use tonnage_core::layout::Layout;
use tonnage_core::{Bytes, DType, Result, Shape, Source, TensorType};

use super::{FileTensor, SafeTensors, bad_file, filled, read_json, save_json, save_safetensors};
use crate::ops::Elementwise;
use crate::tensor::Tensor;
use crate::variable::Variable;

/// Pieces of a range, at most.
const PIECES: usize = 128;

/// Bytes of a piece, at least: each has about a hundred in the file's header.
const LEAST: usize = 1 << 10;

/// A range of a named tensor, as it is saved.
#[derive(Debug, Clone)]
pub struct TensorRange {
    /// The name of the whole.
    pub name: String,
    /// The type of the whole.
    pub whole: TensorType,
    /// The number of its first element.
    pub start: usize,
    /// Its elements, of any shape.
    pub values: Tensor,
}

/// Where a range lies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedRange {
    file: String,
    start: usize,
    count: usize,
    /// Elements of a piece; the last may have fewer.
    piece: usize,
}

impl SavedRange {
    /// The elements of its pieces.
    fn pieces(&self) -> impl Iterator<Item = Range<usize>> {
        let (end, piece) = (self.start + self.count, self.piece);
        (self.start..end).step_by(piece).map(move |at| at..(at + piece).min(end))
    }
}

/// A tensor of an index.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SavedTensor {
    dtype: DType,
    shape: Vec<usize>,
    ranges: Vec<SavedRange>,
}

/// What an index holds, or one file's part of it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RangeIndex {
    tensors: BTreeMap<String, SavedTensor>,
    /// Texts beside them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    notes: BTreeMap<String, String>,
}

impl RangeIndex {
    /// The part of a file that another process wrote, as text: see [`RangeIndex::to_text`].
    pub(crate) fn from_text(text: &str) -> Option<RangeIndex> {
        serde_json::from_str(text).ok()
    }

    /// Its text, for another process.
    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// With texts beside the tensors.
    pub(crate) fn with_notes(mut self, notes: &[(&str, &str)]) -> RangeIndex {
        self.notes.extend(notes.iter().map(|(name, text)| (name.to_string(), text.to_string())));
        self
    }

    /// With the ranges of another file.
    #[must_use]
    pub fn and(mut self, other: RangeIndex) -> RangeIndex {
        for (name, tensor) in other.tensors {
            match self.tensors.get_mut(&name) {
                Some(own) => own.ranges.extend(tensor.ranges),
                None => drop(self.tensors.insert(name, tensor)),
            }
        }
        self
    }

    /// Saves the index, atomically: when all files that it names are there.
    ///
    /// # Errors
    /// Where the ranges of a tensor leave an element out or have it twice, or the file cannot be written.
    pub fn save(mut self, path: impl AsRef<Path>) -> Result<()> {
        self.check(path.as_ref())?;
        save_json(path, &self)
    }

    /// Puts ranges in their order, which has to be without a gap.
    fn check(&mut self, path: &Path) -> Result<()> {
        for (name, tensor) in &mut self.tensors {
            tensor.ranges.sort_by_key(|range| (range.start, range.count));
            let mut end = Some(0usize);
            for range in &tensor.ranges {
                let next = range.start.checked_add(range.count).filter(|_| range.piece > 0);
                end = next.filter(|_| end == Some(range.start));
            }
            if end.is_none() || end != elements(&tensor.shape) {
                let what = format!("has not every element of `{name}` once");
                return Err(bad_file(path, what, "save every range of a tensor, and each once"));
            }
        }
        Ok(())
    }
}

fn elements(shape: &[usize]) -> Option<usize> {
    shape.iter().try_fold(1usize, |all, length| all.checked_mul(*length))
}

/// What a piece is called in its file.
fn piece_name(name: &str, start: usize) -> String {
    format!("{name}@{start}")
}

/// Saves ranges of tensors as one file, atomically; its part of the index. Takes no more than what a range needs to be written out.
///
/// ```
/// use tonnage::io::{RangedTensors, TensorRange, save_ranges};
/// use tonnage::{Part, tensor};
/// let folder = std::env::temp_dir().join(format!("ranges-{}", std::process::id()));
/// std::fs::create_dir_all(&folder).unwrap();
/// let x = tensor([[1.0f32, 2.0], [3.0, 4.0]])?;
/// let range = |start: usize, values| TensorRange { name: "x".into(), whole: x.ty(), start, values };
/// let first = save_ranges(folder.join("a.safetensors"), &[range(0, tensor([1.0f32, 2.0, 3.0])?)])?;
/// let rest = save_ranges(folder.join("b.safetensors"), &[range(3, tensor([4.0f32])?)])?;
/// first.and(rest).save(folder.join("index.json"))?;
/// let saved = RangedTensors::open(folder.join("index.json"))?;
/// assert_eq!(saved.ty("x")?, x.ty());
/// assert_eq!(saved.read_range("x", 2..4)?.to_vec::<f32>()?, [3.0, 4.0]);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a range is none of its tensor, or the file cannot be written.
#[track_caller]
pub fn save_ranges(path: impl AsRef<Path>, ranges: &[TensorRange]) -> Result<RangeIndex> {
    let (path, source) = (path.as_ref(), Source::here());
    saved(path, ranges).map_err(|e| e.at(source))
}

fn saved(path: &Path, ranges: &[TensorRange]) -> Result<RangeIndex> {
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut pieces, mut index) = (Vec::new(), RangeIndex::default());
    for range in ranges {
        let TensorRange { name, whole, start, values } = range;
        let array = values.array("save_ranges")?;
        let (count, shape) = (array.sizes().iter().product::<usize>(), whole.shape.sizes());
        let fits = |all: usize| start.checked_add(count).is_some_and(|end| end <= all);
        let shape = shape.filter(|shape| elements(shape).is_some_and(fits));
        let Some(shape) = shape.filter(|_| whole.dtype == array.dtype()) else {
            let what = format!("{} from {start} on is no range of {whole}", values.ty());
            return Err(bad_file(path, what, "give elements of the tensor, of its dtype"));
        };
        let least = LEAST / whole.dtype.size();
        let piece = count.div_ceil(PIECES).max(least).max(1);
        let flat = values.reshape([count])?;
        for at in (0..count).step_by(piece) {
            let part = (at as i64..(at + piece).min(count) as i64).into();
            pieces.push((piece_name(name, start + at), flat.slice(&[part])?));
        }
        let saved = SavedRange { file: file.clone(), start: *start, count, piece };
        let tensor = SavedTensor { dtype: whole.dtype, shape: shape.to_vec(), ranges: vec![saved] };
        let tensors = BTreeMap::from([(name.clone(), tensor)]);
        index = index.and(RangeIndex { tensors, notes: BTreeMap::new() });
    }
    let tensors = pieces.iter().map(|(name, piece)| (name.as_str(), piece));
    save_safetensors(path, tensors, &[("format", "tonnage ranges")])?;
    Ok(index)
}

/// Tensors that were saved in ranges, by their index. Files are opened as they are needed.
#[derive(Debug)]
pub struct RangedTensors {
    path: PathBuf,
    index: RangeIndex,
    opened: Mutex<BTreeMap<String, Arc<SafeTensors>>>,
    read: AtomicU64,
}

impl RangedTensors {
    /// Reads an index.
    ///
    /// # Errors
    /// Where it is not there or not as it was saved, or names a file outside of its folder.
    pub fn open(path: impl AsRef<Path>) -> Result<RangedTensors> {
        let path = path.as_ref();
        let mut index: RangeIndex = read_json(path, "index of ranges")?;
        let mut ranges = index.tensors.values().flat_map(|tensor| &tensor.ranges);
        let is_name = |file: &str| Path::new(file).file_name().is_some_and(|last| last == file);
        if let Some(range) = ranges.find(|range| !is_name(&range.file)) {
            let what = format!("names `{}`, which is not beside it", range.file);
            return Err(bad_file(path, what, "it is damaged"));
        }
        index.check(path)?;
        let (opened, read) = (Mutex::default(), AtomicU64::new(0));
        Ok(RangedTensors { path: path.into(), index, opened, read })
    }

    /// The index.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The tensors' names, sorted.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.index.tensors.keys().map(String::as_str)
    }

    /// The files that it is in, beside the index.
    pub fn files(&self) -> impl Iterator<Item = &str> {
        let ranges = self.index.tensors.values().flat_map(|tensor| &tensor.ranges);
        ranges.map(|range| range.file.as_str())
    }

    /// The type of a whole tensor.
    ///
    /// # Errors
    /// Where there is none of that name.
    pub fn ty(&self, name: &str) -> Result<TensorType> {
        let tensor = self.tensor(name)?;
        Ok(TensorType::new(tensor.dtype, Shape::from(tensor.shape.as_slice())))
    }

    /// A text that was saved beside the tensors.
    pub fn note(&self, name: &str) -> Option<&str> {
        self.index.notes.get(name).map(String::as_str)
    }

    /// Gives a variable the value of a name; where ranks hold it in blocks, this rank reads its own.
    ///
    /// # Errors
    /// Where there is no such name, a type is another, or the file is damaged.
    #[track_caller]
    pub fn load(&self, name: &str, variable: &Variable) -> Result<()> {
        let source = Source::here();
        let load = || {
            let (saved, own) = (self.ty(name)?.shape, variable.ty());
            if saved != own.shape {
                let what = format!("holds a shape {saved} as `{name}`, and the variable is {own}");
                return Err(bad_file(&self.path, what, "use the model that it was saved from"));
            }
            variable.assign_read(|range| self.read_range(name, range)?.cast(own.dtype))
        };
        load().map_err(|e| e.at(source))
    }

    /// Bytes of elements that were read so far.
    pub fn bytes_read(&self) -> Bytes {
        Bytes::new(self.read.load(Ordering::Relaxed))
    }

    /// Elements of a tensor in their order, as a vector, straight into a buffer of their own. Pieces are read that the range touches, each compared with its checksum.
    ///
    /// # Errors
    /// Where there is no such range, or a piece is not as it was saved.
    #[track_caller]
    pub fn read_range(&self, name: &str, range: Range<usize>) -> Result<Tensor> {
        let source = Source::here();
        let read = || {
            let tensor = self.tensor(name)?;
            let fits = |all: usize| range.start <= range.end && range.end <= all;
            if !elements(&tensor.shape).is_some_and(fits) {
                let what = format!("holds {} as `{name}`, not its {range:?}", self.ty(name)?);
                return Err(bad_file(&self.path, what, "ask for elements that it has"));
            }
            let layout = Layout::contiguous([range.len()].as_slice());
            filled(tensor.dtype, layout, Some(name), source, |bytes| {
                self.fill(name, tensor, &range, bytes)
            })
        };
        read().map_err(|e| e.at(source))
    }

    /// Reads all pieces once and compares them with their checksums.
    ///
    /// # Errors
    /// Where one of them is not as it was saved.
    pub fn check(&self) -> Result<()> {
        for (name, tensor) in &self.index.tensors {
            let size = tensor.dtype.size();
            for range in &tensor.ranges {
                for piece in range.pieces() {
                    self.read.fetch_add((piece.len() * size) as u64, Ordering::Relaxed);
                    self.piece(range, name, tensor.dtype, &piece)?.check()?;
                }
            }
        }
        Ok(())
    }

    fn fill(
        &self,
        name: &str,
        tensor: &SavedTensor,
        wanted: &Range<usize>,
        bytes: &mut [u8],
    ) -> Result<()> {
        let (size, mut aside) = (tensor.dtype.size(), Vec::new());
        for range in &tensor.ranges {
            for piece in range.pieces() {
                let shared = piece.start.max(wanted.start)..piece.end.min(wanted.end);
                if shared.is_empty() {
                    continue;
                }
                let saved = self.piece(range, name, tensor.dtype, &piece)?;
                self.read.fetch_add((piece.len() * size) as u64, Ordering::Relaxed);
                let place = |of: &Range<usize>, start: usize| {
                    (of.start - start) * size..(of.end - start) * size
                };
                let into = &mut bytes[place(&shared, wanted.start)];
                if shared == piece {
                    saved.fill(into)?;
                    continue;
                }
                aside.resize(piece.len() * size, 0);
                saved.fill(&mut aside)?;
                into.copy_from_slice(&aside[place(&shared, piece.start)]);
            }
        }
        Ok(())
    }

    /// A piece of a range, which has a checksum: the file is ours.
    fn piece(
        &self,
        range: &SavedRange,
        name: &str,
        dtype: DType,
        piece: &Range<usize>,
    ) -> Result<FileTensor> {
        let file = self.file(&range.file)?;
        let saved = file.tensor(&piece_name(name, piece.start))?;
        let ty = TensorType::new(dtype, Shape::from([piece.len()].as_slice()));
        if saved.ty() != ty || !saved.has_sum() {
            let what = format!("holds no {ty} with a checksum as a piece of `{name}`");
            return Err(bad_file(file.path(), what, "it is damaged, or of another checkpoint"));
        }
        Ok(saved)
    }

    fn tensor(&self, name: &str) -> Result<&SavedTensor> {
        self.index.tensors.get(name).ok_or_else(|| {
            let what = format!("holds no `{name}` among its {} tensors", self.index.tensors.len());
            bad_file(&self.path, what, "ask for one of its names")
        })
    }

    fn file(&self, name: &str) -> Result<Arc<SafeTensors>> {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = opened.get(name) {
            return Ok(file.clone());
        }
        let path = self.path.parent().unwrap_or(Path::new("")).join(name);
        let file = Arc::new(SafeTensors::open(path)?);
        opened.insert(name.into(), file.clone());
        Ok(file)
    }
}

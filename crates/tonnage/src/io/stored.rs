//! Elements of one type that lie one after another in a file: what npy, idx, safetensors and raw files have in common.
//!
//! Nothing is read before it is asked for, and what is read goes by a positioned read straight into the counted buffer that it
//! stays in, or, of a tensor that stays in the file, into the registers of the op that reads it. Where the file holds columns first (Fortran order), so does the tensor: its layout says so, and nothing is moved.
//!
//! Decision: `docs/decisions/fortran-order-is-a-layout.md`.

use std::fs::File;
use std::io::Read;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Elements, Generator, Recipe, Stored};
use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Error, Result, Shape, Source, TensorType};
use tonnage_runtime::Array;
use tonnage_runtime::spill::{Checksum, FilePass};
#[cfg(unix)]
use tonnage_runtime::system::Mapping;
use tonnage_runtime::system::{read_ahead, read_at};

use super::checksum::damaged;
use super::{bad_file, failed, filled, open_file};
use crate::tensor::Tensor;

/// Bytes that are looked at together for a checksum.
const PIECE: usize = 1 << 16;

/// A file that is open, read at any place by whoever holds it.
#[derive(Debug)]
pub(super) struct Opened {
    pub path: PathBuf,
    pub bytes: u64,
    file: File,
}

impl Opened {
    pub fn new(path: &Path) -> Result<Opened> {
        let (file, bytes) = open_file(path)?;
        Ok(Opened { path: path.into(), bytes, file })
    }

    /// Fills a slice with what lies there; several threads may at once.
    pub fn fill(&self, at: u64, into: &mut [u8]) -> Result<()> {
        read_at(&self.file, at, into).map_err(|e| failed(&self.path, "read", &e))
    }

    /// `len` bytes are read next.
    fn ahead(&self, at: u64, len: u64) {
        read_ahead(&self.file, at, len);
    }

    /// From the start on, for a header.
    pub fn at_start<T>(&self, read: impl FnOnce(&mut dyn Read) -> Result<T>) -> Result<T> {
        read(&mut FileTail { file: self, at: 0 })
    }
}

/// What is left of a file from a place on.
struct FileTail<'a> {
    file: &'a Opened,
    at: u64,
}

impl Read for FileTail<'_> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let left = self.file.bytes.saturating_sub(self.at);
        let len = into.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        read_at(&self.file.file, self.at, &mut into[..len])?;
        self.at += len as u64;
        Ok(len)
    }
}

/// How elements lie in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Order {
    /// The first axis runs fastest (Fortran's order), not the last.
    pub columns_first: bool,
    /// The highest byte of an element comes first.
    pub big_endian: bool,
}

impl Order {
    /// Swaps the bytes of elements where the machine has the other byte order. It is its own inverse.
    pub(super) fn swap_bytes(self, dtype: DType, bytes: &mut [u8]) {
        if self.big_endian == cfg!(target_endian = "little") && dtype.size() > 1 {
            bytes.chunks_exact_mut(dtype.size()).for_each(<[u8]>::reverse);
        }
    }

    /// Where elements lie once they are read.
    pub(super) fn layout(self, sizes: Sizes) -> Layout {
        if !self.columns_first {
            return Layout::contiguous(sizes);
        }
        let reversed: Sizes = sizes.iter().rev().copied().collect();
        let back: Vec<usize> = (0..sizes.len()).rev().collect();
        Layout::contiguous(reversed).transpose(&back)
    }
}

/// A tensor in a file. Its type is known; its elements are read when they are asked for: all, some rows at a time, or a tile at a
/// time by the ops that use it ([`lazy`](FileTensor::lazy)).
///
/// ```
/// use tonnage::io::{FileTensor, save_npy};
/// let path = std::env::temp_dir().join(format!("rows-{}.npy", std::process::id()));
/// save_npy(&path, &tonnage::range(0i32, 12, 1)?.reshape([6, 2])?)?;
/// let file = FileTensor::npy(&path)?;
/// assert_eq!(file.ty().to_string(), "i32[6, 2]");
/// assert_eq!(file.rows(2..4)?.to_vec::<i32>()?, [4, 5, 6, 7]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct FileTensor {
    file: Arc<Opened>,
    at: u64,
    dtype: DType,
    sizes: Sizes,
    order: Order,
    name: Option<Arc<str>>,
    /// The checksum of its bytes, where the file holds one.
    sum: Option<u64>,
}

impl FileTensor {
    /// Of a file that holds nothing but elements, from `at` on: numbers that another program wrote, of which only the reader knows what
    /// they are. What lies behind them is left alone.
    ///
    /// # Errors
    /// Where the file is not there or too short.
    pub fn raw(
        path: impl AsRef<Path>,
        at: u64,
        dtype: DType,
        shape: &[usize],
        order: Order,
    ) -> Result<FileTensor> {
        let file = Arc::new(Opened::new(path.as_ref())?);
        FileTensor::within(file, at, dtype, shape.into(), order, None)
    }

    /// Of elements that have to lie in a file.
    pub(super) fn within(
        file: Arc<Opened>,
        at: u64,
        dtype: DType,
        sizes: Sizes,
        order: Order,
        name: Option<&str>,
    ) -> Result<FileTensor> {
        let ty = TensorType::new(dtype, Shape::from(sizes.as_slice()));
        let needed = bytes_of(&ty, &file.path)?;
        let there = file.bytes.saturating_sub(at);
        if needed > there {
            let what = format!("should hold {ty}, {needed} bytes, and has {there} of them");
            return Err(bad_file(&file.path, what, "it is cut short, or of another type"));
        }
        Ok(FileTensor { file, at, dtype, sizes, order, name: name.map(Into::into), sum: None })
    }

    /// The same, whose bytes must have a checksum.
    pub(super) fn with_sum(self, sum: Option<u64>) -> FileTensor {
        FileTensor { sum, ..self }
    }

    /// Reads all of it once and compares it with its checksum; one that the file has no checksum of passes. [`read`](FileTensor::read) does
    /// this by itself; whoever reads some rows, or a tile at a time, sees the elements as they are.
    ///
    /// # Errors
    /// Where it is not as it was saved.
    pub fn check(&self) -> Result<()> {
        if self.sum.is_none() {
            return Ok(());
        }
        let (mut sum, mut piece) = (Checksum::default(), vec![0; PIECE]);
        let (mut at, end) = (self.at, self.at + bytes_of(&self.ty(), &self.file.path)?);
        while at < end {
            let piece = &mut piece[..PIECE.min((end - at) as usize)];
            self.file.fill(at, piece)?;
            sum.add(piece);
            at += piece.len() as u64;
        }
        self.compared(&sum)
    }

    fn compared(&self, sum: &Checksum) -> Result<()> {
        match self.sum {
            Some(saved) if saved != sum.finish() => {
                let name = self.name.as_deref().unwrap_or_default();
                Err(damaged(&self.file.path, &format!("`{name}`")))
            }
            _ => Ok(()),
        }
    }

    /// Dtype and shape.
    pub fn ty(&self) -> TensorType {
        TensorType::new(self.dtype, Shape::from(self.sizes.as_slice()))
    }

    /// All of it.
    #[track_caller]
    pub fn read(&self) -> Result<Tensor> {
        let source = Source::here();
        let layout = self.order.layout(self.sizes.clone());
        let made =
            filled(self.dtype, layout, self.name.as_deref(), source, |bytes| self.fill(bytes));
        made.map_err(|e| e.at(source))
    }

    /// Whether the file holds a checksum of it.
    pub(super) fn has_sum(&self) -> bool {
        self.sum.is_some()
    }

    /// All of it, into bytes that are as long.
    pub(super) fn fill(&self, bytes: &mut [u8]) -> Result<()> {
        self.file.fill(self.at, bytes)?;
        let mut sum = Checksum::default();
        if self.sum.is_some() {
            sum.add(bytes);
        }
        self.compared(&sum)?;
        self.order.swap_bytes(self.dtype, bytes);
        Ok(())
    }

    /// A tensor that stays in the file. It is a recipe as a range or random numbers are, and takes no memory: elementwise ops of it are recipes
    /// again, sums and the like and [`matmul`](Tensor::matmul) read it as they go, saving it writes piece by piece. An op that needs
    /// it whole, or reads it in another order than the file's, brings it into memory: in eager mode it then stays there while somebody
    /// holds it and there is room, in a function until its last use.
    ///
    /// Every pass reads the file again. A file that shrinks, or fails, is an error of the op that reads it and of all later ones, until it is opened
    /// again; one that is written meanwhile may show old and new elements.
    ///
    /// ```
    /// use tonnage::io::{FileTensor, save_npy};
    /// let path = std::env::temp_dir().join(format!("lazy-{}.npy", std::process::id()));
    /// save_npy(&path, &tonnage::range(0i64, 1_000_000, 1)?)?;
    /// let x = FileTensor::npy(&path)?.lazy();
    /// assert_eq!((x * 2i64)?.sum_all()?.scalar::<i64>()?, 999_999_000_000);
    /// # std::fs::remove_file(&path).unwrap();
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    pub fn lazy(&self) -> Tensor {
        let elements = Lazy {
            file: self.file.clone(),
            at: self.at,
            dtype: self.dtype,
            order: self.order,
            bytes: self.sizes.iter().product::<usize>() as u64 * self.dtype.size() as u64,
            pass: FilePass::default(),
            failed: OnceLock::new(),
        };
        self.tensor_of(Arc::new(elements))
    }

    fn tensor_of(&self, elements: Arc<dyn Elements>) -> Tensor {
        let generator = Generator::Stored { elements: Stored(elements), dtype: self.dtype };
        let mut recipe = Recipe::generate(generator, self.sizes.clone());
        recipe.sources[0].1 = self.order.layout(self.sizes.clone());
        Tensor::from_array(Array::from_recipe(Arc::new(recipe)))
    }

    /// The same, read through the system's mapping of the file into memory: nothing is copied, so that what the system has in its cache is used
    /// as it lies there. Pages are given back when an op has read them.
    ///
    /// What of it is resident while an op runs is the system's choice: no limit and no plan counts it. Nobody may change the file while it is
    /// mapped: a file that gets shorter ends the process with a fault where it is read, not with an error. Where that cannot be ruled
    /// out, use [`lazy`](FileTensor::lazy).
    ///
    /// # Errors
    /// Where the system cannot map it, or its elements lie in another byte order than the machine's, or not at a multiple of their size.
    #[cfg(unix)]
    #[track_caller]
    pub fn mapped(&self) -> Result<Tensor> {
        let source = Source::here();
        let (at, size) = (self.at as usize, self.dtype.size());
        let bytes = bytes_of(&self.ty(), &self.file.path)? as usize;
        if !at.is_multiple_of(size) || (self.order.big_endian && size > 1) || bytes == 0 {
            let what = format!("{} lies there as no machine has it in memory", self.ty());
            return Err(bad_file(&self.file.path, what, "use `lazy`, which converts it").at(source));
        }
        let mapping = Mapping::of(&self.file.file, at + bytes)
            .map_err(|e| failed(&self.file.path, "mapped", &e).at(source))?;
        Ok(self.tensor_of(Arc::new(MappedFile { mapping, at, size })))
    }

    /// Some rows of it, in bytes of their own: a file of any size is read in pieces.
    ///
    /// # Errors
    /// Where it has no such rows, or the file changed.
    #[track_caller]
    pub fn rows(&self, rows: Range<usize>) -> Result<Tensor> {
        let source = Source::here();
        let Some(&all) = self.sizes.first().filter(|&&n| rows.start <= rows.end && rows.end <= n)
        else {
            let what = format!("holds {}, and the rows {rows:?} are asked for", self.ty());
            return Err(bad_file(&self.file.path, what, "ask for rows that it has").at(source));
        };
        let mut sizes = self.sizes.clone();
        sizes[0] = rows.len();
        let each: usize = sizes[1..].iter().product();
        let layout = self.order.layout(sizes);
        let size = self.dtype.size();
        self.filled(layout, source, |bytes| {
            if !self.order.columns_first {
                return self.file.fill(self.at + (rows.start * each * size) as u64, bytes);
            }
            // Each column has its own piece of these rows.
            let mut pieces = bytes.chunks_exact_mut((rows.len() * size).max(1)).enumerate();
            pieces.try_for_each(|(column, piece)| {
                self.file.fill(self.at + ((column * all + rows.start) * size) as u64, piece)
            })
        })
    }

    fn filled(
        &self,
        layout: Layout,
        source: Source,
        fill: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<Tensor> {
        let made = filled(self.dtype, layout, self.name.as_deref(), source, |bytes| {
            fill(bytes)?;
            self.order.swap_bytes(self.dtype, bytes);
            Ok(())
        });
        made.map_err(|e| e.at(source))
    }
}

/// The elements of a tensor that stays in its file.
#[derive(Debug)]
struct Lazy {
    file: Arc<Opened>,
    at: u64,
    dtype: DType,
    order: Order,
    bytes: u64,
    pass: FilePass,
    /// What the system said when a read first failed.
    failed: OnceLock<Error>,
}

impl Elements for Lazy {
    fn read(&self, from: u64, out: &mut [u8]) {
        let at = self.at + from * self.dtype.size() as u64;
        let fill = |at: u64, out: &mut [u8]| self.file.fill(at, out);
        match self.pass.read(at, self.at + self.bytes, out, fill) {
            Ok(()) => self.order.swap_bytes(self.dtype, out),
            Err(error) => {
                out.fill(0);
                let _ = self.failed.set(error);
            }
        }
    }

    fn ahead(&self, from: u64, count: usize) {
        let size = self.dtype.size() as u64;
        let (from, len) = (from * size, (count as u64).saturating_mul(size));
        self.file.ahead(self.at + from, len.min(self.bytes.saturating_sub(from)));
    }

    fn check(&self) -> Result<()> {
        self.pass.ends();
        self.failed.get().map_or(Ok(()), |error| Err(error.clone()))
    }

    fn mapped(&self) -> Option<&[u8]> {
        None
    }
}

/// The elements of a file that the system shows as memory.
#[cfg(unix)]
#[derive(Debug)]
struct MappedFile {
    mapping: Mapping,
    /// Where they begin, at a multiple of their size.
    at: usize,
    size: usize,
}

#[cfg(unix)]
impl Elements for MappedFile {
    fn read(&self, from: u64, out: &mut [u8]) {
        let start = self.at + from as usize * self.size;
        out.copy_from_slice(&self.mapping.bytes()[start..start + out.len()]);
    }

    // The system reads ahead of whoever touches its pages.
    fn ahead(&self, _: u64, _: usize) {}

    fn check(&self) -> Result<()> {
        self.mapping.release();
        Ok(())
    }

    fn mapped(&self) -> Option<&[u8]> {
        Some(&self.mapping.bytes()[self.at..])
    }
}

/// What a type takes, which a file may say anything about.
pub(super) fn bytes_of(ty: &TensorType, path: &Path) -> Result<u64> {
    ty.bytes("file").map(|bytes| bytes.get()).map_err(|_| {
        let what = format!("says that it holds {ty}, more than any machine addresses");
        bad_file(path, what, "it is damaged, or no file of this kind")
    })
}

//! NumPy's npy format: a magic number, a header that is a Python dict, and the elements.
//!
//! Versions 1 to 3 are read. bf16, which NumPy has no letter for, is what `ml_dtypes` makes of it: `V2`, two bytes without a meaning.
//! What is written is what NumPy would write, to the byte.
//!
//! Decision: `docs/decisions/npy-here-zip-not.md`.

use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;

use tonnage_core::shape::Sizes;
use tonnage_core::{DType, Result, Shape, Source, TensorType};
use tonnage_runtime::Array;

use super::stored::{FileTensor, Opened, Order, bytes_of};
use super::{bad_file, failed, filled, put_elements, write_atomically};
use crate::tensor::Tensor;

const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// NumPy refuses headers over 10,000 bytes unless it is told to trust them; a megabyte has room for any rank.
const MOST_HEADER: usize = 1 << 20;

const HELP: &str = "it is no npy file, or damaged";

/// Reads an npy file.
///
/// # Errors
/// Where it is not there, no npy file, cut short, or of objects, records, texts, dates or complex numbers.
#[track_caller]
pub fn read_npy(path: impl AsRef<Path>) -> Result<Tensor> {
    let source = Source::here();
    FileTensor::npy(path).and_then(|file| file.read()).map_err(|e| e.at(source))
}

/// The tensor of an npy file that is in memory, such as one that a program brings with it.
#[track_caller]
pub fn parse_npy(mut bytes: &[u8]) -> Result<Tensor> {
    let (whole, source) = (bytes.len() as u64, Source::here());
    read(&mut bytes, whole, Path::new("npy data"), None, source).map_err(|e| e.at(source))
}

/// Saves a tensor, atomically. One that lies with its first axis fastest, as a transposed matrix does, is written so.
///
/// ```
/// use tonnage::io::{read_npy, save_npy};
/// let path = std::env::temp_dir().join(format!("matrix-{}.npy", std::process::id()));
/// save_npy(&path, &tonnage::tensor([[1.0f32, 2.0], [3.0, 4.0]])?.t()?)?;
/// assert_eq!(read_npy(&path)?.to_vec::<f32>()?, [1.0, 3.0, 2.0, 4.0]);
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
#[track_caller]
pub fn save_npy(path: impl AsRef<Path>, tensor: &Tensor) -> Result<()> {
    let (path, source) = (path.as_ref(), Source::here());
    let save = || {
        let array = tensor.array("save_npy")?;
        write_atomically(path, |file| put(file, array, path, source))
    };
    save().map_err(|e| e.at(source))
}

impl FileTensor {
    /// Of an npy file, whose header is read.
    ///
    /// # Errors
    /// As [`read_npy`] has them.
    pub fn npy(path: impl AsRef<Path>) -> Result<FileTensor> {
        let file = Arc::new(Opened::new(path.as_ref())?);
        let header = file.at_start(|start| Header::read(start, &file.path))?;
        let Header { dtype, sizes, order, bytes } = header;
        FileTensor::within(file, bytes, dtype, sizes, order, None)
    }
}

/// All of an npy file that comes as a stream of `whole` bytes.
pub(super) fn read(
    from: &mut dyn Read,
    whole: u64,
    path: &Path,
    name: Option<&str>,
    source: Source,
) -> Result<Tensor> {
    let Header { dtype, sizes, order, bytes } = Header::read(from, path)?;
    let ty = TensorType::new(dtype, Shape::from(sizes.as_slice()));
    let (needed, there) = (bytes_of(&ty, path)?, whole.saturating_sub(bytes));
    if needed > there {
        let what = format!("says that it holds {ty}, {needed} bytes, and has {there} of them");
        return Err(bad_file(path, what, HELP));
    }
    filled(dtype, order.layout(sizes), name, source, |into| {
        from.read_exact(into).map_err(|e| failed(path, "read", &e))?;
        order.swap_bytes(dtype, into);
        Ok(())
    })
}

/// Writes a header and elements.
pub(super) fn put(file: &mut dyn Write, array: &Array, path: &Path, source: Source) -> Result<()> {
    let layout = array.layout();
    let back: Vec<usize> = (0..layout.sizes.len()).rev().collect();
    let columns_first = !layout.is_contiguous() && layout.transpose(&back).is_contiguous();
    let order = Order { columns_first, big_endian: false };
    let header = written(array.dtype(), array.sizes(), columns_first);
    file.write_all(&header).map_err(|e| failed(path, "written", &e))?;
    put_elements(file, array, order, path, source)
}

/// What a header says.
pub(super) struct Header {
    pub dtype: DType,
    pub sizes: Sizes,
    pub order: Order,
    /// Of the header and what is before it.
    pub bytes: u64,
}

impl Header {
    pub fn read(from: &mut dyn Read, path: &Path) -> Result<Header> {
        let mut get = |into: &mut [u8]| from.read_exact(into).map_err(|e| failed(path, "read", &e));
        let mut start = [0; 8];
        get(&mut start)?;
        let [magic @ .., major, _] = &start;
        if magic != MAGIC {
            return Err(bad_file(path, "does not begin as npy files do", HELP));
        }
        let mut length = [0; 4];
        let fixed = match major {
            1 => 2,
            2 | 3 => 4,
            other => return Err(bad_file(path, format!("is of npy version {other}"), HELP)),
        };
        get(&mut length[..fixed])?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MOST_HEADER {
            return Err(bad_file(path, format!("says that its header has {length} bytes"), HELP));
        }
        let mut text = vec![0; length];
        get(&mut text)?;
        let wrong = |what: &str| bad_file(path, format!("has a bad header ({what})"), HELP);
        let text = std::str::from_utf8(&text).map_err(|_| wrong("it is no text"))?;
        let (descr, columns_first, sizes) = HeaderParser(text).dict().map_err(wrong)?;
        let (dtype, big_endian) = dtype_of(descr).ok_or_else(|| {
            let what = format!("holds elements of the kind `{descr}`");
            bad_file(path, what, "save it as bool, whole numbers or floats")
        })?;
        let order = Order { columns_first, big_endian };
        Ok(Header { dtype, sizes, order, bytes: (8 + fixed + length) as u64 })
    }
}

/// A text that is read from its start.
struct HeaderParser<'t>(&'t str);

impl<'t> HeaderParser<'t> {
    fn eat(&mut self, token: &str) -> bool {
        self.0 = self.0.trim_start();
        let rest = self.0.strip_prefix(token);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn text(&mut self) -> Option<&'t str> {
        let quote = ["'", "\""].into_iter().find(|quote| self.eat(quote))?;
        let (text, rest) = self.0.split_once(quote)?;
        self.0 = rest;
        Some(text)
    }

    fn number(&mut self) -> Option<usize> {
        self.0 = self.0.trim_start();
        let end = self.0.find(|c: char| !c.is_ascii_digit()).unwrap_or(self.0.len());
        let number = self.0[..end].parse().ok()?;
        self.0 = &self.0[end..];
        // Python 2 marked long numbers.
        self.eat("L");
        Some(number)
    }

    fn tuple(&mut self) -> Option<Sizes> {
        let mut sizes = Sizes::new();
        if !self.eat("(") {
            return None;
        }
        while !self.eat(")") {
            sizes.push(self.number()?);
            if !self.eat(",") {
                return self.eat(")").then_some(sizes);
            }
        }
        Some(sizes)
    }

    /// The three entries that every header has, in any order, and no other.
    fn dict(mut self) -> std::result::Result<(&'t str, bool, Sizes), &'static str> {
        let (mut descr, mut columns, mut shape) = (None, None, None);
        if !self.eat("{") {
            return Err("it is no dict");
        }
        while !self.eat("}") {
            match self.text().filter(|_| self.eat(":")) {
                Some("descr") if descr.is_none() => {
                    descr = Some(self.text().ok_or("elements are records, not numbers")?);
                }
                Some("fortran_order") if columns.is_none() => {
                    columns = Some(self.eat("True"));
                    if columns == Some(false) && !self.eat("False") {
                        return Err("`fortran_order` is neither True nor False");
                    }
                }
                Some("shape") if shape.is_none() => {
                    shape = Some(self.tuple().ok_or("`shape` is no tuple of lengths")?);
                }
                _ => return Err("it has an entry that it should not have"),
            }
            if !self.eat(",") && !self.0.trim_start().starts_with('}') {
                return Err("it does not end");
            }
        }
        match (descr, columns, shape) {
            (Some(descr), Some(columns), Some(shape)) => Ok((descr, columns, shape)),
            _ => Err("an entry is missing"),
        }
    }
}

/// The dtype of a NumPy description, and whether its highest byte comes first.
fn dtype_of(descr: &str) -> Option<(DType, bool)> {
    let (order, kind) = descr.split_at_checked(1)?;
    let dtype = DType::ALL.into_iter().find(|dtype| kind_of(*dtype) == kind)?;
    match order {
        "<" | "|" => Some((dtype, false)),
        ">" => Some((dtype, true)),
        "=" => Some((dtype, cfg!(target_endian = "big"))),
        _ => None,
    }
}

fn kind_of(dtype: DType) -> &'static str {
    match dtype {
        DType::Bool => "b1",
        DType::U8 => "u1",
        DType::I8 => "i1",
        DType::U16 => "u2",
        DType::I16 => "i2",
        DType::U32 => "u4",
        DType::I32 => "i4",
        DType::U64 => "u8",
        DType::I64 => "i8",
        DType::F16 => "f2",
        DType::BF16 => "V2",
        DType::F32 => "f4",
        DType::F64 => "f8",
    }
}

/// A header, with the room that NumPy leaves for a first length that grows, up to a multiple of 64 bytes.
pub(super) fn written(dtype: DType, sizes: &[usize], columns_first: bool) -> Vec<u8> {
    // NumPy calls the order of what has but one byte `|`, except where it does not know what it is.
    let order = if dtype.size() == 1 { "|" } else { "<" };
    let columns = if columns_first { "True" } else { "False" };
    let lengths = sizes.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    let comma = if sizes.len() == 1 { "," } else { "" };
    let kind = kind_of(dtype);
    let mut dict = format!(
        "{{'descr': '{order}{kind}', 'fortran_order': {columns}, 'shape': ({lengths}{comma}), }}"
    );
    let grows = if columns_first { sizes.last() } else { sizes.first() };
    if let Some(length) = grows {
        dict.extend(std::iter::repeat_n(' ', 21usize.saturating_sub(length.to_string().len())));
    }
    let length = |fixed: usize| (8 + fixed + dict.len() + 1).next_multiple_of(64) - 8 - fixed;
    let mut bytes = MAGIC.to_vec();
    match u16::try_from(length(2)) {
        Ok(length) => {
            bytes.extend([1, 0]);
            bytes.extend(length.to_le_bytes());
        }
        Err(_) => {
            bytes.extend([2, 0]);
            bytes.extend((length(4) as u32).to_le_bytes());
        }
    }
    bytes.extend(dict.bytes());
    bytes.resize((bytes.len() + 1).next_multiple_of(64) - 1, b' ');
    bytes.push(b'\n');
    bytes
}

//! Tables of numbers as comma-separated values.
//!
//! A file is read twice: once to count rows and columns, once to fill the buffer that they come to lie in. So the text is
//! never in memory, and no list grows beside the ledger.

use std::fmt::{Display, Write};
use std::io::{BufRead, BufReader, Cursor, Seek};
use std::path::Path;
use std::str::FromStr;

use tonnage_core::layout::Layout;
use tonnage_core::{DType, Error, Kind, Mark, Result, Source, bf16, f16};

use super::{bad_file, failed, filled, open_file, write_atomically};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// A line may be so long.
const MOST_LINE: u64 = 16 << 20;

/// How a table is written.
///
/// ```
/// use tonnage::io::Csv;
/// let table = Csv::new().header().parse("height,width\n1.5,2\n3,4e1\n")?;
/// assert_eq!(table.to_vec2::<f32>()?, [[1.5, 2.0], [3.0, 40.0]]);
/// let error = Csv::new().parse("1,2\n3,x\n").unwrap_err().to_string();
/// assert!(error.contains("line 2, column 2"), "{error}");
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Csv {
    separator: u8,
    header: bool,
    dtype: DType,
    missing: Option<f64>,
}

impl Default for Csv {
    fn default() -> Csv {
        Csv::new()
    }
}

impl Csv {
    /// Commas, no header, f32, nothing missing.
    pub fn new() -> Csv {
        Csv { separator: b',', header: false, dtype: DType::F32, missing: None }
    }

    /// The first line names the columns. Without this, names there are an error: a wrong first row should not be dropped silently.
    #[must_use]
    pub fn header(self) -> Csv {
        Csv { header: true, ..self }
    }

    /// Another separator, such as `b';'` or `b'\t'`.
    #[must_use]
    pub fn separator(self, separator: u8) -> Csv {
        Csv { separator, ..self }
    }

    /// Another dtype. Whole numbers are read as such, with every digit; f16 and bf16 by way of f64.
    #[must_use]
    pub fn dtype(self, dtype: DType) -> Csv {
        Csv { dtype, ..self }
    }

    /// A field with nothing in it is this number. Without this it is an error.
    #[must_use]
    pub fn missing(self, number: f64) -> Csv {
        Csv { missing: Some(number), ..self }
    }

    /// The table in a file, `[rows, columns]`.
    ///
    /// # Errors
    /// Where it is not there, a row has more or fewer fields than the first, or a field is no number of the dtype: with line and column.
    #[track_caller]
    pub fn read(&self, path: impl AsRef<Path>) -> Result<Tensor> {
        let (path, source) = (path.as_ref(), Source::here());
        let file = open_file(path).map_err(|e| e.at(source))?.0;
        self.table(&mut BufReader::new(file), path, source).map_err(|e| e.at(source))
    }

    /// The table in a text.
    #[track_caller]
    pub fn parse(&self, text: &str) -> Result<Tensor> {
        let source = Source::here();
        self.table(&mut Cursor::new(text), Path::new("a text"), source).map_err(|e| e.at(source))
    }

    /// The names of the columns of a file.
    ///
    /// # Errors
    /// Where it has no first line.
    pub fn names(&self, path: impl AsRef<Path>) -> Result<Vec<String>> {
        let path = path.as_ref();
        let file = open_file(path)?.0;
        let mut names = None;
        let whole = Csv { header: false, ..*self };
        whole.lines(&mut BufReader::new(file), path, |_, line| {
            let of = |line: &str| {
                line.split(self.separator as char).map(field).map(str::to_string).collect()
            };
            names = names.take().or_else(|| Some(of(line)));
            Ok(names.is_none())
        })?;
        names.ok_or_else(|| bad_file(path, "has no first line", "name the columns there"))
    }

    /// Saves a matrix, or a list as one column, atomically; every number in the fewest digits that read back as it. `names` come first where there are some.
    ///
    /// # Errors
    /// Where it is of another rank, the names are not as many as the columns, or the file cannot be written.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>, tensor: &Tensor, names: &[&str]) -> Result<()> {
        let (path, source) = (path.as_ref(), Source::here());
        self.write(path, tensor, names, source).map_err(|e| e.at(source))
    }

    fn write(&self, path: &Path, tensor: &Tensor, names: &[&str], source: Source) -> Result<()> {
        let array = tensor.array("csv")?;
        let columns = match array.sizes() {
            [0, ..] => {
                let what = format!("would hold no row of {}", array.ty());
                return Err(bad_file(path, what, "give one, or use npy"));
            }
            [_] => 1,
            [_, columns] => *columns,
            _ => {
                let what = format!("cannot hold {}", array.ty());
                return Err(bad_file(path, what, "give a matrix: reshape it"));
            }
        };
        if !names.is_empty() && names.len() != columns {
            let what =
                format!("should name {columns} columns, and {} names are given", names.len());
            return Err(bad_file(path, what, "give one for each, or none"));
        }
        let separator = (self.separator as char).to_string();
        write_atomically(path, |file| {
            let mut put = |text: &str| {
                file.write_all(text.as_bytes()).map_err(|e| failed(path, "written", &e))
            };
            if !names.is_empty() {
                put(&names.join(&separator))?;
                put("\n")?;
            }
            each_number(tensor, source, &mut |i, number| {
                put(number)?;
                put(if i.is_multiple_of(columns) { "\n" } else { &separator })
            })
        })
    }

    /// Counts, then fills.
    fn table<R: BufRead + Seek>(
        &self,
        from: &mut R,
        path: &Path,
        source: Source,
    ) -> Result<Tensor> {
        let (mut rows, mut columns) = (0, 0);
        self.lines(from, path, |line, text| {
            let fields = text.split(self.separator as char).count();
            if rows == 0 {
                columns = fields;
            }
            if fields != columns {
                let what = format!("line {line} has {fields} fields, and the first row {columns}");
                return Err(bad_file(path, what, "give every row as many"));
            }
            rows += 1;
            Ok(true)
        })?;
        if rows == 0 {
            return Err(bad_file(path, "holds no row", "give one"));
        }
        from.rewind().map_err(|e| failed(path, "read", &e))?;
        let dtype = match self.dtype {
            DType::F16 | DType::BF16 => DType::F64,
            other => other,
        };
        let layout = Layout::contiguous([rows, columns].as_slice());
        let table = filled(dtype, layout, None, source, |bytes| {
            let mut elements = bytes.chunks_exact_mut(dtype.size());
            self.lines(from, path, |line, text| {
                for (column, text) in text.split(self.separator as char).enumerate() {
                    let Some(element) = elements.next() else {
                        return Err(bad_file(path, "grew while it was read", "read it again"));
                    };
                    self.put(dtype, field(text), element)
                        .ok_or_else(|| self.no_number(path, line, column + 1, field(text), rows))?;
                }
                Ok(true)
            })?;
            match elements.next() {
                None => Ok(()),
                Some(_) => Err(bad_file(path, "shrank while it was read", "read it again")),
            }
        })?;
        if dtype == self.dtype { Ok(table) } else { table.cast(self.dtype) }
    }

    fn no_number(&self, path: &Path, line: usize, column: usize, text: &str, rows: usize) -> Error {
        let dtype = self.dtype;
        let what = format!("line {line}, column {column}: `{text:.40}` is no number of {dtype}");
        let help = match (text, line) {
            ("", _) => "fill it in, or say what stands for it with `missing`",
            (_, 1) if !self.header && rows > 1 => "if that line names the columns say `header`",
            _ => "mend it, or choose another dtype",
        };
        bad_file(path, what, help)
    }

    /// Puts a number where it belongs.
    fn put(&self, dtype: DType, text: &str, element: &mut [u8]) -> Option<()> {
        fn of<T: FromStr + bytemuck::NoUninit>(text: &str, element: &mut [u8]) -> Option<()> {
            element.copy_from_slice(bytemuck::bytes_of(&text.parse::<T>().ok()?));
            Some(())
        }
        let missing = self.missing.filter(|_| text.is_empty()).map(|number| number.to_string());
        let text = missing.as_deref().unwrap_or(text);
        match dtype {
            DType::F64 => of::<f64>(text, element),
            DType::F32 => of::<f32>(text, element),
            DType::I64 => of::<i64>(text, element),
            DType::I32 => of::<i32>(text, element),
            DType::I16 => of::<i16>(text, element),
            DType::I8 => of::<i8>(text, element),
            DType::U64 => of::<u64>(text, element),
            DType::U32 => of::<u32>(text, element),
            DType::U16 => of::<u16>(text, element),
            DType::U8 => of::<u8>(text, element),
            DType::Bool => of::<u8>(
                match text {
                    "0" | "false" | "False" | "FALSE" => "0",
                    "1" | "true" | "True" | "TRUE" => "1",
                    _ => return None,
                },
                element,
            ),
            // Read as f64 and cast after.
            DType::F16 | DType::BF16 => None,
        }
    }

    /// Shows every row with the number of its line, until one is enough. Empty lines are no rows.
    fn lines(
        &self,
        from: &mut dyn BufRead,
        path: &Path,
        mut row: impl FnMut(usize, &str) -> Result<bool>,
    ) -> Result<()> {
        let (mut text, mut line, mut names) = (Vec::new(), 0, self.header);
        loop {
            text.clear();
            line += 1;
            // Of a line that never ends no more is read than it may have.
            let mut part = std::io::Read::take(&mut *from, MOST_LINE);
            let read = part.read_until(b'\n', &mut text).map_err(|e| failed(path, "read", &e))?;
            if read == 0 {
                return Ok(());
            }
            let wrong =
                |what: &str| bad_file(path, format!("line {line} {what}"), "is it a table?");
            if read as u64 == MOST_LINE {
                return Err(wrong("does not end"));
            }
            let text = std::str::from_utf8(&text).map_err(|_| wrong("is no UTF-8 text"))?;
            let text = if line == 1 { text.strip_prefix('\u{feff}').unwrap_or(text) } else { text };
            if text.trim().is_empty() || std::mem::take(&mut names) {
                continue;
            }
            if !row(line, text)? {
                return Ok(());
            }
        }
    }
}

/// A field without what stands around it.
fn field(text: &str) -> &str {
    let text = text.trim();
    let bare = text.strip_prefix('"').and_then(|text| text.strip_suffix('"'));
    bare.unwrap_or(text).trim()
}

/// Shows a tensor's elements in order, as text.
fn each_number(
    tensor: &Tensor,
    source: Source,
    show: &mut dyn FnMut(usize, &str) -> Result<()>,
) -> Result<()> {
    let mut array = tensor.array("csv")?.clone();
    if !array.is_whole() || array.as_recipe().is_some() {
        array = array.copied(Mark { source, kind: Kind::Staging }, "csv")?;
    }
    let pinned = array.pin("csv", source)?;
    let bytes = &pinned.bytes()[..array.layout().count() * array.dtype().size()];
    let mut text = String::new();
    let mut number = 0;
    let mut told = |element: &dyn Display| {
        text.clear();
        // Writing to a text does not fail.
        let _ = write!(text, "{element}");
        number += 1;
        show(number, &text)
    };
    macro_rules! by_dtype {
        ($($dtype:ident $T:ty),*) => {
            match array.dtype() {
                $(DType::$dtype => bytes
                    .chunks_exact(array.dtype().size())
                    .try_for_each(|e| told(&bytemuck::pod_read_unaligned::<$T>(e))),)*
            }
        };
    }
    by_dtype!(
        F64 f64, F32 f32, F16 f16, BF16 bf16, I64 i64, I32 i32, I16 i16, I8 i8, U64 u64, U32 u32,
        U16 u16, U8 u8, Bool u8
    )
}

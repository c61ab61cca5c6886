//! Tables of numbers as comma-separated values.
//!
//! A file is read twice: once to count rows and columns, once to fill the buffer that they come to lie in. So the text is
//! never in memory, and no list grows beside the ledger: one field is, at a time.
//!
//! Fields are found by `csv-core`, which takes the text in pieces of any size. It parses whatever it is given; what is
//! wrong (a quote that is never closed, text after a closing quote) is found here.

use std::fmt::{Display, Write};
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::Path;
use std::str::FromStr;

use csv_core::{ReadFieldResult, ReaderBuilder, WriterBuilder};
use tonnage_core::error::bad_argument;
use tonnage_core::layout::Layout;
use tonnage_core::{DType, Device, Error, Kind, Mark, Result, Source, bf16, f16};
use tonnage_runtime::host_ledger;

use super::{bad_file, failed, filled, open_file, read_bytes, write_atomically};
use crate::ops::Elementwise;
use crate::tensor::Tensor;

/// A field may be so long.
const MOST_FIELD: usize = 16 << 20;

/// How a table is written. Fields may stand in quotes, and hold separators, doubled quotes and line breaks then; lines end in LF, CRLF
/// or CR, the last one also without. Empty lines are no rows.
///
/// ```
/// use tonnage::io::Csv;
/// let table = Csv::new().header().parse("height,width\n1.5,2\n3,4e1\n")?;
/// assert_eq!(table.to_vec2::<f32>()?, [[1.5, 2.0], [3.0, 40.0]]);
/// let error = Csv::new().parse("1,2\n3,x\n").unwrap_err().to_string();
/// assert!(error.contains("line 2, column 2"), "{error}");
/// let quoted = Csv::new().header().parse("\"height, in m\",width\r\n\"1.5\",2")?;
/// assert_eq!(quoted.to_vec2::<f32>()?, [[1.5, 2.0]]);
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

    /// Another separator, such as `b';'` or `b'\t'`: any ASCII character but quotes and line ends.
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
    /// Where it is not there, a row has more or fewer fields than the first, a quote is not closed, or a field is no number of the dtype: with
    /// line and column.
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
        let mut names = Vec::new();
        let whole = Csv { header: false, ..*self };
        whole.fields(&mut BufReader::new(file), path, |field| {
            names.push(field.text.to_string());
            Ok(!field.last)
        })?;
        match names.is_empty() {
            true => Err(bad_file(path, "has no first line", "name the columns there")),
            false => Ok(names),
        }
    }

    /// The rows of a file, or of a pipe that the process was given, as texts without quotes and blanks around them.
    ///
    /// # Errors
    /// Where it is not there, is no UTF-8 text, or a quote is not closed: with line and column.
    pub fn rows(&self, path: impl AsRef<Path>) -> Result<Vec<CsvRow>> {
        let path = path.as_ref();
        let (mut rows, mut fields) = (Vec::new(), Vec::new());
        self.fields(&mut Cursor::new(read_bytes(path)?), path, |field| {
            fields.push(field.text.to_string());
            if field.last {
                rows.push(CsvRow { line: field.row, fields: std::mem::take(&mut fields) });
            }
            Ok(true)
        })?;
        Ok(rows)
    }

    /// Saves a matrix, or a list as one column, atomically; every number in the fewest digits that read back as it. `names` come first where there are some, in quotes where
    /// they need them.
    ///
    /// # Errors
    /// Where it is of another rank, the names are not as many as the columns, or the file cannot be written.
    #[track_caller]
    pub fn save(&self, path: impl AsRef<Path>, tensor: &Tensor, names: &[&str]) -> Result<()> {
        let (path, source) = (path.as_ref(), Source::here());
        self.write(path, tensor, names, source).map_err(|e| e.at(source))
    }

    fn write(&self, path: &Path, tensor: &Tensor, names: &[&str], source: Source) -> Result<()> {
        self.check_separator()?;
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
        let separator = &[self.separator][..];
        write_atomically(path, |file| {
            let mut put =
                |text: &[u8]| file.write_all(text).map_err(|e| failed(path, "written", &e));
            if !names.is_empty() {
                put(&self.first_line(names))?;
            }
            each_number(tensor, source, &mut |i, number| {
                put(number.as_bytes())?;
                put(if i.is_multiple_of(columns) { b"\n" } else { separator })
            })
        })
    }

    /// The line that names the columns. Blanks around names are dropped, as they are where it is read.
    fn first_line(&self, names: &[&str]) -> Vec<u8> {
        let mut writer = WriterBuilder::new().delimiter(self.separator).build();
        // Every byte may be a quote, which is doubled; then two quotes around it and what follows.
        let most = names.iter().map(|name| 2 * name.len() + 3).sum();
        let (mut line, mut len) = (vec![0; most], 0);
        for (i, name) in names.iter().enumerate() {
            if i > 0 {
                len += writer.delimiter(&mut line[len..]).1;
            }
            len += writer.field(name.trim().as_bytes(), &mut line[len..]).2;
        }
        len += writer.terminator(&mut line[len..]).1;
        line.truncate(len);
        line
    }

    fn check_separator(&self) -> Result<()> {
        match self.separator {
            b'"' | b'\n' | b'\r' | 0x80.. => {
                let what = format!("{:?} as the separator", self.separator as char);
                Err(bad_argument("csv", what, "use another ASCII character"))
            }
            _ => Ok(()),
        }
    }

    /// Counts, then fills.
    fn table<R: BufRead + Seek>(
        &self,
        from: &mut R,
        path: &Path,
        source: Source,
    ) -> Result<Tensor> {
        let (mut rows, mut columns) = (0, 0);
        self.fields(from, path, |field| {
            if !field.last {
                return Ok(true);
            }
            let (line, fields) = (field.row, field.column);
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
            self.fields(from, path, |field| {
                let Some(element) = elements.next() else {
                    return Err(bad_file(path, "grew while it was read", "read it again"));
                };
                self.put(dtype, field.text, element)
                    .ok_or_else(|| self.no_number(path, field, rows))?;
                Ok(true)
            })?;
            match elements.next() {
                None => Ok(()),
                Some(_) => Err(bad_file(path, "shrank while it was read", "read it again")),
            }
        })?;
        if dtype == self.dtype { Ok(table) } else { table.cast(self.dtype) }
    }

    fn no_number(&self, path: &Path, field: &Field, rows: usize) -> Error {
        let (dtype, Field { line, column, text, .. }) = (self.dtype, *field);
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

    /// Shows every field, row after row, until one is enough.
    fn fields(
        &self,
        from: &mut dyn BufRead,
        path: &Path,
        mut show: impl FnMut(&Field) -> Result<bool>,
    ) -> Result<()> {
        self.check_separator()?;
        let unread = |e: std::io::Error| failed(path, "read", &e);
        let wrong = |what: String| bad_file(path, what, "is it a table?");
        let mut start = Vec::new();
        Read::take(&mut *from, MARK.len() as u64).read_to_end(&mut start).map_err(unread)?;
        let start = start.strip_prefix(MARK).unwrap_or(&start);
        let mut from = start.chain(from);

        let mut reader = ReaderBuilder::new().delimiter(self.separator).build();
        let around = |byte: u8| matches!(byte, b' ' | b'\t') && byte != self.separator;
        let (mut text, mut lines, mut names) = (vec![0; 64], Lines::new(), self.header);
        let (mut row, mut column) = (1, 0);
        loop {
            // Blanks before a field are no part of it, so a quote after them opens it. Empty lines are no rows.
            let first = loop {
                match piece_of(&mut from).map_err(unread)?.first() {
                    Some(byte) if around(*byte) || column == 0 && matches!(byte, b'\n' | b'\r') => {
                        lines.pass(&[*byte]);
                        from.consume(1);
                    }
                    other => break other.copied(),
                }
            };
            let (line, quoted) = (lines.line, first == Some(b'"'));
            if column == 0 {
                row = line;
            }
            column += 1;
            let (mut len, mut end) = (0, 0);
            let last = loop {
                let piece = piece_of(&mut from).map_err(unread)?;
                // Inside of quotes a line break is text: so one at the end tells whether they were closed.
                let at_end = quoted && piece.is_empty();
                let piece = if at_end { b"\n" } else { piece };
                let (result, read, written) = reader.read_field(piece, &mut text[len..]);
                if at_end && written > 0 {
                    let what = format!("line {line}, column {column}: a quote is never closed");
                    return Err(bad_file(path, what, "close it, or double it if it is text"));
                }
                len += written;
                let ended = matches!(result, ReadFieldResult::Field { .. });
                let (own, after) = piece[..read].split_at(read - usize::from(ended && read > 0));
                if quoted {
                    lines.pass(own);
                    end = own.iter().rev().copied().find(|byte| !around(*byte)).unwrap_or(end);
                } else if !own.is_empty() {
                    // Without quotes it holds no line end.
                    lines.carriage = false;
                }
                lines.pass(after);
                from.consume(if at_end { 0 } else { read });
                match result {
                    ReadFieldResult::InputEmpty => {}
                    ReadFieldResult::OutputFull if text.len() < MOST_FIELD => {
                        text.resize(2 * text.len(), 0);
                    }
                    ReadFieldResult::OutputFull => {
                        let what = format!("line {line}, column {column}: a field does not end");
                        return Err(wrong(what));
                    }
                    ReadFieldResult::Field { record_end } => break record_end,
                    ReadFieldResult::End => return Ok(()),
                }
            };
            if quoted && end != b'"' {
                let what = format!("line {line}, column {column}: text follows a closing quote");
                return Err(bad_file(path, what, "double quotes that are text"));
            }
            let text = std::str::from_utf8(&text[..len])
                .map_err(|_| wrong(format!("line {line} is no UTF-8 text")))?;
            let field = Field { row, line, column, text: text.trim(), last };
            if last {
                column = 0;
            }
            if names {
                names = !last;
            } else if !show(&field)? {
                return Ok(());
            }
        }
    }
}

/// A row of a table of texts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CsvRow {
    /// The line where it begins, counted from 1.
    pub line: usize,
    /// One for each column.
    pub fields: Vec<String>,
}

/// What is read already, or the next piece; nothing at the end.
fn piece_of(from: &mut impl BufRead) -> std::io::Result<&[u8]> {
    while from.fill_buf().is_err_and(|e| e.kind() == std::io::ErrorKind::Interrupted) {}
    from.fill_buf()
}

/// What says that a text is UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// A field of a table.
#[derive(Clone, Copy)]
struct Field<'a> {
    /// The line where its row begins, counted from 1.
    row: usize,
    /// The line where it begins itself: a row with line breaks in quotes has several.
    line: usize,
    /// Its place in the row, counted from 1.
    column: usize,
    /// Without quotes and blanks around it.
    text: &'a str,
    /// Whether its row ends with it.
    last: bool,
}

/// Counts lines that end in LF, CRLF or CR.
struct Lines {
    line: usize,
    /// The last byte was a CR.
    carriage: bool,
}

impl Lines {
    fn new() -> Lines {
        Lines { line: 1, carriage: false }
    }

    fn pass(&mut self, bytes: &[u8]) {
        for byte in bytes {
            let ends = *byte == b'\r' || *byte == b'\n' && !self.carriage;
            self.line += usize::from(ends);
            self.carriage = *byte == b'\r';
        }
    }
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
    if array.device().is_some_and(|device| device != Device::CPU) {
        array = array.copied_to(&host_ledger(), "csv")?;
    }
    let pinned = array.pin("csv", source)?;
    let bytes = &pinned.bytes()?[..array.layout().count() * array.dtype().size()];
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

#[cfg(test)]
mod tests;

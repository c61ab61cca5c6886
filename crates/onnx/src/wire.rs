//! The wire format of protocol buffers, read from a file in one pass.
//!
//! What always holds: a length is compared with what is around it, and that with the file, before anything is read or any memory is taken; messages nest
//! at most [`DEEPEST`] deep. Data that nobody asks for are passed over, not read: their place is all that is kept.
//!
//! Decision: `docs/decisions/onnx-is-a-crate-of-its-own.md`.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use tonnage_core::{Error, ErrorKind, Result};

/// How deep messages may nest: graphs in attributes of nodes of graphs, six levels each.
const DEEPEST: usize = 200;

/// The longest text: names, documentation, paths of files.
const LONGEST_TEXT: u64 = 1 << 24;

/// Bytes that are read at once. Behind data that are passed over the rest of them is read in vain, so that more would cost time.
const READ: usize = 1 << 13;

/// Where some bytes of a file are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// The first byte.
    pub at: u64,
    /// How many.
    pub len: u64,
}

/// What a field holds.
#[derive(Debug, Clone, Copy)]
pub enum Field {
    /// A number in as many bytes as it takes, which lie there.
    Varint(u64, Span),
    /// The bits of four bytes or of eight, which lie there.
    Fixed(u64, Span),
    /// Text, data or a message; the reader stands at its start.
    Bytes(Span),
}

/// A file that is read field by field.
pub struct Wire {
    path: PathBuf,
    input: BufReader<File>,
    at: u64,
    len: u64,
    depth: usize,
}

/// The error of a file that is not what it says.
pub fn bad_file(path: &Path, what: impl Into<String>, help: &str) -> Error {
    let path = path.display().to_string();
    ErrorKind::BadFile { path, what: what.into(), help: help.into() }.into()
}

impl Wire {
    /// Opens a file.
    ///
    /// # Errors
    /// Where it is not there, or no regular file.
    pub fn open(path: &Path) -> Result<Wire> {
        let failed = |e: std::io::Error| {
            bad_file(path, format!("cannot be read ({e})"), "give the path of a model")
        };
        let about = std::fs::metadata(path).map_err(failed)?;
        if !about.is_file() {
            return Err(bad_file(path, "is no regular file", "give the path of a model"));
        }
        let input = BufReader::with_capacity(READ, File::open(path).map_err(failed)?);
        Ok(Wire { path: path.into(), input, at: 0, len: about.len(), depth: 0 })
    }

    /// All of the file.
    pub fn whole(&self) -> Span {
        Span { at: 0, len: self.len }
    }

    /// The error of a file that is damaged.
    pub fn bad(&self, what: impl Into<String>) -> Error {
        let what = format!("{} (at byte {})", what.into(), self.at);
        bad_file(&self.path, what, "it is no ONNX model, or damaged")
    }

    fn byte(&mut self, end: u64) -> Result<u8> {
        if self.at >= end {
            return Err(self.bad("a field ends too early"));
        }
        let first = self.input.fill_buf().map(|bytes| bytes.first().copied());
        match first {
            Ok(Some(byte)) => {
                self.input.consume(1);
                self.at += 1;
                Ok(byte)
            }
            Ok(None) => Err(self.bad("it got shorter while it was read")),
            Err(error) => Err(self.bad(format!("cannot be read ({error})"))),
        }
    }

    fn varint(&mut self, end: u64) -> Result<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte(end)?;
            value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or(0);
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(self.bad("a number of more than ten bytes"))
    }

    /// The next field of a message that ends at a byte; none at its end. Bytes have to be read or [passed over](Wire::skip).
    ///
    /// # Errors
    /// Where it does not fit into the message, or is of no known kind.
    pub fn next(&mut self, end: u64) -> Result<Option<(u64, Field)>> {
        if self.at >= end {
            return Ok(None);
        }
        let tag = self.varint(end)?;
        let at = self.at;
        let field = match tag & 7 {
            0 => {
                let value = self.varint(end)?;
                Field::Varint(value, Span { at, len: self.at - at })
            }
            1 | 5 => {
                let len = if tag & 7 == 1 { 8 } else { 4 };
                let mut bits = 0;
                for place in 0..len {
                    bits |= u64::from(self.byte(end)?) << (8 * place);
                }
                Field::Fixed(bits, Span { at, len })
            }
            2 => {
                let len = self.varint(end)?;
                let span = Span { at: self.at, len };
                if len > end.saturating_sub(self.at) {
                    return Err(self.bad(format!("a field says that it has {len} bytes")));
                }
                Field::Bytes(span)
            }
            other => return Err(self.bad(format!("a field of the unknown kind {other}"))),
        };
        Ok(Some((tag >> 3, field)))
    }

    /// Passes over bytes inside of a message that ends at a byte.
    pub fn skip(&mut self, span: Span, end: u64) -> Result<()> {
        if span.len > end.saturating_sub(self.at) {
            return Err(self.bad("a field ends too early"));
        }
        let by = i64::try_from(span.len).map_err(|_| self.bad("a field is too long"))?;
        self.input.seek_relative(by).map_err(|e| self.bad(format!("cannot be read ({e})")))?;
        self.at += span.len;
        Ok(())
    }

    /// Reads bytes as they are.
    pub fn bytes(&mut self, span: Span) -> Result<Vec<u8>> {
        if span.len > LONGEST_TEXT {
            return Err(self.bad(format!("a text of {} bytes", span.len)));
        }
        let mut bytes = vec![0; span.len as usize];
        self.input.read_exact(&mut bytes).map_err(|e| self.bad(format!("cannot be read ({e})")))?;
        self.at += span.len;
        Ok(bytes)
    }

    /// Reads text.
    pub fn text(&mut self, span: Span) -> Result<String> {
        let bytes = self.bytes(span)?;
        String::from_utf8(bytes).map_err(|_| self.bad("a name that is no text"))
    }

    /// Reads a message: every field goes to `visit`, with the end of the message.
    pub fn message(
        &mut self,
        span: Span,
        mut visit: impl FnMut(&mut Wire, u64, Field) -> Result<Seen>,
    ) -> Result<()> {
        if self.depth >= DEEPEST {
            return Err(self.bad(format!("messages nest more than {DEEPEST} deep")));
        }
        self.depth += 1;
        let end = span.at + span.len;
        while let Some((number, field)) = self.next(end)? {
            match (visit(self, number, field)?, field) {
                (Seen::Not, Field::Bytes(span)) => self.skip(span, end)?,
                (Seen::Read, Field::Bytes(span)) if self.at != span.at + span.len => {
                    return Err(self.bad("a field does not end where it says"));
                }
                _ => {}
            }
        }
        self.depth -= 1;
        Ok(())
    }
}

/// Whether a field was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// All of it.
    Read,
    /// It is of no interest, or only its place is.
    Not,
}

/// The numbers of a packed field of varints, or of one number.
pub fn varints(bytes: &[u8]) -> Option<Vec<u64>> {
    let (mut all, mut value, mut shift) = (Vec::new(), 0u64, 0u32);
    for byte in bytes {
        value |= u64::from(byte & 0x7f).checked_shl(shift)?;
        shift += 7;
        if *byte < 0x80 {
            all.push(value);
            (value, shift) = (0, 0);
        }
    }
    (shift == 0).then_some(all)
}

//! Bytes of values without a kernel: copies, to a file and back, and the numbers that say what runs next.

use tonnage_core::Class;
use tonnage_core::dtype::DType;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;

use crate::lend::{ByteRange, Lender};
use crate::spill::SpillFile;

/// Copies all of a value, unless it is there already.
pub fn copy(lender: &mut Lender, from: ByteRange, to: ByteRange) -> Result<()> {
    if from.base == to.base && from.offset == to.offset || from.len == 0 {
        return Ok(());
    }
    let mut lent = lender.lend(&[from], &[to.part(0, from.len, to.align)?])?;
    match lent.writes.first_mut() {
        Some(to) => to.copy_from_slice(lent.reads[0]),
        None => return Err(ErrorKind::BadGraph { what: "nothing to copy to".into() }.into()),
    }
    Ok(())
}

/// Copies elements of that size close together, in the order of their layout.
pub fn gather(
    lender: &mut Lender,
    from: ByteRange,
    layout: &Layout,
    size: usize,
    to: ByteRange,
) -> Result<()> {
    let mut lent = lender.lend(&[from], &[to])?;
    let (from, to) = (lent.reads[0], &mut lent.writes[0]);
    let mut chunks = to.chunks_exact_mut(size);
    layout.for_each(|at| {
        if let Some(chunk) = chunks.next() {
            chunk.copy_from_slice(&from[at * size..(at + 1) * size]);
        }
    });
    Ok(())
}

/// The integer or boolean that starts at that byte; nothing where there are too few bytes.
pub fn integer(
    lender: &mut Lender,
    byte_range: ByteRange,
    at: usize,
    dtype: DType,
) -> Result<Option<i128>> {
    let lent = lender.lend(&[byte_range], &[])?;
    let Some(bytes) = lent.reads[0].get(at..at + dtype.size()) else { return Ok(None) };
    let mut wide = [0u8; 16];
    let negative = dtype.class() == Class::Signed && bytes.last().is_some_and(|b| b & 0x80 != 0);
    wide.fill(if negative { 0xff } else { 0 });
    wide[..bytes.len()].copy_from_slice(bytes);
    Ok(Some(i128::from_le_bytes(wide)))
}

/// Whether the boolean at the start of these bytes is true.
pub fn is_true(lender: &mut Lender, byte_range: ByteRange) -> Result<bool> {
    let lent = lender.lend(&[byte_range.part(0, 1, 1)?], &[])?;
    Ok(lent.reads[0][0] != 0)
}

/// Writes an i64 to the start of these bytes.
pub fn put_integer(lender: &mut Lender, byte_range: ByteRange, number: i64) -> Result<()> {
    let mut lent = lender.lend(&[], &[byte_range.part(0, 8, byte_range.align)?])?;
    lent.writes[0].copy_from_slice(&number.to_le_bytes());
    Ok(())
}

/// Writes a value to that place of a file.
pub fn to_file(
    lender: &mut Lender,
    byte_range: ByteRange,
    file: &mut SpillFile,
    at: u64,
) -> Result<()> {
    let lent = lender.lend(&[byte_range], &[])?;
    file.write(at, lent.reads[0])
}

/// Reads a value from that place of a file.
pub fn from_file(
    lender: &mut Lender,
    byte_range: ByteRange,
    file: &mut SpillFile,
    at: u64,
) -> Result<()> {
    let mut lent = lender.lend(&[], &[byte_range])?;
    file.read(at, lent.writes[0])
}

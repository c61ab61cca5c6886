//! Bytes of values without a kernel: copies, to a file and back, and the numbers that say what runs next.

use tonnage_core::dtype::DType;
use tonnage_core::error::Result;
use tonnage_core::layout::Layout;
use tonnage_core::{Bytes, Class, Device, Kind};

use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Owner;
use crate::lend::{ByteRange, Lender};
use crate::spill::SpillFile;

/// Copies all of a value, unless it is there already.
pub fn copy(lender: &mut Lender, from: ByteRange, to: ByteRange) -> Result<()> {
    if from.base == to.base && from.offset == to.offset || from.len == 0 {
        return Ok(());
    }
    let backend = lender.backend();
    backend.copy(None, lender.lend(&[from], &[to.part(0, from.len, to.align)?])?)
}

/// Copies elements of that size close together, in the order of their layout.
pub fn gather(
    lender: &mut Lender,
    from: ByteRange,
    layout: &Layout,
    size: usize,
    to: ByteRange,
) -> Result<()> {
    let backend = lender.backend();
    backend.copy(Some((layout, size)), lender.lend(&[from], &[to])?)
}

/// The integer or boolean that starts at that byte; nothing where there are too few bytes.
pub fn integer(
    lender: &mut Lender,
    byte_range: ByteRange,
    at: usize,
    dtype: DType,
) -> Result<Option<i128>> {
    let Ok(number) = byte_range.part(at, dtype.size(), 1) else { return Ok(None) };
    let mut wide = [0u8; 16];
    read(lender, number, &mut wide[..dtype.size()])?;
    let highest = wide[dtype.size() - 1];
    if dtype.class() == Class::Signed && highest & 0x80 != 0 {
        wide[dtype.size()..].fill(0xff);
    }
    Ok(Some(i128::from_le_bytes(wide)))
}

/// Whether the boolean at the start of these bytes is true.
pub fn is_true(lender: &mut Lender, byte_range: ByteRange) -> Result<bool> {
    let mut byte = [0];
    read(lender, byte_range.part(0, 1, 1)?, &mut byte)?;
    Ok(byte[0] != 0)
}

/// Copies bytes to the host.
fn read(lender: &mut Lender, from: ByteRange, to: &mut [u8]) -> Result<()> {
    let backend = lender.backend();
    let lent = lender.lend(&[from], &[])?;
    lent.reads.first().map_or(Ok(()), |region| backend.read(*region, to))
}

/// Writes an i64 to the start of these bytes.
pub fn put_integer(lender: &mut Lender, byte_range: ByteRange, number: i64) -> Result<()> {
    let backend = lender.backend();
    let lent = lender.lend(&[], &[byte_range.part(0, 8, byte_range.align)?])?;
    let mut regions = lent.writes.into_iter();
    regions.next().map_or(Ok(()), |to| backend.write(&number.to_le_bytes(), to))
}

/// Writes a value to that place of a file.
pub fn to_file(
    lender: &mut Lender,
    byte_range: ByteRange,
    file: &mut SpillFile,
    at: u64,
) -> Result<()> {
    let backend = lender.backend();
    let lent = lender.lend(&[byte_range], &[])?;
    let Some(region) = lent.reads.first() else { return Ok(()) };
    if let Ok(bytes) = region.bytes() {
        return file.write(at, bytes);
    }
    let mut staged = staging(region.len())?;
    backend.read(*region, staged.bytes_mut()?)?;
    file.write(at, staged.bytes()?)
}

/// Reads a value from that place of a file.
pub fn from_file(
    lender: &mut Lender,
    byte_range: ByteRange,
    file: &mut SpillFile,
    at: u64,
) -> Result<()> {
    let backend = lender.backend();
    let lent = lender.lend(&[], &[byte_range])?;
    let Some(region) = lent.writes.into_iter().next() else { return Ok(()) };
    if backend.device() == Device::CPU {
        return file.read(at, region.into_bytes()?);
    }
    let mut staged = staging(region.len())?;
    file.read(at, staged.bytes_mut()?)?;
    backend.write(staged.bytes()?, region)
}

/// Host memory for a value between a device and a file.
fn staging(len: usize) -> Result<Buffer> {
    Buffer::obtain(&host_ledger(), Bytes::of(len), Owner::new(Kind::Staging, "loop state"))
}

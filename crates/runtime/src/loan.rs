//! A byte range that is lent across the calls of kernels: to the disk lane, until it is done. `lend` makes loans, and takes
//! them back.

use std::ops::Range;

/// A byte range that is lent until it is given back. Lost, it is lent to nobody any more.
#[derive(Debug)]
pub struct Loan<'a> {
    bytes: LoanBytes<'a>,
}

#[derive(Debug)]
enum LoanBytes<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
}

impl<'a> Loan<'a> {
    /// For `lend` alone: a second loan over the same bytes, given back, would free those of the first.
    pub(crate) fn to_read(bytes: &'a [u8]) -> Loan<'a> {
        Loan { bytes: LoanBytes::Read(bytes) }
    }

    /// For `lend` alone.
    pub(crate) fn to_write(bytes: &'a mut [u8]) -> Loan<'a> {
        Loan { bytes: LoanBytes::Write(bytes) }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        match &self.bytes {
            LoanBytes::Read(bytes) => bytes,
            LoanBytes::Write(bytes) => bytes,
        }
    }

    /// The bytes to write; none of a loan to read.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        match &mut self.bytes {
            LoanBytes::Read(_) => &mut [],
            LoanBytes::Write(bytes) => bytes,
        }
    }

    pub(crate) fn is_written(&self) -> bool {
        matches!(self.bytes, LoanBytes::Write(_))
    }

    /// Its addresses.
    pub(crate) fn range(&self) -> Range<usize> {
        let bytes = self.bytes();
        bytes.as_ptr().addr()..bytes.as_ptr().addr() + bytes.len()
    }
}

//! A byte range that is lent across the calls of kernels: to the lane that spills, until it is done. `lend` makes loans, and takes
//! them back.

use std::ops::Range;

use tonnage_core::Result;

use crate::lend::{Region, RegionMut};

/// A byte range that is lent until it is given back. Lost, it is lent to nobody any more.
#[derive(Debug)]
pub struct Loan<'a> {
    lent: Lent<'a>,
}

#[derive(Debug)]
enum Lent<'a> {
    Read(Region<'a>),
    Write(RegionMut<'a>),
}

impl<'a> Loan<'a> {
    /// For `lend` alone: a second loan over the same bytes, given back, would free those of the first.
    pub(crate) fn to_read(region: Region<'a>) -> Loan<'a> {
        Loan { lent: Lent::Read(region) }
    }

    /// For `lend` alone.
    pub(crate) fn to_write(region: RegionMut<'a>) -> Loan<'a> {
        Loan { lent: Lent::Write(region) }
    }

    /// The bytes, to read; `lend` sees to it that nobody writes them.
    pub fn region(&self) -> Region<'_> {
        match &self.lent {
            Lent::Read(region) => *region,
            Lent::Write(region) => region.as_read(),
        }
    }

    /// The bytes to write; none of a loan to read.
    pub fn region_mut(&mut self) -> Option<RegionMut<'_>> {
        match &mut self.lent {
            Lent::Read(_) => None,
            Lent::Write(region) => Some(region.reborrow()),
        }
    }

    /// The bytes, of host memory.
    ///
    /// # Errors
    /// Where they are a device's.
    pub fn bytes(&self) -> Result<&[u8]> {
        self.region().bytes()
    }

    /// The bytes to write, of host memory; none of a loan to read.
    ///
    /// # Errors
    /// Where they are a device's.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.region_mut().map_or(Ok(&mut []), RegionMut::into_bytes)
    }

    /// How many bytes.
    pub fn len(&self) -> usize {
        self.region().len()
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub(crate) fn is_written(&self) -> bool {
        matches!(self.lent, Lent::Write(_))
    }

    /// Its addresses.
    pub(crate) fn range(&self) -> Range<usize> {
        let region = self.region();
        region.address()..region.address() + region.len()
    }
}

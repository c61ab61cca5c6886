//! What is lent: the blocks that byte ranges are of, and regions of them. The one file that makes slices of those, of host memory alone.
#![allow(unsafe_code, reason = "makes slices from a base address and an offset")]

use std::marker::PhantomData;
use std::ops::Range;
use std::{ptr, slice};

use smallvec::SmallVec;
use tonnage_core::bytes::ALIGN;
use tonnage_core::{Error, ErrorKind, Result, Source};

use crate::buffer::Buffer;

/// A block that byte ranges can be lent of, borrowed from its owner.
#[derive(Debug)]
pub struct LendBase<'a> {
    /// Of a device's memory an address that is never followed.
    pub(super) start: *mut u8,
    pub(super) len: usize,
    pub(super) writable: bool,
    pub(super) host: bool,
    owner: PhantomData<&'a mut [u8]>,
}

// SAFETY: a base is a borrow of bytes, shared or exclusive, and both are `Send`.
unsafe impl Send for LendBase<'_> {}
// SAFETY: `&LendBase` gives no way to the bytes.
unsafe impl Sync for LendBase<'_> {}

impl<'a> From<&'a [u8]> for LendBase<'a> {
    /// Bytes that are only read, and that others may read at the same time.
    fn from(bytes: &'a [u8]) -> LendBase<'a> {
        let start = bytes.as_ptr().cast_mut();
        LendBase { start, len: bytes.len(), writable: false, host: true, owner: PhantomData }
    }
}

impl<'a> From<&'a mut [u8]> for LendBase<'a> {
    /// Bytes that may be written.
    fn from(bytes: &'a mut [u8]) -> LendBase<'a> {
        let (start, len) = (bytes.as_mut_ptr(), bytes.len());
        LendBase { start, len, writable: true, host: true, owner: PhantomData }
    }
}

impl<'a> From<&'a Buffer> for LendBase<'a> {
    /// Bytes of any device that are only read.
    fn from(buffer: &'a Buffer) -> LendBase<'a> {
        match buffer.host_bytes() {
            Some(bytes) => bytes.into(),
            None => LendBase::of_device(buffer, false),
        }
    }
}

impl<'a> From<&'a mut Buffer> for LendBase<'a> {
    /// Bytes of any device that may be written.
    fn from(buffer: &'a mut Buffer) -> LendBase<'a> {
        match buffer.is_host() {
            true => buffer.bytes_mut().unwrap_or_default().into(),
            false => LendBase::of_device(buffer, true),
        }
    }
}

impl LendBase<'_> {
    /// How many bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    fn of_device<'a>(buffer: &'a Buffer, writable: bool) -> LendBase<'a> {
        let start = ptr::without_provenance_mut(buffer.address());
        LendBase { start, len: buffer.len(), writable, host: false, owner: PhantomData }
    }
}

/// Bytes that a launch may read.
#[derive(Debug, Clone, Copy)]
pub struct Region<'l> {
    start: *mut u8,
    len: usize,
    host: bool,
    lent: PhantomData<&'l [u8]>,
}

/// Bytes that a launch may write, and nobody else reads or writes meanwhile.
#[derive(Debug)]
pub struct RegionMut<'l>(pub(super) Region<'l>);

// SAFETY: a region is a borrow of bytes that are shared, or of a device's address.
unsafe impl Send for Region<'_> {}
// SAFETY: as above.
unsafe impl Sync for Region<'_> {}
// SAFETY: a region that is written is an exclusive borrow of bytes, or a device's address.
unsafe impl Send for RegionMut<'_> {}

impl<'l> Region<'l> {
    /// Bytes at an address of host memory that was exposed.
    ///
    /// # Safety
    /// They are initialized, and while 'l lasts they stay where they are and nobody writes them but through the same launch.
    pub(crate) unsafe fn at(address: usize, len: usize) -> Region<'l> {
        let start = match len {
            0 => ptr::without_provenance_mut(ALIGN),
            _ => ptr::with_exposed_provenance_mut(address),
        };
        Region { start, len, host: true, lent: PhantomData }
    }

    /// Those bytes of a base, which `lend` has found in it.
    pub(super) fn of(start: *mut u8, len: usize, host: bool) -> Region<'l> {
        Region { start, len, host, lent: PhantomData }
    }

    /// The bytes, of host memory.
    ///
    /// # Errors
    /// Where they are a device's.
    #[inline]
    pub fn bytes(&self) -> Result<&'l [u8]> {
        match self.host {
            // SAFETY: `lend` found the bytes in a base of host memory that is borrowed for longer than 'l, where they are initialized,
            // and found that no region or loan that is written overlaps them. 'l borrows the lender, so there is no later one; the
            // lender refuses every later one that would overlap a loan.
            true => Ok(unsafe { slice::from_raw_parts(self.start, self.len) }),
            false => Err(not_host()),
        }
    }

    /// Some of the bytes.
    ///
    /// # Errors
    /// Where there are fewer.
    pub fn part(&self, range: Range<usize>) -> Result<Region<'l>> {
        if range.start > range.end || range.end > self.len {
            let what = format!("bytes {range:?} of a region of {}", self.len);
            return Err(ErrorKind::BadGraph { what }.into());
        }
        Ok(Region { start: self.start.wrapping_add(range.start), len: range.len(), ..*self })
    }

    /// Where they start, in the addresses of their device.
    pub fn address(&self) -> usize {
        self.start.addr()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl<'l> RegionMut<'l> {
    /// As [`Region::at`], to be written.
    ///
    /// # Safety
    /// As there, and nobody else reads them.
    pub(crate) unsafe fn at(address: usize, len: usize) -> RegionMut<'l> {
        // SAFETY: what the caller promises.
        RegionMut(unsafe { Region::at(address, len) })
    }

    /// The bytes, of host memory.
    ///
    /// # Errors
    /// Where they are a device's.
    #[inline]
    pub fn into_bytes(self) -> Result<&'l mut [u8]> {
        match self.0.host {
            // SAFETY: as for `Region::bytes`, of a base that is borrowed exclusively; no other region or loan overlaps them, and
            // this one is used up.
            true => Ok(unsafe { slice::from_raw_parts_mut(self.0.start, self.0.len) }),
            false => Err(not_host()),
        }
    }

    /// The same bytes for a shorter time.
    pub fn reborrow(&mut self) -> RegionMut<'_> {
        RegionMut(self.0)
    }

    /// The same bytes, to read what is there while nobody writes them.
    pub fn as_read(&self) -> Region<'_> {
        self.0
    }

    /// Where they start, in the addresses of their device.
    pub fn address(&self) -> usize {
        self.0.address()
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.0.len == 0
    }
}

#[cold]
fn not_host() -> Error {
    ErrorKind::BadGraph { what: "a slice of a device's memory".into() }.into()
}

/// The regions of one launch, in the order of the byte ranges.
#[derive(Debug)]
pub struct Regions<'l> {
    /// To read.
    pub reads: SmallVec<[Region<'l>; 6]>,
    /// To write.
    pub writes: SmallVec<[RegionMut<'l>; 3]>,
    /// The line of the op that they are for, where that is known: an error that comes late names it.
    pub source: Option<&'l Source>,
}

//! Where bytes lie that can be lent: a piece of a block. `lend` makes slices of byte ranges; whoever runs a plan cuts the
//! byte ranges of values out of larger ones.
//!
//! The invariant: [`ByteRange::part`] gives no bytes outside of the byte range that it is asked of. What lies behind a byte range
//! belongs to another value, so a plan that writes a value to where it does not fit is an error before a byte is written.

use std::fmt;

use tonnage_core::{Bytes, ErrorKind, Result};

/// A piece of a base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The number of the base.
    pub base: usize,
    /// Where it starts in it, in bytes.
    pub offset: usize,
    /// How many bytes.
    pub len: usize,
    /// What its address is a multiple of: the size of its elements, or [`ALIGN`](tonnage_core::bytes::ALIGN).
    pub align: usize,
}

impl ByteRange {
    /// That many bytes of it, from `at` on, for elements of `align` bytes.
    ///
    /// ```
    /// use tonnage_runtime::lend::ByteRange;
    /// let rows = ByteRange { base: 0, offset: 64, len: 24, align: 4 };
    /// assert_eq!(rows.part(12, 12, 4)?.offset, 76);
    /// // A row of 24 bytes is no part of what is left behind the first 12.
    /// assert!(rows.part(12, 24, 4).is_err());
    /// # Ok::<(), tonnage_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// Where they leave it: the plan is wrong.
    pub fn part(&self, at: usize, len: usize, align: usize) -> Result<ByteRange> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => {
                Ok(ByteRange { base: self.base, offset: self.offset + at, len, align })
            }
            _ => {
                let why = format!("has no room for {} at {at}", Bytes::of(len));
                Err(wrong(self, &why))
            }
        }
    }
}

impl fmt::Display for ByteRange {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        let ByteRange { base, offset, len, .. } = self;
        write!(f, "the byte range of {} at {offset} of base {base}", Bytes::of(*len))
    }
}

/// The error for a byte range that a plan uses in a way that it cannot be used.
#[cold]
pub(crate) fn wrong(byte_range: &ByteRange, why: &str) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("{byte_range} {why}") }.into()
}

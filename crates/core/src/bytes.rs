//! Bytes as a type of their own, with checked arithmetic, one way to print and one way to round.
//!
//! Plan and ledger both round with [`Bytes::rounded`], so that a predicted figure and a measured one
//! can be equal.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign, Sub, SubAssign};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind, Result};

/// A number of bytes.
///
/// ```
/// use tonnage_core::Bytes;
/// let budget: Bytes = "1.5 MiB".parse()?;
/// assert_eq!(budget, Bytes::new(1_572_864));
/// assert_eq!(budget.to_string(), "1.50 MiB");
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Bytes(u64);

/// Buffers start on such an address: a cache line, and the widest vector.
pub const ALIGN: usize = 64;
/// Buffers of this size and more are whole pages, which go back to the system one by one.
pub const LARGE: u64 = 32 * 1024;
/// The page that large buffers are rounded to, whatever the system's own page is.
pub const PAGE: u64 = 4096;

impl Bytes {
    /// No bytes.
    pub const ZERO: Bytes = Bytes(0);

    /// A number of bytes.
    #[inline]
    pub const fn new(n: u64) -> Bytes {
        Bytes(n)
    }

    /// A number of bytes, from a length.
    #[inline]
    pub const fn of(n: usize) -> Bytes {
        Bytes(n as u64)
    }

    /// A number of MiB.
    pub const fn mib(n: u64) -> Bytes {
        Bytes(n << 20)
    }

    /// The figure.
    #[inline]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The figure as a length in memory.
    #[inline]
    pub const fn as_usize(self) -> usize {
        self.0 as usize
    }

    /// True for no bytes.
    #[inline]
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }

    /// What a buffer of this many bytes takes: whole cache lines, and whole pages from
    /// [`LARGE`] on. The one rounding of the whole project.
    ///
    /// ```
    /// use tonnage_core::Bytes;
    /// assert_eq!(Bytes::new(0).rounded(), Bytes::ZERO);
    /// assert_eq!(Bytes::new(1).rounded(), Bytes::new(64));
    /// assert_eq!(Bytes::new(40_000).rounded(), Bytes::new(40_960));
    /// ```
    #[inline]
    pub const fn rounded(self) -> Bytes {
        let unit = if self.0 >= LARGE { PAGE } else { ALIGN as u64 };
        // A figure near the end of u64 stays what it is: no buffer can have it anyway.
        match self.0.checked_next_multiple_of(unit) {
            Some(n) => Bytes(n),
            None => self,
        }
    }

    /// The sum, or `None` where it overflows.
    pub const fn checked_add(self, other: Bytes) -> Option<Bytes> {
        match self.0.checked_add(other.0) {
            Some(n) => Some(Bytes(n)),
            None => None,
        }
    }

    /// The product, or `None` where it overflows.
    pub const fn checked_mul(self, n: u64) -> Option<Bytes> {
        match self.0.checked_mul(n) {
            Some(n) => Some(Bytes(n)),
            None => None,
        }
    }

    /// The difference, or nothing where it would be negative.
    pub const fn saturating_sub(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_sub(other.0))
    }
}

// Sums saturate: a saturated figure is over every limit, which is the right answer.
impl Add for Bytes {
    type Output = Bytes;
    fn add(self, other: Bytes) -> Bytes {
        Bytes(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Bytes) {
        *self = *self + other;
    }
}

impl Sub for Bytes {
    type Output = Bytes;
    fn sub(self, other: Bytes) -> Bytes {
        debug_assert!(self.0 >= other.0, "bytes below zero: {self} - {other}");
        self.saturating_sub(other)
    }
}

impl SubAssign for Bytes {
    fn sub_assign(&mut self, other: Bytes) {
        *self = *self - other;
    }
}

impl Sum for Bytes {
    fn sum<I: Iterator<Item = Bytes>>(iter: I) -> Bytes {
        iter.fold(Bytes::ZERO, Add::add)
    }
}

impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const UNITS: [&str; 5] = ["KiB", "MiB", "GiB", "TiB", "PiB"];
        if self.0 < 1024 {
            return f.pad(&format!("{} B", self.0));
        }
        let mut value = self.0 as f64 / 1024.0;
        let mut unit = 0;
        // 1023.995 and more would print as 1024.00.
        while value >= 1023.995 && unit + 1 < UNITS.len() {
            value /= 1024.0;
            unit += 1;
        }
        f.pad(&format!("{value:.2} {}", UNITS[unit]))
    }
}

impl FromStr for Bytes {
    type Err = Error;

    /// A number and a unit: `B`, `kB MB GB TB` (powers of 1000), `KiB MiB GiB TiB` (powers of 1024).
    /// A bare number is bytes.
    fn from_str(text: &str) -> Result<Bytes> {
        let bad = |why: &str| {
            Error::from(ErrorKind::BadBytes { text: text.to_string(), why: why.to_string() })
        };
        let trimmed = text.trim();
        if trimmed.starts_with('-') {
            return Err(bad("it is negative"));
        }
        let split = trimmed
            .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '_'))
            .unwrap_or(trimmed.len());
        let (number, unit) = trimmed.split_at(split);
        if number.is_empty() {
            return Err(bad("it does not start with a number"));
        }
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1_000,
            "mb" => 1_000_000,
            "gb" => 1_000_000_000,
            "tb" => 1_000_000_000_000,
            "kib" | "k" => 1 << 10,
            "mib" | "m" => 1 << 20,
            "gib" | "g" => 1 << 30,
            "tib" | "t" => 1 << 40,
            _ => return Err(bad("the unit is none of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")),
        };
        let number = number.replace('_', "");
        if let Ok(whole) = number.parse::<u64>() {
            return whole
                .checked_mul(factor)
                .map(Bytes)
                .ok_or_else(|| bad("that is more than 2^64 bytes"));
        }
        let value: f64 = number.parse().map_err(|_| bad("what it starts with is no number"))?;
        let bytes = value * factor as f64;
        if bytes >= u64::MAX as f64 {
            return Err(bad("that is more than 2^64 bytes"));
        }
        Ok(Bytes(bytes as u64))
    }
}

impl TryFrom<&str> for Bytes {
    type Error = Error;

    fn try_from(text: &str) -> Result<Bytes> {
        text.parse()
    }
}

impl From<u64> for Bytes {
    fn from(bytes: u64) -> Bytes {
        Bytes(bytes)
    }
}

crate::heap::nothing!(Bytes);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prints_with_the_unit_that_suits() {
        for (n, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.00 KiB"),
            (1 << 20, "1.00 MiB"),
            ((1 << 20) - 1, "1.00 MiB"),
            (4_000_000_000, "3.73 GiB"),
        ] {
            assert_eq!(Bytes(n).to_string(), text);
        }
    }

    #[test]
    fn reads_what_people_write_and_refuses_the_rest() {
        for (text, n) in [
            ("512MiB", 512 << 20),
            ("512 mib", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("2GB", 2_000_000_000),
            ("64", 64),
            ("1_000 B", 1000),
        ] {
            assert_eq!(text.parse::<Bytes>().unwrap(), Bytes(n), "{text}");
        }
        for text in ["", "MiB", "-5MiB", "5 parsecs", "1e30", "99999999999TiB", "1.2.3"] {
            let error = text.parse::<Bytes>().unwrap_err();
            assert!(matches!(error.kind(), ErrorKind::BadBytes { .. }), "{text}");
        }
        for (text, why) in [
            ("", "does not start with a number"),
            ("abc", "does not start with a number"),
            ("-512MiB", "it is negative"),
            ("512 apples", "the unit is none of B, kB, MB"),
            ("512Mbit", "the unit is none of B, kB, MB"),
            ("1.2.3MiB", "what it starts with is no number"),
            ("18446744073709551616", "more than 2^64 bytes"),
            ("99999999999TiB", "more than 2^64 bytes"),
        ] {
            let error = text.parse::<Bytes>().unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
        }
        // Powers of 1000 and of 1024 are both taken, and are not the same.
        assert_eq!("512MB".parse::<Bytes>().unwrap(), Bytes(512_000_000));
    }

    #[test]
    fn rounding_is_idempotent_and_never_smaller() {
        for n in (0..200_000).step_by(61).chain([LARGE - 1, LARGE, u64::MAX]) {
            let once = Bytes(n).rounded();
            assert_eq!(once, once.rounded());
            assert!(once >= Bytes(n));
        }
    }
}

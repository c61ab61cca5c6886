//! What a budget is: bytes, or the least that is possible; and what several of them come to.

use std::fmt;
use std::str::FromStr;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, Result};

/// What a call may hold at once: so many bytes, or `"least"`, as little as any plan takes.
///
/// ```
/// use tonnage::{Budget, Bytes};
/// assert_eq!("512KiB".parse::<Budget>()?, Budget::Bytes(Bytes::new(512 << 10)));
/// assert_eq!("least".parse::<Budget>()?, Budget::Least);
/// assert!("leaner".parse::<Budget>().is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Budget {
    /// At most that many, or the call is refused before it starts. The quickest plan that fits is taken.
    Bytes(Bytes),
    /// The plan that takes the least is taken, however long it takes.
    Least,
}

impl Budget {
    /// The bytes, where it is a number of them.
    pub fn bytes(self) -> Option<Bytes> {
        match self {
            Budget::Bytes(bytes) => Some(bytes),
            Budget::Least => None,
        }
    }

    /// The budget, but for one of no bytes, which nothing could fit.
    ///
    /// # Errors
    /// Where it is 0 bytes, given to the call of that name.
    pub fn checked(self, call: &'static str) -> Result<Budget> {
        if self.bytes().is_some_and(Bytes::is_zero) {
            let help = "give the bytes that a call may hold, such as \"512MiB\", or \"least\"";
            return Err(bad_argument(call, "a budget of 0 bytes", help));
        }
        Ok(self)
    }
}

impl From<Bytes> for Budget {
    fn from(bytes: Bytes) -> Budget {
        Budget::Bytes(bytes)
    }
}

impl From<u64> for Budget {
    fn from(bytes: u64) -> Budget {
        Budget::Bytes(Bytes::new(bytes))
    }
}

impl FromStr for Budget {
    type Err = Error;

    fn from_str(text: &str) -> Result<Budget> {
        match text.trim() {
            "least" => Ok(Budget::Least),
            text => text.parse().map(Budget::Bytes),
        }
    }
}

impl TryFrom<&str> for Budget {
    type Error = Error;

    fn try_from(text: &str) -> Result<Budget> {
        text.parse()
    }
}

impl fmt::Display for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Budget::Bytes(bytes) => bytes.fmt(f),
            Budget::Least => f.write_str("least"),
        }
    }
}

/// All budgets that hold for a call: its own and the one around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Budgets {
    /// The least number of bytes.
    pub bytes: Option<Bytes>,
    /// Whether one of them asks for the plan that takes the least.
    pub least: bool,
}

impl Budgets {
    /// Whether there is none.
    #[inline]
    pub fn is_none(self) -> bool {
        self.bytes.is_none() && !self.least
    }

    /// These and others.
    #[inline]
    #[must_use]
    pub fn and(self, other: Budgets) -> Budgets {
        let bytes = match (self.bytes, other.bytes) {
            (Some(one), Some(other)) => Some(one.min(other)),
            (one, other) => one.or(other),
        };
        Budgets { bytes, least: self.least || other.least }
    }
}

impl From<Budget> for Budgets {
    fn from(budget: Budget) -> Budgets {
        Budgets { bytes: budget.bytes(), least: budget == Budget::Least }
    }
}

//! The user's source line, carried from the call to the ledger, the plan and every error.

use std::fmt;
use std::panic::Location;

use serde::{Serialize, Serializer};

/// A line of the user's program. Costs one pointer: `#[track_caller]` hands it down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(&'static Location<'static>);

impl Source {
    /// The line of whoever called the function that calls this.
    #[track_caller]
    pub fn here() -> Source {
        Source(Location::caller())
    }

    /// The file, as the compiler was given it.
    pub fn file(self) -> &'static str {
        self.0.file()
    }

    /// The line, from 1.
    pub fn line(self) -> u32 {
        self.0.line()
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0.file(), self.0.line())
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Source {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

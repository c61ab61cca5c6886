//! The user's source line, carried from the call to the ledger, the plan and every error.

use std::cell::Cell;
use std::fmt;
use std::panic::Location;

use serde::{Serialize, Serializer};

/// A line of the user's program. Costs one pointer: `#[track_caller]` hands it down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(&'static Location<'static>);

thread_local! {
    /// The line that everything on this thread is done for.
    static FOR: Cell<Option<Source>> = const { Cell::new(None) };
}

impl Source {
    /// The line of whoever called the function that calls this; or the line that it is [done for](Source::stand_for).
    #[track_caller]
    #[inline]
    pub fn here() -> Source {
        FOR.get().unwrap_or(Source(Location::caller()))
    }

    /// Runs something on behalf of this line: what a layer does is done where the user put the layer.
    ///
    /// ```
    /// use tonnage_core::Source;
    /// let line = Source::here();
    /// assert_eq!(line.stand_for(|| Source::here()), line);
    /// assert_ne!(Source::here(), line);
    /// ```
    pub fn stand_for<R>(self, f: impl FnOnce() -> R) -> R {
        /// Puts back what was before, also where `f` panics.
        struct Before(Option<Source>);
        impl Drop for Before {
            fn drop(&mut self) {
                FOR.set(self.0);
            }
        }
        let _before = Before(FOR.replace(Some(self)));
        f()
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

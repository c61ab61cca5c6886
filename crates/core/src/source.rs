//! The user's source line, carried from the call to the ledger, the plan and every error.

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::panic::Location;
use std::sync::{LazyLock, Mutex, PoisonError};

use serde::{Serialize, Serializer};

/// A line of the user's program. Costs two words: `#[track_caller]` hands it down.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Source(Line);

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Line {
    /// Of Rust, as the compiler knows it.
    Rust(&'static Location<'static>),
    /// Of another language.
    Other(&'static (String, u32)),
}

/// Lines of a file of another language, by number.
type Lines = HashMap<u32, &'static (String, u32)>;

/// Lines of other languages, by file.
static LINES: LazyLock<Mutex<HashMap<String, Lines>>> = LazyLock::new(Mutex::default);

thread_local! {
    /// The line that everything on this thread is done for.
    static FOR: Cell<Option<Source>> = const { Cell::new(None) };
}

impl Source {
    /// The line of whoever called the function that calls this; or the line that it is [done for](Source::stand_for).
    #[track_caller]
    #[inline]
    pub fn here() -> Source {
        FOR.get().unwrap_or(Source(Line::Rust(Location::caller())))
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

    /// A line of a program in another language. Each line is remembered once, and for good: there are as many as
    /// the program has.
    ///
    /// ```
    /// use tonnage_core::Source;
    /// let line = Source::of_line("train.py", 12);
    /// assert_eq!(line, Source::of_line("train.py", 12));
    /// assert_eq!(line.to_string(), "train.py:12");
    /// ```
    pub fn of_line(file: &str, line: u32) -> Source {
        let mut known = LINES.lock().unwrap_or_else(PoisonError::into_inner);
        let lines = known.entry(file.to_string()).or_default();
        Source(Line::Other(
            lines.entry(line).or_insert_with(|| Box::leak(Box::new((file.to_string(), line)))),
        ))
    }

    /// The file, as the compiler was given it.
    pub fn file(self) -> &'static str {
        match self.0 {
            Line::Rust(place) => place.file(),
            Line::Other(place) => &place.0,
        }
    }

    /// The line, from 1.
    pub fn line(self) -> u32 {
        match self.0 {
            Line::Rust(place) => place.line(),
            Line::Other(place) => place.1,
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file(), self.line())
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

//! The user's source line, carried from the call to the ledger, the plan and every error.
//!
//! Decision: `docs/decisions/layers-are-part-of-the-source.md`.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::marker::PhantomData;
use std::panic::Location;
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use serde::{Serialize, Serializer};

use crate::layer::LayerId;

/// A line of the user's program, and the layer of a model that it was run for. `#[track_caller]` hands it down. Two are equal
/// if they are the same line, whatever the layer.
#[derive(Clone, Copy)]
pub struct Source {
    at: SourceLine,
    layer: LayerId,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum SourceLine {
    /// Of Rust, as the compiler knows it.
    Rust(&'static Location<'static>),
    /// Of another language.
    Other(&'static (String, u32)),
}

/// Lines of a file of another language, by number.
type Lines = HashMap<u32, &'static (String, u32)>;

/// Lines of other languages, by file.
static LINES: LazyLock<Mutex<HashMap<String, Lines>>> = LazyLock::new(Mutex::default);

/// What everything on a thread is done for.
#[derive(Clone, Copy)]
struct CurrentSource {
    line: Option<SourceLine>,
    layer: LayerId,
}

thread_local! {
    static NOW: Cell<CurrentSource> = const { Cell::new(CurrentSource { line: None, layer: LayerId::NONE }) };
}

/// Puts back what was before, also after a panic.
struct RestoreSource(CurrentSource);

impl Drop for RestoreSource {
    fn drop(&mut self) {
        NOW.set(self.0);
    }
}

/// A part of a model that work on this thread is done for, until it is dropped: see [`Source::open_layer`].
#[must_use]
pub struct OpenLayer {
    around: LayerId,
    _of_this_thread: PhantomData<*const ()>,
}

impl Drop for OpenLayer {
    fn drop(&mut self) {
        NOW.set(CurrentSource { layer: self.around, ..NOW.get() });
    }
}

impl Source {
    /// The line of whoever called the function that calls this; or the line that it is [done for](Source::stand_for).
    #[track_caller]
    #[inline]
    pub fn here() -> Source {
        let CurrentSource { line, layer } = NOW.get();
        Source { at: line.unwrap_or(SourceLine::Rust(Location::caller())), layer }
    }

    /// The line that work on this thread is [done for](Source::stand_for), so that another thread can go on for it; none where
    /// each op stands for itself.
    pub fn stood_for() -> Option<Source> {
        let CurrentSource { line, layer } = NOW.get();
        line.map(|at| Source { at, layer })
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
        let before = NOW.get();
        NOW.set(CurrentSource { line: Some(self.at), ..before });
        let _before = RestoreSource(before);
        f()
    }

    /// Runs something for a part of a model: what is done meanwhile on this thread counts to it, in plans and in the
    /// ledger. Parts nest.
    ///
    /// ```
    /// use tonnage_core::Source;
    /// let inside = Source::for_layer("encoder", || Source::for_layer("0", || Source::here()));
    /// assert_eq!(inside.layer().as_deref(), Some("encoder/0"));
    /// assert_eq!(Source::here().layer(), None);
    /// ```
    pub fn for_layer<R>(name: &str, f: impl FnOnce() -> R) -> R {
        let _open = Source::open_layer(name);
        f()
    }

    /// The same where begin and end are calls of their own: until what is returned is dropped, on this thread. What was opened last is
    /// closed first.
    pub fn open_layer(name: &str) -> OpenLayer {
        let before = NOW.get();
        NOW.set(CurrentSource { layer: before.layer.part(name), ..before });
        OpenLayer { around: before.layer, _of_this_thread: PhantomData }
    }

    /// The layer that it was run for, with those around it; none outside of layers.
    pub fn layer(self) -> Option<Arc<str>> {
        self.layer.name()
    }

    /// The same line, for the layer that is open now.
    #[must_use]
    pub fn in_this_layer(self) -> Source {
        Source { layer: NOW.get().layer, ..self }
    }

    /// The same line, for the layer of another.
    #[must_use]
    pub fn in_layer_of(self, other: Source) -> Source {
        Source { layer: other.layer, ..self }
    }

    /// A line of a program in another language, for the layer that is open now. Each line is remembered once, and for good:
    /// there are as many as the program has.
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
        let at =
            *lines.entry(line).or_insert_with(|| Box::leak(Box::new((file.to_string(), line))));
        Source { at: SourceLine::Other(at), layer: NOW.get().layer }
    }

    /// The file, as the compiler was given it.
    pub fn file(self) -> &'static str {
        match self.at {
            SourceLine::Rust(place) => place.file(),
            SourceLine::Other(place) => &place.0,
        }
    }

    /// The line, from 1.
    pub fn line(self) -> u32 {
        match self.at {
            SourceLine::Rust(place) => place.line(),
            SourceLine::Other(place) => place.1,
        }
    }
}

impl PartialEq for Source {
    fn eq(&self, other: &Source) -> bool {
        self.at == other.at
    }
}

impl Eq for Source {}

impl Hash for Source {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.at.hash(state);
    }
}

impl PartialOrd for Source {
    fn partial_cmp(&self, other: &Source) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Source {
    fn cmp(&self, other: &Source) -> Ordering {
        self.at.cmp(&other.at)
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

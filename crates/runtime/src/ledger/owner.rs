//! Who holds a buffer, and as what.

use std::fmt;
use std::sync::Arc;

use tonnage_core::{Kind, Source};

/// Who holds a buffer: its kind, the op or part that asked, a name where there is one, and the user's
/// line.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Owner {
    /// What it is held as.
    pub kind: Kind,
    /// The op or call that asked for it.
    pub what: &'static str,
    /// The user's name for it.
    pub name: Option<Arc<str>>,
    /// The user's line.
    pub source: Source,
}

impl Owner {
    /// An owner without a name, at the caller's line.
    #[track_caller]
    pub fn new(kind: Kind, what: &'static str) -> Owner {
        Owner { kind, what, name: None, source: Source::here() }
    }

    /// The same, with that name.
    #[must_use]
    pub fn named(mut self, name: impl Into<Arc<str>>) -> Owner {
        self.name = Some(name.into());
        self
    }

    /// The same, at that line.
    #[must_use]
    pub fn at(mut self, source: Source) -> Owner {
        self.source = source;
        self
    }

    /// All but the line.
    pub(super) fn label(&self) -> String {
        match &self.name {
            Some(name) => format!("{} {} `{name}`", self.kind, self.what),
            None => format!("{} {}", self.kind, self.what),
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.label(), self.source)
    }
}

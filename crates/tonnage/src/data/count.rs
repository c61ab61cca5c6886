//! How many elements a pipeline has, as far as that is known before it runs.

/// A number of elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Count {
    /// So many.
    Known(u64),
    /// They do not end.
    Infinite,
    /// Only going through them tells.
    Unknown,
}

impl Count {
    /// The number, where it is known.
    pub fn known(self) -> Option<u64> {
        match self {
            Count::Known(n) => Some(n),
            Count::Infinite | Count::Unknown => None,
        }
    }

    /// What a rule makes of a number that is known.
    pub(super) fn map(self, rule: impl FnOnce(u64) -> u64) -> Count {
        match self {
            Count::Known(n) => Count::Known(rule(n)),
            other => other,
        }
    }

    /// Of what gives any number of elements for each: nothing for none.
    pub(super) fn unless_empty(self) -> Count {
        match self {
            Count::Known(0) => self,
            _ => Count::Unknown,
        }
    }

    /// Those of two after each other.
    pub(super) fn plus(self, other: Count) -> Count {
        match (self, other) {
            (Count::Known(a), Count::Known(b)) => Count::Known(a.saturating_add(b)),
            (Count::Infinite, _) | (_, Count::Infinite) => Count::Infinite,
            _ => Count::Unknown,
        }
    }

    /// Those of two side by side.
    pub(super) fn least(self, other: Count) -> Count {
        match (self, other) {
            (Count::Known(a), Count::Known(b)) => Count::Known(a.min(b)),
            (Count::Unknown, _) | (_, Count::Unknown) => Count::Unknown,
            (Count::Infinite, known) | (known, Count::Infinite) => known,
        }
    }
}

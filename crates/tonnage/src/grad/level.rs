//! Levels of nested differentiation: tapes and forward passes nest, and each has a level, counted up as they are
//! made. What a forward pass emits itself is recorded by the levels around it alone: tapes and passes that were made
//! inside of it see values, not their tangents.

use std::cell::Cell;
use std::ops::Range;

thread_local! {
    static NEXT: Cell<u64> = const { Cell::new(0) };
    /// Levels from this one on, and below the other, record what is applied.
    static FLOOR: Cell<u64> = const { Cell::new(0) };
    static CEILING: Cell<u64> = const { Cell::new(u64::MAX) };
}

/// A level inside of all that were made on this thread.
pub(crate) fn next() -> u64 {
    NEXT.replace(NEXT.get() + 1)
}

/// The levels that record what is applied.
pub(crate) fn listening() -> Range<u64> {
    FLOOR.get()..CEILING.get()
}

/// Runs `f` by itself: only levels that are made inside of it record what it applies.
pub(crate) fn apart<R>(f: impl FnOnce() -> R) -> R {
    struct RestoreLevels(u64, u64);
    impl Drop for RestoreLevels {
        fn drop(&mut self) {
            FLOOR.set(self.0);
            CEILING.set(self.1);
        }
    }
    let _restore = RestoreLevels(FLOOR.replace(NEXT.get()), CEILING.replace(u64::MAX));
    f()
}

/// Runs `f`; only the levels around `level` record what it applies.
pub(crate) fn around<R>(level: u64, f: impl FnOnce() -> R) -> R {
    struct RestoreCeiling(u64);
    impl Drop for RestoreCeiling {
        fn drop(&mut self) {
            CEILING.set(self.0);
        }
    }
    let _restore = RestoreCeiling(CEILING.replace(level.min(CEILING.get())));
    f()
}

//! The lock of what a function shares between threads.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Whoever panicked while he held it left it whole.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

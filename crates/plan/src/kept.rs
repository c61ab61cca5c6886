//! What a device keeps of a plan that it runs.
//!
//! Decision: `docs/decisions/calls-are-replayed.md`.

use std::any::Any;
use std::fmt;
use std::sync::OnceLock;

/// What a device keeps of a plan from call to call, as long as the plan lives. A copy of the plan begins with nothing.
#[derive(Default)]
pub struct Kept(OnceLock<Box<dyn Any + Send + Sync>>);

impl Kept {
    /// What is kept, or what is kept from now on; nothing where something of another type is.
    pub fn get_or_keep<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Option<&T> {
        self.0.get_or_init(|| Box::new(make())).downcast_ref()
    }
}

impl Clone for Kept {
    fn clone(&self) -> Kept {
        Kept::default()
    }
}

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.0.get().is_some() { "kept" } else { "nothing kept" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_kept_stays_and_a_copy_has_nothing() {
        let kept = Kept::default();
        assert_eq!(kept.get_or_keep(|| 5u8), Some(&5));
        assert_eq!(kept.get_or_keep(|| 6u8), Some(&5));
        assert_eq!(kept.get_or_keep(|| "another"), None);
        assert_eq!(kept.clone().get_or_keep(|| 6u8), Some(&6));
    }
}

//! Asking now and then whether to go on: loops of many rounds can be broken off.
//!
//! A hook of the whole process is asked between rounds, some ten times a second. What it fails with is what the call
//! fails with; like any failed call it gives its memory back and leaves variables as they were. Where there is no hook a round
//! costs a look at a counter.

use std::sync::OnceLock;
use std::time::{Duration, Instant};

use tonnage_core::Result;

/// How long not to ask.
const PAUSE: Duration = Duration::from_millis(100);

static HOOK: OnceLock<fn() -> Result<()>> = OnceLock::new();

/// Sets the hook, once; false where there is one.
pub fn on_rounds(hook: fn() -> Result<()>) -> bool {
    HOOK.set(hook).is_ok()
}

/// The rounds of one loop.
#[derive(Default)]
pub(crate) struct Rounds {
    /// Until the clock is looked at again: a look costs as much as a short round.
    left: u32,
    stride: u32,
    asked: Option<Instant>,
}

impl Rounds {
    /// Before a round.
    pub fn go_on(&mut self) -> Result<()> {
        if self.left > 0 {
            self.left -= 1;
            return Ok(());
        }
        self.look()
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        let Some(hook) = HOOK.get() else {
            self.left = u32::MAX;
            return Ok(());
        };
        let now = Instant::now();
        let since = now - *self.asked.get_or_insert(now);
        // So many rounds that about a fifth of the pause goes by.
        self.stride = match since {
            since if since < PAUSE / 10 => (self.stride * 2).clamp(1, 1 << 16),
            since if since > PAUSE / 4 => self.stride / 2,
            _ => self.stride,
        };
        self.left = self.stride;
        if since < PAUSE {
            return Ok(());
        }
        self.asked = Some(now);
        hook()
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use tonnage_core::ErrorKind;

    use super::*;

    thread_local! {
        static IS_TO_END: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn a_loop_without_an_end_ends_with_what_the_hook_fails_with() {
        on_rounds(|| match IS_TO_END.get() {
            true => Err(ErrorKind::Callback { why: "enough".into() }.into()),
            false => Ok(()),
        });
        IS_TO_END.set(true);
        let mut rounds = Rounds::default();
        let error = loop {
            if let Err(error) = rounds.go_on() {
                break error;
            }
        };
        assert!(error.to_string().contains("enough"));
    }
}

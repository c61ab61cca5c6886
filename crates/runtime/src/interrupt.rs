//! Stopping a planned call that takes long: between two steps, or between two rounds of a loop.
//!
//! The host says once how it can be asked whether to stop ([`set_question`]); nothing is asked in a process where
//! nobody did. The question is asked on the thread of the caller, several times a second, while the call runs in the
//! pool: the interpreter of a scripting language answers on its own thread alone.
//!
//! The invariant: from the first update of a variable on a call runs to its end, so that variables have the values of
//! before or of after it. A loop that updates variables stops between two rounds, with the values of the last whole one.
//!
//! Decision: `docs/decisions/stopping-a-call.md`.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tonnage_core::error::{ErrorKind, Result};

/// How often the question is asked: a user does not notice a twentieth of a second, nor a call that it is asked.
pub(crate) const EVERY: Duration = Duration::from_millis(50);

static QUESTION: OnceLock<fn() -> bool> = OnceLock::new();

/// Says how the host is asked whether to stop; once a process, later ones have no effect.
///
/// ```
/// tonnage_runtime::interrupt::set_question(|| false);
/// ```
pub fn set_question(question: fn() -> bool) {
    let _ = QUESTION.set(question);
}

/// Whether a call should stop, as its frames know it.
#[derive(Debug, Clone)]
pub(crate) struct Stop {
    shared: Arc<Shared>,
    /// Whether a step has begun that updates variables: then only the loop that does may stop, between rounds.
    pub rounds_only: bool,
}

#[derive(Debug)]
struct Shared {
    question: fn() -> bool,
    asked: AtomicBool,
    /// Whether steps run on the thread that the question is asked on: then they ask themselves.
    here: AtomicBool,
    since: Instant,
    /// Milliseconds since then at which the question was asked last.
    last: AtomicU64,
}

impl Stop {
    /// For a call; nothing where nobody said how to ask.
    pub fn of_call() -> Option<Stop> {
        let question = *QUESTION.get()?;
        let shared = Shared {
            question,
            asked: AtomicBool::new(false),
            here: AtomicBool::new(true),
            since: Instant::now(),
            last: AtomicU64::new(0),
        };
        Some(Stop { shared: Arc::new(shared), rounds_only: false })
    }

    /// Steps run elsewhere from here on: the caller asks.
    pub fn leave(&self) {
        self.shared.here.store(false, Ordering::Relaxed);
    }

    /// Asks, on the thread of the caller.
    pub fn ask(&self) {
        if (self.shared.question)() {
            self.shared.asked.store(true, Ordering::Relaxed);
        }
    }

    /// An error where the call should stop.
    pub fn check(&self) -> Result<()> {
        let shared = &*self.shared;
        if shared.here.load(Ordering::Relaxed) {
            let now = shared.since.elapsed().as_millis() as u64;
            if now >= shared.last.load(Ordering::Relaxed) + EVERY.as_millis() as u64 {
                shared.last.store(now, Ordering::Relaxed);
                self.ask();
            }
        }
        match shared.asked.load(Ordering::Relaxed) {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

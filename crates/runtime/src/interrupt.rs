//! Stopping what takes long: a planned call between two steps or two iterations of a loop, and a kernel, of a call or of an
//! eager op, between two pieces of its work.
//!
//! The host says once how it can be asked whether to stop ([`set_question`]); nothing is asked in a context where
//! nobody did. The question is asked on the thread of the caller, several times a second, while the call runs in the
//! pool: the interpreter of a scripting language answers on its own thread alone.
//!
//! The invariant: from the first update of a variable on a call runs to its end, so that variables have the values of
//! before or of after it. A loop that updates variables stops between two iterations, with the values of the last whole one.
//! A kernel that updates a variable where it lies is not stopped; what another one has made so far is dropped.
//!
//! Decision: `docs/decisions/stopping-a-call.md`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{ThreadId, current};
use std::time::{Duration, Instant};

use tonnage_core::error::{ErrorKind, Result};
use tonnage_cpu::workers::Workers;

use crate::context::Context;

/// How often the question is asked: a user does not notice a twentieth of a second, nor a call that it is asked.
pub const EVERY: Duration = Duration::from_millis(50);

/// Says how the host is asked whether to stop; once a context, later ones have no effect.
///
/// ```
/// tonnage_runtime::interrupt::set_question(|| false);
/// ```
pub fn set_question(question: fn() -> bool) {
    let _ = Context::current().question().set(question);
}

/// Asks now, on this thread: for whoever waits for other threads, or takes long without an op.
///
/// # Errors
/// Where the host says to stop.
pub fn ask() -> Result<()> {
    match Context::current().question().get().is_some_and(|question| question()) {
        true => Err(ErrorKind::Interrupted.into()),
        false => Ok(()),
    }
}

/// Whether a call should stop, as its frames know it.
#[derive(Debug, Clone)]
pub struct Stop {
    shared: Arc<InterruptState>,
}

#[derive(Debug)]
struct InterruptState {
    question: fn() -> bool,
    asked: AtomicBool,
    /// Whether steps run on the thread that the question is asked on: then they ask themselves.
    here: AtomicBool,
    /// The thread that the question is asked on.
    asker: ThreadId,
    since: Instant,
    /// Milliseconds since then from which on the question is to be asked again.
    next: AtomicU64,
}

impl Stop {
    /// For a call, and for an eager op that is expected to be short; nothing where nobody said how to ask. Many of them are
    /// short, so it asks for the first time when it has run for a while.
    pub fn of_call() -> Option<Stop> {
        Stop::asking_from(EVERY)
    }

    /// For an eager op that is expected to take long: it asks at once.
    pub fn of_long_op() -> Option<Stop> {
        Stop::asking_from(Duration::ZERO)
    }

    fn asking_from(first: Duration) -> Option<Stop> {
        let question = *Context::current().question().get()?;
        let shared = InterruptState {
            question,
            asked: AtomicBool::new(false),
            here: AtomicBool::new(true),
            asker: current().id(),
            since: Instant::now(),
            next: AtomicU64::new(first.as_millis() as u64),
        };
        Some(Stop { shared: Arc::new(shared) })
    }

    /// Steps run elsewhere from here on: the caller asks.
    pub fn leave(&self) {
        self.shared.here.store(false, Ordering::Relaxed);
    }

    /// Steps run on the caller's thread again.
    pub fn come_back(&self) {
        self.shared.here.store(true, Ordering::Relaxed);
    }

    /// Asks, on the thread of the caller.
    pub fn ask(&self) {
        if (self.shared.question)() {
            self.shared.asked.store(true, Ordering::Relaxed);
        }
    }

    /// Whether this is the thread that asks, and nobody asks on it meanwhile.
    pub fn asks_here(&self) -> bool {
        self.shared.here.load(Ordering::Relaxed) && current().id() == self.shared.asker
    }

    /// Whether it should stop; asks where it is time to.
    pub fn is_asked(&self) -> bool {
        let shared = &*self.shared;
        if !shared.asked.load(Ordering::Relaxed) && self.asks_here() {
            let now = shared.since.elapsed().as_millis() as u64;
            if now >= shared.next.load(Ordering::Relaxed) {
                shared.next.store(now + EVERY.as_millis() as u64, Ordering::Relaxed);
                self.ask();
            }
        }
        shared.asked.load(Ordering::Relaxed)
    }

    /// An error where the call should stop.
    pub fn check(&self) -> Result<()> {
        match self.is_asked() {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(()),
        }
    }
}

/// Threads for a kernel that may be stopped.
pub(crate) struct Stoppable<'a> {
    pub workers: &'a dyn Workers,
    pub stop: &'a Stop,
}

impl Workers for Stoppable<'_> {
    fn threads(&self) -> usize {
        self.workers.threads()
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        self.workers.join(a, b);
    }

    fn is_stopped(&self) -> bool {
        self.stop.is_asked()
    }
}

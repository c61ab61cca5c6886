//! Threads that stay awake while a call runs. Rayon sends a thread to sleep that found nothing to do for some tens of
//! microseconds, and to wake it takes as long again, or ten times that in a virtual machine: the steps of a plan follow
//! each other faster than that, and the two halves of one seldom end at once.
//!
//! While a call runs, each other thread looks for work in a loop of its own, and whoever has done its half of a join
//! looks for more until the other half is done. Both lose patience: one that has nothing to do for long sleeps after all.
//!
//! Decision: `docs/decisions/threads-stay-awake.md`.

use std::cell::Cell;
use std::hint::spin_loop;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rayon_core::{ThreadPool, Yield};

use super::placement;

/// How long a thread without work looks for some: many times what a step without work for it takes, and little beside
/// what a user would call long.
const PATIENCE: Duration = Duration::from_millis(1);

thread_local! {
    /// How many calls and joins this thread is inside of.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// A thread is at work while this lives, and watches for nobody.
struct AtWork;

impl AtWork {
    fn begin() -> AtWork {
        placement::seen(true);
        DEPTH.set(DEPTH.get() + 1);
        AtWork
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
        placement::seen(DEPTH.get() > 0);
    }
}

/// Looks for work until `done`, or patience ends.
fn look_for_work(done: impl Fn() -> bool) {
    placement::seen(true);
    let mut since = Instant::now();
    while !done() {
        if rayon_core::yield_now() == Some(Yield::Executed) {
            since = Instant::now();
        } else if since.elapsed() > PATIENCE {
            break;
        }
        for _ in 0..16 {
            spin_loop();
        }
    }
    placement::seen(DEPTH.get() > 0);
}

/// Runs `f`, from inside the pool, with all other threads awake.
pub(super) fn all_awake<R>(pool: &ThreadPool, f: impl FnOnce() -> R) -> R {
    if DEPTH.get() > 0 {
        return f(); // they are awake for the call that this one is part of
    }
    let _at_work = AtWork::begin();
    let ended = Arc::new(AtomicBool::new(false));
    let seen = Arc::clone(&ended);
    // A thread that is at work for another call needs no waking, and must not wait for this one.
    pool.spawn_broadcast(move |_| {
        if DEPTH.get() == 0 {
            look_for_work(|| seen.load(Ordering::Acquire));
        }
    });
    let _ended = OnDrop(&ended);
    f()
}

/// Says that a call has ended, however it does.
struct OnDrop<'a>(&'a AtomicBool);

impl Drop for OnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

/// The second half is not begun, begun, or done.
const WAITS: u8 = 0;
const RUNS: u8 = 1;
const DONE: u8 = 2;

/// Runs both, from inside a pool. A thread that is done with the first while another runs the second looks for work
/// meanwhile.
pub(super) fn join(a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
    let second = AtomicU8::new(WAITS);
    rayon_core::join(
        || {
            let _at_work = AtWork::begin();
            a();
            if second.load(Ordering::Acquire) == RUNS {
                look_for_work(|| second.load(Ordering::Acquire) == DONE);
            }
        },
        || {
            let _at_work = AtWork::begin();
            second.store(RUNS, Ordering::Release);
            b();
            second.store(DONE, Ordering::Release);
        },
    );
}

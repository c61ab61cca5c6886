//! The threads that kernels are lent: a rayon pool behind [`Workers`].
//!
//! Entering the pool from outside costs about 8 microseconds and a join inside it about 2, so small
//! work never touches it, and a call that is already inside runs where it is. Results do not depend on
//! the number of threads; see [`Workers`].
//!
//! The pool runs kernels and nothing else, and whoever waits for it does nothing else meanwhile. So a caller may
//! hold locks while it waits: of variables that its call writes, of bytes that it has pinned.
//!
//! Decision: `docs/decisions/pool-waits-idle.md`.

mod awake;
mod placement;

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use rayon_core::{ThreadPool, ThreadPoolBuilder};
use tonnage_core::Result;
use tonnage_core::error::{ErrorKind, bad_argument};
use tonnage_core::row::Cost;
use tonnage_cpu::workers::Alone;
use tonnage_cpu::workers::Workers;

use placement::ThreadPlacement;

use crate::context::Context;
use crate::interrupt::{self, Stop, Stoppable};

/// Entering the pool and one join, about.
const ENTERING_NANOS: u64 = 10_000;

/// Work that takes less than this on one thread is not worth a second one: halving must win back twice over what entering takes.
const WORTHWHILE_NANOS: u64 = 4 * ENTERING_NANOS;

/// Work whose cost says that it takes less than this cannot be stopped: a kernel would have to take some thousand times as long
/// before a user noticed, and to be ready to stop costs a small op too much.
const STOPPABLE_NANOS: u64 = 10_000;

/// Work that takes longer than this asks at once whether to stop: to ask the host takes next to nothing beside it. What seems
/// shorter asks when it has run for a while, since kernels may take many times what their cost says.
const LONG_NANOS: u64 = 5_000_000;

/// A number of threads that run together.
///
/// ```
/// use tonnage_core::row::Cost;
/// use tonnage_cpu::workers::for_each_chunk;
/// use tonnage_runtime::WorkerPool;
/// let pool = WorkerPool::new(2)?;
/// let mut data = vec![1u32; 1 << 20];
/// let cost = Cost::local(1 << 20, 8 << 20);
/// pool.run(cost, |workers| for_each_chunk(workers, &mut data, 1 << 16, &|_, x| x.fill(2)))?;
/// assert!(data.iter().all(|x| *x == 2));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct WorkerPool {
    /// `None` for one thread: the caller's.
    threads: Option<ThreadPool>,
}

impl WorkerPool {
    /// How many threads there are; at least 1.
    pub fn threads(&self) -> usize {
        self.threads.as_ref().map_or(1, ThreadPool::current_num_threads)
    }

    /// A pool of that many threads.
    ///
    /// # Errors
    /// For no threads, and where the system refuses to start them.
    pub fn new(threads: usize) -> Result<WorkerPool> {
        if threads == 0 {
            return Err(bad_argument("threads", "0 threads do no work", "use 1 or more"));
        }
        if threads == 1 {
            return Ok(WorkerPool { threads: None });
        }
        let places = ThreadPlacement::new(threads);
        let built = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|i| format!("tonnage-{i}"))
            .start_handler(move |i| Arc::clone(&places).start(i))
            .build();
        match built {
            Ok(pool) => Ok(WorkerPool { threads: Some(pool) }),
            Err(error) => Err(bad_argument(
                "threads",
                format!("the system started no {threads} threads: {error}"),
                "use fewer",
            )),
        }
    }

    /// Runs `f` with the threads that its work is worth: all of them, from inside the pool, or the
    /// caller's alone.
    pub fn run<R: Send>(&self, cost: Cost, f: impl FnOnce(&dyn Workers) -> R + Send) -> R {
        match &self.threads {
            Some(pool) if worthwhile(cost) => enter(pool, || f(self)),
            _ => f(&Alone),
        }
    }

    /// The same for work whose result is dropped where `stop` says so. Where it runs on other threads, the caller's asks
    /// meanwhile.
    pub(crate) fn run_until<R: Send>(
        &self,
        cost: Cost,
        stop: Option<&Stop>,
        f: impl FnOnce(&dyn Workers) -> Result<R> + Send,
    ) -> Result<R> {
        let Some(stop) = stop else { return self.run(cost, f) };
        match &self.threads {
            Some(pool) if worthwhile(cost) && stop.asks_here() && is_outside() => {
                stop.check()?;
                let f = || f(&Stoppable { workers: self, stop });
                let ended = watched(pool, f, interrupt::EVERY, || stop.ask());
                ended.unwrap_or_else(|| Err(ErrorKind::Interrupted.into()))
            }
            _ => self.run(cost, |workers| f(&Stoppable { workers, stop })),
        }
    }

    /// The same for an eager op, and for a recipe that is written out.
    pub(crate) fn run_op<R: Send>(
        &self,
        cost: Cost,
        f: impl FnOnce(&dyn Workers) -> Result<R> + Send,
    ) -> Result<R> {
        self.run_until(cost, op_stop(cost).as_ref(), f)
    }

    /// What all threads together win of that work, about.
    pub(crate) fn wins(&self, cost: Cost) -> u64 {
        match (nanos(cost), self.threads() as u64) {
            (..WORTHWHILE_NANOS, _) => 0,
            (nanos, threads) => (nanos - nanos / threads).saturating_sub(ENTERING_NANOS),
        }
    }

    /// How many threads [`WorkerPool::run`] will lend for that work.
    pub fn threads_for(&self, cost: Cost) -> usize {
        match &self.threads {
            Some(pool) if worthwhile(cost) => pool.current_num_threads(),
            _ => 1,
        }
    }

    /// Runs `f` inside the pool, so that each [`WorkerPool::run`] in it enters for nothing. For a whole plan.
    pub fn inside<R: Send>(&self, f: impl FnOnce() -> R + Send) -> R {
        match &self.threads {
            Some(pool) => enter(pool, || awake::all_awake(pool, f)),
            None => f(),
        }
    }
}

impl WorkerPool {
    /// The same with `tick` called on the caller's thread now and then while `f` runs on another. Where `f` runs on the
    /// caller's it is not called; `away` says that it will be. `None` where `f` panicked, which goes on from here.
    pub(crate) fn inside_watched<R: Send>(
        &self,
        f: impl FnOnce() -> R + Send,
        away: impl FnOnce(),
        every: Duration,
        tick: impl Fn(),
    ) -> Option<R> {
        let pool = match &self.threads {
            Some(pool) if is_outside() => pool,
            _ => return Some(self.inside(f)),
        };
        away();
        watched(pool, || awake::all_awake(pool, f), every, tick)
    }
}

/// Whether this thread is of no pool: one of a pool is not one that a host waits on.
fn is_outside() -> bool {
    rayon_core::current_thread_index().is_none()
}

/// Runs `f` on a thread of the pool, and `tick` on the caller's now and then meanwhile. `None` where `f` panicked, which goes
/// on from here.
fn watched<R: Send>(
    pool: &ThreadPool,
    f: impl FnOnce() -> R + Send,
    every: Duration,
    tick: impl Fn(),
) -> Option<R> {
    let (done, ended) = channel();
    let context = Context::current();
    pool.in_place_scope(|scope| {
        scope.spawn(move |_| {
            let _entered = context.enter();
            // Nobody waits any more only where the caller panicked.
            placement::spread();
            let _ = done.send(f());
        });
        loop {
            match ended.recv_timeout(every) {
                Ok(made) => break Some(made),
                Err(RecvTimeoutError::Timeout) => tick(),
                Err(RecvTimeoutError::Disconnected) => break None,
            }
        }
    })
}

/// Runs `f` on a thread of the pool, which may be the caller's.
fn enter<R: Send>(pool: &ThreadPool, f: impl FnOnce() -> R + Send) -> R {
    if pool.current_thread_index().is_some() {
        return f();
    }
    let context = Context::current();
    let f = || {
        let _entered = context.enter();
        placement::spread();
        f()
    };
    if is_outside() {
        return pool.install(f);
    }
    // A thread of somebody else's pool takes up other work of that pool while it waits in `install`: work that
    // may want the very locks that this caller holds. So it waits for a thread that waits.
    std::thread::scope(|scope| match scope.spawn(|| pool.install(f)).join() {
        Ok(made) => made,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

/// What stops an eager op that takes so much; nothing where it is short.
#[inline]
pub(crate) fn op_stop(cost: Cost) -> Option<Stop> {
    match nanos(cost) {
        ..STOPPABLE_NANOS => None,
        STOPPABLE_NANOS..LONG_NANOS => Stop::of_call(),
        LONG_NANOS.. => Stop::of_long_op(),
    }
}

/// What work takes on one thread, about: 10 bytes and 50 flops a nanosecond are what one core does.
pub(crate) fn nanos(cost: Cost) -> u64 {
    cost.bytes / 10 + cost.flops / 50
}

/// Is a second thread of any use?
fn worthwhile(cost: Cost) -> bool {
    nanos(cost) >= WORTHWHILE_NANOS && !ALONE.get()
}

thread_local! {
    /// Whether what this thread runs stays on it.
    static ALONE: Cell<bool> = const { Cell::new(false) };
}

/// Runs `f` on this thread, with no other.
pub(crate) fn alone<R>(f: impl FnOnce() -> R) -> R {
    struct Back(bool);
    impl Drop for Back {
        fn drop(&mut self) {
            ALONE.set(self.0);
        }
    }
    let _back = Back(ALONE.replace(true));
    f()
}

impl Workers for WorkerPool {
    fn threads(&self) -> usize {
        WorkerPool::threads(self)
    }

    fn join(&self, a: &mut (dyn FnMut() + Send), b: &mut (dyn FnMut() + Send)) {
        match &self.threads {
            None => Alone.join(a, b),
            Some(pool) => enter(pool, || awake::join(a, b)),
        }
    }
}

static POOL: OnceLock<WorkerPool> = OnceLock::new();

/// Whether the pool's threads were started: a process that is forked after that has none of them.
pub fn is_started() -> bool {
    POOL.get().is_some()
}

/// The pool that the CPU device runs on. It starts at its first use, with as many threads as
/// [`set_threads`] or the variable `TONNAGE_THREADS` says, and otherwise with one for each core.
pub fn pool() -> &'static WorkerPool {
    POOL.get_or_init(|| {
        let threads = asked_for(std::env::var("TONNAGE_THREADS").ok().as_deref());
        let threads = threads.unwrap_or_else(|text| {
            eprintln!("tonnage: TONNAGE_THREADS={text} is no number of threads; using all cores");
            None
        });
        let cores = || std::thread::available_parallelism().map_or(1, usize::from);
        // A system that starts no threads leaves us the caller's.
        WorkerPool::new(threads.unwrap_or_else(cores)).unwrap_or(WorkerPool { threads: None })
    })
}

/// The number in the variable, `None` where there is none, or the text that is none.
fn asked_for(variable: Option<&str>) -> std::result::Result<Option<usize>, String> {
    match variable.map(str::trim) {
        None | Some("") => Ok(None),
        Some(text) => match text.parse() {
            Ok(0) | Err(_) => Err(text.to_string()),
            Ok(n) => Ok(Some(n)),
        },
    }
}

/// Sets the number of threads of [`pool`], before anything ran on it.
///
/// # Errors
/// For no threads, and where the pool already runs with another number.
pub fn set_threads(threads: usize) -> Result<()> {
    let mut made = None;
    if POOL.get().is_none() {
        made = Some(WorkerPool::new(threads)?);
    }
    let pool = match made {
        Some(made) => POOL.get_or_init(|| made),
        None => pool(),
    };
    if pool.threads() == threads {
        return Ok(());
    }
    let what = format!("the pool already runs with {} threads, not {threads}", pool.threads());
    Err(bad_argument("set_threads", what, "set it before the first tensor is made"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread::current;
    use std::time::Instant;
    use tonnage_cpu::workers::for_each_chunk;

    thread_local! {
        /// What the host of this thread says where it is asked whether to stop.
        static STOP: Cell<bool> = const { Cell::new(false) };
    }

    #[test]
    fn work_that_takes_far_longer_than_its_cost_says_is_stopped() {
        let _context = Context::new().enter();
        interrupt::set_question(|| STOP.get());
        STOP.set(true);
        for threads in [1, 2] {
            let pool = WorkerPool::new(threads).unwrap();
            for nanos in [STOPPABLE_NANOS, WORTHWHILE_NANOS, LONG_NANOS - 1, LONG_NANOS] {
                let ended = pool.run_op(Cost::local(0, 10 * nanos), |workers| {
                    // If it is not stopped, it still ends.
                    let begun = Instant::now();
                    while begun.elapsed() < Duration::from_secs(60) {
                        workers.check()?;
                        std::thread::yield_now();
                    }
                    Ok(())
                });
                let error = ended.expect_err("a stop");
                assert!(matches!(error.kind(), ErrorKind::Interrupted), "{nanos}: {error}");
            }
            // A small op does not look.
            let small = Cost::local(0, 10 * (STOPPABLE_NANOS - 1));
            pool.run_op(small, |workers| workers.check()).unwrap();
        }
        STOP.set(false);
    }

    const LARGE_WORK: Cost = Cost::local(0, 1 << 30);

    #[test]
    fn small_work_stays_on_the_callers_thread_and_large_work_does_not() {
        let pool = WorkerPool::new(2).unwrap();
        let caller = current().id();
        let small = Cost::local(1000, 4000);
        assert_eq!(pool.run(small, |workers| (current().id(), workers.threads())), (caller, 1));
        let (thread, threads) = pool.run(LARGE_WORK, |workers| (current().id(), workers.threads()));
        assert_ne!(thread, caller);
        assert_eq!(threads, 2);
    }

    #[test]
    fn a_call_inside_the_pool_runs_where_it_is() {
        let pool = WorkerPool::new(3).unwrap();
        pool.inside(|| {
            let outer = current().id();
            assert_eq!(pool.run(LARGE_WORK, |_| current().id()), outer);
            assert_eq!(pool.inside(|| current().id()), outer);
        });
    }

    #[test]
    fn a_thread_of_another_pool_does_nothing_else_while_it_waits() {
        let ours = WorkerPool::new(2).unwrap();
        let theirs = ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let (busy, met) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let call = || {
            met.fetch_max(busy.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            let long = || std::thread::yield_now();
            ours.run(LARGE_WORK, |workers| {
                for _ in 0..100 {
                    workers.join(&mut { long }, &mut { long });
                }
            });
            busy.fetch_sub(1, Ordering::SeqCst);
        };
        theirs.scope(|scope| (0..20).for_each(|_| scope.spawn(|_| call())));
        assert_eq!(met.into_inner(), 1, "one thread, so one call at a time");
    }

    #[test]
    fn every_number_of_threads_does_the_same_work() {
        for threads in 1..=4 {
            let pool = WorkerPool::new(threads).unwrap();
            assert_eq!(pool.threads(), threads);
            let mut data = vec![0usize; 10_000];
            let calls = AtomicUsize::new(0);
            // Once from outside, as eager code may, and once from inside.
            for _ in 0..2 {
                for_each_chunk(&pool, &mut data, 100, &|i, piece| {
                    calls.fetch_add(1, Ordering::Relaxed);
                    piece.iter_mut().for_each(|x| *x += i);
                })
                .unwrap();
            }
            pool.run(LARGE_WORK, |workers| {
                for_each_chunk(workers, &mut data, 100, &|i, piece| {
                    piece.iter_mut().for_each(|x| *x += i);
                })
            })
            .unwrap();
            assert_eq!(calls.into_inner(), 200);
            assert!(data.iter().enumerate().all(|(at, x)| *x == 3 * (at / 100)));
        }
    }

    #[test]
    fn no_threads_are_refused_and_the_variable_is_read_strictly() {
        assert!(WorkerPool::new(0).unwrap_err().to_string().contains("use 1 or more"));
        assert_eq!(asked_for(None), Ok(None));
        assert_eq!(asked_for(Some(" ")), Ok(None));
        assert_eq!(asked_for(Some(" 3 ")), Ok(Some(3)));
        assert_eq!(asked_for(Some("0")), Err("0".to_string()));
        assert_eq!(asked_for(Some("many")), Err("many".to_string()));
    }
}

//! Elements that are made on other threads, in their order and a bounded number ahead.
//!
//! Threads work for the line that asked for the first element, where there is one. They end with the iterator: at its end, and soon after it was
//! dropped before. Whoever waits for them asks the host now and then whether to stop.

use std::collections::BTreeMap;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Source};
use tonnage_runtime::{Context, interrupt};

use super::pick::boxed;
use super::pipeline::{Elements, Pipeline};
use crate::tree::Tree;

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// Makes up to `n` ahead, on a thread of its own. It ends when the iterator is dropped.
    #[must_use]
    pub fn prefetch(self, n: usize) -> Pipeline<T> {
        let n = n.max(1);
        Pipeline::of(self.count(), move |pass| {
            let elements = pass.noted("prefetch", n, self.elements(pass));
            if pass.is_looking() {
                return elements;
            }
            ahead(elements, n)
        })
    }

    /// Each as `f` makes it, on `threads` threads; in order, with at most twice as many held as there are threads.
    #[must_use]
    pub fn parallel_map<U: Tree + Send + 'static>(
        self,
        threads: usize,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        self.on_threads(threads, true, f)
    }

    /// [`Pipeline::parallel_map`] that gives what is made first, in whatever order that is.
    #[must_use]
    pub fn unordered_map<U: Tree + Send + 'static>(
        self,
        threads: usize,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        self.on_threads(threads, false, f)
    }

    fn on_threads<U: Tree + Send + 'static>(
        self,
        threads: usize,
        in_order: bool,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let (f, threads) = (Arc::new(f), threads.max(1));
        Pipeline::of(self.count(), move |pass| {
            let elements = pass.noted("parallel_map, given", threads, self.elements(pass));
            if pass.is_looking() {
                let f = f.clone();
                let made = Box::new(elements.map(move |element| f(element?)));
                return pass.noted("parallel_map", 2 * threads, made);
            }
            boxed(parallel(elements, threads, in_order, f.clone()))
        })
    }
}

/// Starts a thread for the line that this one works for, in its context.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<JoinHandle<()>> {
    let (line, context) = (Source::stood_for(), Context::current());
    thread::Builder::new().name(name.into()).spawn(move || {
        let _entered = context.enter();
        match line {
            Some(line) => line.stand_for(work),
            None => work(),
        }
    })
}

/// Up to `n` ahead. The thread begins when the first one is asked for.
pub(super) fn ahead<T: Send + 'static>(elements: Elements<T>, n: usize) -> Elements<T> {
    let mut waiting = Some(elements);
    let mut running = None;
    boxed(std::iter::from_fn(move || {
        if let Some(mut elements) = waiting.take() {
            // One is in the hands of the thread.
            let (send, receive) = sync_channel(n - 1);
            let made = spawn("prefetch", move || {
                // The receiver is closed: the iterator was dropped.
                elements.by_ref().try_for_each(|element| send.send(element)).ok();
                // What the elements hold is given up before the end is seen.
                drop(elements);
                drop(send);
            });
            match made {
                Ok(thread) => running = Some((receive, thread)),
                Err(error) => {
                    let what = format!("a thread ({error})");
                    return Some(Err(bad_argument("prefetch", what, "use fewer threads")));
                }
            }
        }
        loop {
            let (receive, _) = running.as_ref()?;
            match receive.recv_timeout(interrupt::EVERY) {
                Ok(element) => return Some(element),
                Err(RecvTimeoutError::Timeout) => {
                    if let Err(error) = interrupt::ask() {
                        return Some(Err(error));
                    }
                }
                Err(RecvTimeoutError::Disconnected) => {
                    let (_, thread) = running.take()?;
                    let lost = thread.join().is_err();
                    return lost.then(|| Err(ended_early("prefetch")));
                }
            }
        }
    }))
}

fn ended_early(op: &'static str) -> tonnage_core::Error {
    bad_argument(op, "a thread that ended in the middle", "look at its panic")
}

/// What `f` makes of elements on several threads, which begin when the first one is asked for.
pub(super) fn parallel<T: Send + 'static, U: Send + 'static>(
    elements: Elements<T>,
    threads: usize,
    in_order: bool,
    f: Arc<dyn Fn(T) -> Result<U> + Send + Sync>,
) -> impl Iterator<Item = Result<U>> + Send {
    let mut waiting = Some(elements);
    let mut running: Option<MapOutput<T, U>> = None;
    std::iter::from_fn(move || {
        if let Some(elements) = waiting.take() {
            running = Some(MapOutput::start(elements, threads, in_order, &f));
        }
        running.as_mut()?.next()
    })
}

/// What threads and the iterator share. Nobody makes an element under the lock: whoever waits can give up at any time.
struct MapShared<T, U> {
    state: Mutex<MapState<T, U>>,
    /// A thread may take an element.
    room: Condvar,
    /// An element was made, or none will be.
    ready: Condvar,
}

struct MapState<T, U> {
    source: MapSource<T>,
    taken: u64,
    given: u64,
    made: BTreeMap<u64, Result<U>>,
    workers: usize,
    dropped: bool,
}

/// What elements are taken from, one at a time.
enum MapSource<T> {
    Free(Elements<T>),
    /// A thread makes the next one.
    InUse,
    Ended,
    /// It panicked.
    Lost,
}

impl<T, U> MapShared<T, U> {
    fn lock(&self) -> MutexGuard<'_, MapState<T, U>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, f: &dyn Fn(T) -> Result<U>, ahead: u64) {
        /// One worker fewer, also where `f` panics: nobody waits for it then.
        struct Gone<'a, T, U>(&'a MapShared<T, U>);
        impl<T, U> Drop for Gone<'_, T, U> {
            fn drop(&mut self) {
                self.0.lock().workers -= 1;
                self.0.ready.notify_one();
            }
        }
        let _gone = Gone(self);
        while let Some((number, element)) = self.take(ahead) {
            let made = element.and_then(f);
            self.lock().made.insert(number, made);
            self.ready.notify_one();
        }
    }

    /// The next element with its number, when there is room for it.
    fn take(&self, ahead: u64) -> Option<(u64, Result<T>)> {
        /// The source of elements in the hands of a thread.
        struct Hands<'a, T, U>(&'a MapShared<T, U>, Option<Elements<T>>);
        impl<T, U> Drop for Hands<'_, T, U> {
            fn drop(&mut self) {
                if self.1.is_some() {
                    self.0.lock().source = MapSource::Lost;
                    self.0.room.notify_all();
                }
            }
        }
        let mut state = self.lock();
        let elements = loop {
            let room = state.taken - state.given < ahead;
            match std::mem::replace(&mut state.source, MapSource::InUse) {
                _ if state.dropped => return None,
                MapSource::Free(elements) if room => break elements,
                MapSource::Ended => {
                    state.source = MapSource::Ended;
                    return None;
                }
                MapSource::Lost => {
                    state.source = MapSource::Lost;
                    return None;
                }
                other => state.source = other,
            }
            state = self.room.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        drop(state);
        let mut hands = Hands(self, Some(elements));
        let element = hands.1.as_mut().and_then(Iterator::next);
        let elements = std::mem::take(&mut hands.1);
        if element.is_none() {
            // What it holds is given up before the end is seen.
            drop(elements);
            self.lock().source = MapSource::Ended;
            self.room.notify_all();
            return None;
        }
        let mut state = self.lock();
        let number = state.taken;
        state.taken += 1;
        if let (false, Some(elements)) = (state.dropped, elements) {
            state.source = MapSource::Free(elements);
        }
        drop(state);
        self.room.notify_one();
        element.map(|element| (number, element))
    }
}

/// What comes out.
struct MapOutput<T, U> {
    shared: Arc<MapShared<T, U>>,
    in_order: bool,
}

impl<T: Send + 'static, U: Send + 'static> MapOutput<T, U> {
    fn start(
        elements: Elements<T>,
        threads: usize,
        in_order: bool,
        f: &Arc<dyn Fn(T) -> Result<U> + Send + Sync>,
    ) -> MapOutput<T, U> {
        let state = MapState {
            source: MapSource::Free(elements),
            taken: 0,
            given: 0,
            made: BTreeMap::new(),
            workers: 0,
            dropped: false,
        };
        let shared = Arc::new(MapShared {
            state: Mutex::new(state),
            room: Condvar::new(),
            ready: Condvar::new(),
        });
        for _ in 0..threads {
            let (own, f) = (shared.clone(), f.clone());
            shared.lock().workers += 1;
            let work = move || own.work(&*f, 2 * threads as u64);
            if spawn("map", work).is_err() {
                // The others do its work; with none there is no end to wait for.
                shared.lock().workers -= 1;
            }
        }
        MapOutput { shared, in_order }
    }

    fn next(&mut self) -> Option<Result<U>> {
        let shared = &*self.shared;
        let mut state = shared.lock();
        loop {
            let number = match self.in_order {
                true => Some(state.given),
                false => state.made.keys().next().copied(),
            };
            if let Some(made) = number.and_then(|number| state.made.remove(&number)) {
                state.given += 1;
                shared.room.notify_one();
                return Some(made);
            }
            if state.workers == 0 {
                // All are gone: at the end, or one with an element in its hands.
                let ended = matches!(state.source, MapSource::Ended);
                let lost = state.given < state.taken || !ended;
                state.given = state.taken;
                state.source = MapSource::Ended;
                return lost.then(|| Err(ended_early("parallel_map")));
            }
            let waited = shared.ready.wait_timeout(state, interrupt::EVERY);
            let (waited, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            state = waited;
            if timeout.timed_out() {
                // Not under the lock: the host's own may be needed to answer.
                drop(state);
                if let Err(error) = interrupt::ask() {
                    return Some(Err(error));
                }
                state = shared.lock();
            }
        }
    }
}

impl<T, U> Drop for MapOutput<T, U> {
    fn drop(&mut self) {
        let mut state = self.shared.lock();
        state.dropped = true;
        // What is held goes now, not when the last thread does.
        let made = std::mem::take(&mut state.made);
        let source = std::mem::replace(&mut state.source, MapSource::Ended);
        drop(state);
        self.shared.room.notify_all();
        drop((made, source));
    }
}

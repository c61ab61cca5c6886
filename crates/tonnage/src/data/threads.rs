//! Elements that are made on other threads, in their order and a bounded number ahead.

use std::collections::BTreeMap;
use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use tonnage_core::Result;
use tonnage_core::error::bad_argument;
use tonnage_runtime::Context;

use super::pipeline::{Elements, Pipeline};
use crate::tree::Tree;

impl<T: Tree + Send + 'static> Pipeline<T> {
    /// Makes up to `n` ahead, on a thread of its own. It ends when the iterator is dropped.
    #[must_use]
    pub fn prefetch(self, n: usize) -> Pipeline<T> {
        let n = n.max(1);
        Pipeline::of(move |pass| {
            let mut elements = pass.noted("prefetch", n, self.elements(pass));
            if pass.is_looking() {
                return elements;
            }
            // One is in the hands of the thread.
            let (send, receive) = sync_channel(n - 1);
            let context = Context::current();
            let made = thread::Builder::new().name("prefetch".into()).spawn(move || {
                let _entered = context.enter();
                // The receiver is closed: the iterator was dropped.
                elements.by_ref().try_for_each(|element| send.send(element)).ok();
            });
            let failed = made.err().map(|error| {
                let what = format!("a thread ({error})");
                Err(bad_argument("prefetch", what, "use fewer threads"))
            });
            Box::new(failed.into_iter().chain(receive))
        })
    }

    /// Each as `f` makes it, on `threads` threads; in order, with at most twice as many held as there are threads.
    #[must_use]
    pub fn parallel_map<U: Tree + Send + 'static>(
        self,
        threads: usize,
        f: impl Fn(T) -> Result<U> + Send + Sync + 'static,
    ) -> Pipeline<U> {
        let (f, threads) = (Arc::new(f), threads.max(1));
        Pipeline::of(move |pass| {
            let elements = pass.noted("parallel_map, given", threads, self.elements(pass));
            if pass.is_looking() {
                let f = f.clone();
                let made = Box::new(elements.map(move |element| f(element?)));
                return pass.noted("parallel_map", 2 * threads, made);
            }
            let state = MapState {
                elements: Some(elements),
                taken: 0,
                given: 0,
                made: BTreeMap::new(),
                workers: 0,
                dropped: false,
            };
            let shared = Arc::new(MapShared { state: Mutex::new(state), changed: Condvar::new() });
            for _ in 0..threads {
                let (own, f, context) = (shared.clone(), f.clone(), Context::current());
                shared.lock().workers += 1;
                let work = move || {
                    let _entered = context.enter();
                    own.work(&*f, 2 * threads as u64);
                };
                if thread::Builder::new().name("map".into()).spawn(work).is_err() {
                    // The others do its work; with none there is no end to wait for.
                    shared.lock().workers -= 1;
                }
            }
            Box::new(MapOutput(shared))
        })
    }
}

/// What threads and the iterator share.
struct MapShared<T, U> {
    state: Mutex<MapState<T, U>>,
    changed: Condvar,
}

struct MapState<T, U> {
    /// `None` at the end.
    elements: Option<Elements<T>>,
    taken: u64,
    given: u64,
    made: BTreeMap<u64, Result<U>>,
    workers: usize,
    dropped: bool,
}

impl<T, U> MapShared<T, U> {
    fn lock(&self) -> MutexGuard<'_, MapState<T, U>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, MapState<T, U>>) -> MutexGuard<'a, MapState<T, U>> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    fn work(&self, f: &dyn Fn(T) -> Result<U>, ahead: u64) {
        /// One worker fewer, also where `f` panics: nobody waits for it then.
        struct Gone<'a, T, U>(&'a MapShared<T, U>);
        impl<T, U> Drop for Gone<'_, T, U> {
            fn drop(&mut self) {
                self.0.lock().workers -= 1;
                self.0.changed.notify_all();
            }
        }
        let _gone = Gone(self);
        loop {
            let mut state = self.lock();
            while !state.dropped && state.taken - state.given >= ahead {
                state = self.wait(state);
            }
            if state.dropped {
                return;
            }
            // Elements are made one at a time, under the lock; what takes long is `f`.
            let Some(element) = state.elements.as_mut().and_then(Iterator::next) else {
                state.elements = None;
                return;
            };
            let number = state.taken;
            state.taken += 1;
            drop(state);
            let made = element.and_then(f);
            self.lock().made.insert(number, made);
            self.changed.notify_all();
        }
    }
}

/// What comes out, in order.
struct MapOutput<T, U>(Arc<MapShared<T, U>>);

impl<T, U> Iterator for MapOutput<T, U> {
    type Item = Result<U>;

    fn next(&mut self) -> Option<Result<U>> {
        let mut state = self.0.lock();
        loop {
            let number = state.given;
            if let Some(made) = state.made.remove(&number) {
                state.given += 1;
                self.0.changed.notify_all();
                return Some(made);
            }
            if state.workers == 0 {
                // All are gone: at the end, or one with an element in its hands.
                let lost = state.given < state.taken;
                state.given = state.taken;
                let what = "a thread that ended in the middle".to_string();
                return lost.then(|| Err(bad_argument("parallel_map", what, "look at its panic")));
            }
            state = self.0.wait(state);
        }
    }
}

impl<T, U> Drop for MapOutput<T, U> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.dropped = true;
        // Held elements go now, not when the last thread does.
        state.made.clear();
        drop(state);
        self.0.changed.notify_all();
    }
}

//! Which core a thread runs on, and moving one to another. Elsewhere than on Linux nobody knows, and nothing moves.
//!
//! Decision: `docs/decisions/threads-start-on-different-cores.md`.
#![allow(unsafe_code, reason = "calls the system's functions for cores and threads")]

#[cfg(not(target_os = "linux"))]
pub(crate) use elsewhere::{Cores, here};
#[cfg(target_os = "linux")]
pub(crate) use linux::{Cores, here};

/// A thread, as the system names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ThreadId(i32);

impl ThreadId {
    /// The calling thread.
    pub(crate) fn own() -> Option<ThreadId> {
        #[cfg(target_os = "linux")]
        // SAFETY: asks for a number and touches nothing.
        return Some(ThreadId(unsafe { libc::gettid() }));
        #[cfg(not(target_os = "linux"))]
        None
    }
}

#[cfg(target_os = "linux")]
mod linux {
    use super::ThreadId;

    /// A set of cores.
    #[derive(Debug, Clone, Copy)]
    pub(crate) struct Cores(libc::cpu_set_t);

    impl Cores {
        /// None of them.
        fn none() -> Cores {
            // SAFETY: a set of cores is bits, and none of them is set in zeros.
            Cores(unsafe { std::mem::zeroed() })
        }

        /// One alone, where there can be such a core.
        pub(crate) fn one(core: usize) -> Option<Cores> {
            let Cores(mut set) = Cores::none();
            if core >= libc::CPU_SETSIZE as usize {
                return None;
            }
            // SAFETY: the set has a bit for that core.
            unsafe { libc::CPU_SET(core, &mut set) };
            Some(Cores(set))
        }

        /// Those that a thread may run on.
        pub(crate) fn of(thread: ThreadId) -> Option<Cores> {
            let Cores(mut set) = Cores::none();
            let len = size_of_val(&set);
            // SAFETY: the set is of the size that is told, and written within it.
            let refused = unsafe { libc::sched_getaffinity(thread.0, len, &raw mut set) };
            (refused == 0).then_some(Cores(set))
        }

        /// Each of them.
        pub(crate) fn each(&self) -> impl Iterator<Item = usize> + '_ {
            let has = |core: &usize| {
                // SAFETY: the set has a bit for that core.
                unsafe { libc::CPU_ISSET(*core, &self.0) }
            };
            (0..libc::CPU_SETSIZE as usize).filter(has)
        }

        /// Has a thread run on these alone. False where the system refuses.
        pub(crate) fn hold(&self, thread: ThreadId) -> bool {
            let len = size_of_val(&self.0);
            // SAFETY: the set is of the size that is told, and read alone.
            unsafe { libc::sched_setaffinity(thread.0, len, &raw const self.0) == 0 }
        }
    }

    /// The core that the calling thread runs on at the moment.
    pub(crate) fn here() -> Option<usize> {
        // SAFETY: asks for a number and touches nothing.
        usize::try_from(unsafe { libc::sched_getcpu() }).ok()
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use super::ThreadId;

    /// No set of cores can be told.
    #[derive(Debug, Clone, Copy)]
    pub(crate) enum Cores {}

    impl Cores {
        pub(crate) fn one(_: usize) -> Option<Cores> {
            None
        }

        pub(crate) fn of(_: ThreadId) -> Option<Cores> {
            None
        }

        pub(crate) fn each(&self) -> impl Iterator<Item = usize> + '_ {
            std::iter::empty()
        }

        pub(crate) fn hold(&self, _: ThreadId) -> bool {
            match *self {}
        }
    }

    pub(crate) fn here() -> Option<usize> {
        None
    }
}

//! The generator of random keys of a context: a seed, and how many keys were drawn.
//!
//! A key and a position give a random number wherever it is computed (`core::philox`), so the order
//! in which keys are drawn is all the state there is.
//!
//! Of several replicas each draws keys of its own: where one process would draw a key for each of `n` parts, one after another, replica `r` of `n` draws that of
//! part `r`, and all count `n`.

use std::cell::Cell;

use tonnage_core::philox;

use crate::context::Context;

pub(crate) struct KeyState {
    seed: [u32; 2],
    drawn: u64,
}

impl KeyState {
    /// That of a context at its start.
    pub(crate) const START: KeyState = KeyState { seed: [0x746f, 0x6e6e], drawn: 0 };
}

/// Lets the keys that follow be those of a seed.
pub fn set_seed(seed: u64) {
    set_state((seed, 0));
}

/// The seed, and how many keys were drawn: all the state there is.
pub fn state() -> (u64, u64) {
    let context = Context::current();
    let state = context.random();
    (u64::from(state.seed[0]) | u64::from(state.seed[1]) << 32, state.drawn)
}

/// Goes on where [`state`] was asked for.
pub fn set_state((seed, drawn): (u64, u64)) {
    let seed = [seed as u32, (seed >> 32) as u32];
    *Context::current().random() = KeyState { seed, drawn };
}

/// The key of the random op of that number in a call that has this key.
pub fn derived(call: [u32; 2], number: u32) -> [u32; 2] {
    let words = philox::block(call, [number, 0, 0, 0x6361_6c6c]);
    [words[0], words[1]]
}

/// A key that was not drawn before.
pub fn next_key() -> [u32; 2] {
    draw().words()
}

/// A key that was not drawn before, computed where it is used: most calls draw one and make no random number.
pub fn draw() -> RunKey {
    draw_as(REPLICA.get())
}

/// The same for one of several replicas.
pub fn draw_as(replica: Replica) -> RunKey {
    let context = Context::current();
    let mut state = context.random();
    let key = RunKey::Drawn { seed: state.seed, number: state.drawn + replica.number };
    state.drawn += replica.of;
    key
}

/// One of several replicas of a program, which draw different random numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Replica {
    /// Counted from 0.
    pub number: u64,
    /// How many there are.
    pub of: u64,
}

impl Replica {
    /// The only one.
    pub const ALONE: Replica = Replica { number: 0, of: 1 };

    /// Lets this thread draw as this replica until `f` ends.
    pub fn run<R>(self, f: impl FnOnce() -> R) -> R {
        struct Restore(Replica);
        impl Drop for Restore {
            fn drop(&mut self) {
                REPLICA.set(self.0);
            }
        }
        let _restore = Restore(REPLICA.replace(self));
        f()
    }

    /// That which this thread draws as.
    pub fn of_thread() -> Replica {
        REPLICA.get()
    }
}

thread_local! {
    static REPLICA: Cell<Replica> = const { Cell::new(Replica::ALONE) };
}

/// The key of a run.
#[derive(Debug, Clone, Copy)]
pub enum RunKey {
    /// The words that it is made of.
    Words([u32; 2]),
    /// That of a number, in the order in which a seed's keys are drawn.
    Drawn {
        /// The seed.
        seed: [u32; 2],
        /// How many were drawn before.
        number: u64,
    },
}

impl RunKey {
    /// The words that it is made of.
    pub fn words(self) -> [u32; 2] {
        match self {
            RunKey::Words(words) => words,
            RunKey::Drawn { seed, number } => {
                let words = philox::block(seed, [number as u32, (number >> 32) as u32, 1, 0]);
                [words[0], words[1]]
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replicas_draw_the_keys_that_one_process_draws_part_by_part() {
        let _context = Context::new().enter();
        let of = 3;
        for draws in 1..4u64 {
            set_seed(5);
            let one: Vec<_> = (0..draws * of).map(|_| next_key()).collect();
            let end = state();
            for number in 0..of {
                set_seed(5);
                let own = Replica { number, of }.run(|| {
                    let own: Vec<_> = (0..draws).map(|_| next_key()).collect();
                    assert_eq!(Replica::of_thread().number, number);
                    own
                });
                let expected: Vec<_> = one.iter().skip(number as usize).step_by(3).collect();
                assert_eq!(own.iter().collect::<Vec<_>>(), expected);
                assert_eq!((state(), Replica::of_thread()), (end, Replica::ALONE));
            }
        }
    }
}

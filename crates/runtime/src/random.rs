//! The generator of random keys of a context: a seed, and how many keys were drawn.
//!
//! A key and a position give a random number wherever it is computed (`core::philox`), so the order
//! in which keys are drawn is all the state there is.

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
    let context = Context::current();
    let mut state = context.random();
    let key = RunKey::Drawn { seed: state.seed, number: state.drawn };
    state.drawn += 1;
    key
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

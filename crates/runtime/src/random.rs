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
    let context = Context::current();
    let mut state = context.random();
    let words = philox::block(state.seed, [state.drawn as u32, (state.drawn >> 32) as u32, 1, 0]);
    state.drawn += 1;
    [words[0], words[1]]
}

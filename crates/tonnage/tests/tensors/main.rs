//! Tensors and variables in eager mode: every op, dtype and mistake, from one thread and from several.

#[path = "../common/mod.rs"]
mod common;

mod bad_input;
mod bad_state;
mod dtypes;
mod random_keys;
mod send_sync;
mod slice;
mod table;
mod threads;
mod transposed;
mod variables;

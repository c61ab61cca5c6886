//! What vector loops give, at every vector width that this machine has: primitives, functions of floats, random numbers.
//!
//! They stand here and not beside the code because a second build of all the vector loops, which tests inside the
//! crate would need, takes minutes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

mod accuracy;
mod philox;
mod primitives;
mod random;

//! What lies below the table, at every vector width that this machine has: the matmul core, tile programs, workers.
//!
//! They stand here and not beside the code because a second build of all the vector loops, which tests inside the
//! crate would need, takes minutes.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

mod gemm;
mod pieces;
mod repeats;
mod stream;
mod uniform;
mod workers;

//! Programs on `sim:0`, a device whose memory host code cannot dereference and whose queue runs late: the bits of the CPU, and memory
//! that is what the plan says, on each device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

#[path = "../common/mod.rs"]
mod common;
mod every_op;
mod programs;
mod soft;
mod training;

//! Programs on `sim:0`, a device whose memory host code cannot dereference and whose queue runs late: the bits of the CPU, and memory
//! that is what the plan says, on each device.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

mod batches;
#[path = "../common/mod.rs"]
mod common;
mod every_op;
mod host_steps;
mod programs;
mod soft;
mod training;
#[path = "../common/tried.rs"]
mod tried;

use tonnage_core::DeviceKind;
use tried::TRIED;

/// Whether it has kernels of its own, which add up in another order than the CPU's.
fn is_close_enough() -> bool {
    TRIED.kind == DeviceKind::Cuda
}

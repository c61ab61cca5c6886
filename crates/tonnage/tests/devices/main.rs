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
mod host_steps;
mod programs;
mod soft;
mod training;

use std::sync::LazyLock;

use tonnage_core::{Device, DeviceKind};

/// The device that is tried beside the CPU: `sim:0`, or what the environment variable `TONNAGE_TEST_DEVICE` names.
static TRIED: LazyLock<Device> = LazyLock::new(|| match std::env::var("TONNAGE_TEST_DEVICE") {
    Ok(name) => name.parse().unwrap(),
    Err(_) => Device::SIM,
});

/// Whether it has kernels of its own, which add up in another order than the CPU's.
fn is_close_enough() -> bool {
    TRIED.kind == DeviceKind::Cuda
}

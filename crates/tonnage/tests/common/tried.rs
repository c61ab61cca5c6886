//! The device that tests of devices try.

use std::sync::LazyLock;

use tonnage_core::Device;

/// The device that is tried beside the CPU: `sim:0`, or what the environment variable `TONNAGE_TEST_DEVICE` names.
pub static TRIED: LazyLock<Device> = LazyLock::new(|| match std::env::var("TONNAGE_TEST_DEVICE") {
    Ok(name) => name.parse().unwrap(),
    Err(_) => Device::SIM,
});

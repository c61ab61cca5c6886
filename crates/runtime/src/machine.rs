//! The figures of this machine that plans under a budget are compared by: the planner's own until others are
//! set. They decide which of several plans is taken, never what a plan gives.

use std::sync::{Arc, PoisonError};

use tonnage_core::{Device, DeviceKind, Result};
use tonnage_cpu::CpuTarget;
use tonnage_plan::{Machine, SharedTarget};

use crate::context::Context;
use crate::pool::pool;

/// The figures that are in use.
pub fn machine() -> Machine {
    *Context::current().machine().read().unwrap_or_else(PoisonError::into_inner)
}

/// Uses these from here on. Plans that were made stay what they are.
pub fn set_machine(machine: Machine) {
    *Context::current().machine().write().unwrap_or_else(PoisonError::into_inner) = machine;
}

/// This machine's CPU as plans are made for it: the threads of the pool, and the figures that are in use.
pub fn target() -> SharedTarget {
    target_of(pool().threads(), machine())
}

/// A device as plans are made for it, with so many threads of the host, and those figures of the host.
///
/// # Errors
/// Where it is not there.
pub fn target_on(device: Device, threads: usize, machine: Machine) -> Result<SharedTarget> {
    Ok(match device.kind {
        DeviceKind::Cpu => target_of(threads, machine),
        DeviceKind::Sim => Context::current().sim().target_beside(target_of(threads, machine)),
        DeviceKind::Cuda => Context::current().ledger(device)?.backend().target(),
    })
}

/// A CPU with so many threads, and those figures.
pub fn target_of(threads: usize, machine: Machine) -> SharedTarget {
    Arc::new(CpuTarget::new(threads, machine))
}

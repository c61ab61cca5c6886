//! The figures of this machine that plans under a budget are compared by: the planner's own until others are
//! set. They decide which of several plans is taken, never what a plan gives.

use std::sync::{Arc, PoisonError};

use tonnage_core::{Bytes, Device, DeviceKind, Result};
use tonnage_cpu::CpuTarget;
use tonnage_cuda::target::CudaTarget;
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
    let context = Context::current();
    Ok(match device.kind {
        DeviceKind::Cpu => target_of(threads, machine),
        DeviceKind::Sim => context.sim().target_beside(target_of(threads, machine)),
        DeviceKind::Cuda => context.ledger(device)?.backend().target(),
    })
}

/// What memory a device has; `None` where it does not say.
///
/// # Errors
/// Where it is not there.
pub fn memory_of(device: Device) -> Result<Option<Bytes>> {
    Ok(Context::current().ledger(device)?.backend().capacity())
}

/// What plans are made for that nobody runs, where that is not the device of their inputs.
pub fn target_on_paper() -> Option<SharedTarget> {
    let context = Context::current();
    context.settings().plans_for.read().unwrap_or_else(PoisonError::into_inner).clone()
}

/// A card that need not be here, by its name, beside this machine's CPU.
pub fn target_named(name: &str) -> Option<SharedTarget> {
    CudaTarget::named(name, target()).map(|card| Arc::new(card) as SharedTarget)
}

/// A CPU with so many threads, and those figures.
pub fn target_of(threads: usize, machine: Machine) -> SharedTarget {
    Arc::new(CpuTarget::new(threads, machine))
}

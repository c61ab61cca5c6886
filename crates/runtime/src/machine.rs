//! The figures of this machine that plans under a budget are compared by: the planner's own until others are
//! set. They decide which of several plans is taken, never what a plan gives.

use std::sync::{PoisonError, RwLock};

use tonnage_plan::Machine;

static MACHINE: RwLock<Machine> = RwLock::new(Machine::DEFAULT);

/// The figures that are in use.
pub fn machine() -> Machine {
    *MACHINE.read().unwrap_or_else(PoisonError::into_inner)
}

/// Uses these from here on. Plans that were made stay what they are.
pub fn set_machine(machine: Machine) {
    *MACHINE.write().unwrap_or_else(PoisonError::into_inner) = machine;
}

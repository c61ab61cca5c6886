//! The variables of a planned call while it runs.
//!
//! Decisions: `docs/decisions/callbacks-borrow-bytes.md`, `docs/decisions/pool-waits-idle.md`.

use std::cell::Cell;
use std::sync::MutexGuard;

use tonnage_core::{Result, Source};
use tonnage_runtime::placement::{ledger_of, uses_devices};
use tonnage_runtime::{Array, Ledger, host_ledger};

use super::{Variable, VariableState};
use crate::tensor::next_id;

thread_local! {
    /// Calls of this thread that hold variables.
    static HOLDING: Cell<usize> = const { Cell::new(0) };
}

/// Whether a call of this thread holds variables: what runs here is a callback of it. To wait for a variable now could
/// be to wait for this very call, or for one that waits for it.
pub(super) fn is_holding() -> bool {
    HOLDING.get() > 0
}

/// Counts a call that holds variables until it is dropped.
struct Holding;

impl Holding {
    fn new() -> Holding {
        HOLDING.set(HOLDING.get() + 1);
        Holding
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        HOLDING.set(HOLDING.get() - 1);
    }
}

/// The variables of a planned call. Those that it writes are held until it ends: another call that writes one of
/// them waits, and so does a reader, so no update is lost and no value is seen half written.
///
/// They are taken in the order in which they were made, whatever the order in the call, so that two calls never
/// wait for each other. While they are held the caller runs kernels, and callbacks, which never wait for a variable; see
/// [`pool`](mod@tonnage_runtime::pool).
pub(crate) struct LockedVariables<'v> {
    /// Those that are written, each with its index among them in the order of the call.
    written: Vec<(usize, &'v Variable, MutexGuard<'v, VariableState>)>,
    arrays: Vec<Array>,
    _holding: Option<Holding>,
}

/// The device that a call runs on: that of its inputs and variables.
fn place(variables: &[(Variable, bool)], others: &[Array]) -> Result<Ledger> {
    if !uses_devices() {
        return Ok(host_ledger());
    }
    let held: Vec<Array> = variables.iter().filter_map(|(variable, _)| variable.held()).collect();
    ledger_of("function", others.iter().chain(&held))
}

impl<'v> LockedVariables<'v> {
    /// Takes the variables of a call with these other inputs, each with whether it is written.
    pub fn take(
        variables: &'v [(Variable, bool)],
        others: &[Array],
        source: Source,
    ) -> Result<LockedVariables<'v>> {
        // A first value that is still to come may be made of other variables: before any of them is held.
        for (variable, _) in variables {
            drop(variable.settled()?);
        }
        let place = place(variables, others)?;
        let mut order: Vec<usize> = (0..variables.len()).collect();
        order.sort_unstable_by_key(|i| variables[*i].0.number());
        let (mut written, mut found) = (Vec::new(), vec![None; variables.len()]);
        let position = |i: usize| variables[..i].iter().filter(|(_, written)| *written).count();
        for i in order {
            let (variable, writes) = &variables[i];
            let mut state = variable.free_state()?;
            found[i] = Some(variable.for_call(&mut state, *writes, &place, source)?);
            if *writes {
                written.push((position(i), variable, state));
            }
        }
        let _holding = (!written.is_empty()).then(Holding::new);
        Ok(LockedVariables { written, arrays: found.into_iter().flatten().collect(), _holding })
    }

    /// Their values, in the order of the call. The caller drops them before it ends the hold.
    pub fn arrays(&mut self) -> Vec<Array> {
        std::mem::take(&mut self.arrays)
    }

    /// After the call: what was read before is someone else to a tape. `made` are the values that the written ones leave with, in the order
    /// of the call; those in memory have been written where they lie.
    pub fn end(self, made: &[Array]) {
        for (position, variable, mut state) in self.written {
            if let VariableState::Holds(array, id) = &mut *state {
                *id = next_id();
                if let Some(value) = made.get(position).filter(|_| variable.is_in_files()) {
                    *array = value.clone();
                }
            }
        }
    }
}

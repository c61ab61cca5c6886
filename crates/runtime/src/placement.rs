//! Where ops run: where their inputs lie. Recipes lie nowhere and follow, and so does a single number in host memory; where nothing lies
//! anywhere, the op runs on the device of the scope that the thread is in, or on the CPU.
//!
//! Decision: `docs/decisions/devices-are-backends.md`.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicBool, Ordering};

use tonnage_core::{Device, ErrorKind, Result};

use crate::array::Array;
use crate::context::{Context, host_ledger};
use crate::ledger::Ledger;

/// Whether any device but the CPU was ever used: until then there is nothing to look up.
static USED: AtomicBool = AtomicBool::new(false);

/// Notes that a device is used.
pub(crate) fn use_devices() {
    USED.store(true, Ordering::Relaxed);
}

/// Whether any device but the CPU was ever used.
#[inline]
pub fn uses_devices() -> bool {
    USED.load(Ordering::Relaxed)
}

thread_local! {
    /// The device of the innermost scope.
    static SCOPE: RefCell<Option<Ledger>> = const { RefCell::new(None) };
}

/// While it lives, what has no place is made on its device.
#[must_use = "the scope ends when this is dropped"]
pub struct DeviceScope {
    before: Option<Ledger>,
    /// A thread's own matter.
    thread: PhantomData<*const ()>,
}

impl DeviceScope {
    /// Opens a scope.
    ///
    /// # Errors
    /// Where the device is not there.
    pub fn open(device: Device) -> Result<DeviceScope> {
        let ledger = Context::current().ledger(device)?.clone();
        Ok(DeviceScope { before: SCOPE.replace(Some(ledger)), thread: PhantomData })
    }
}

impl Drop for DeviceScope {
    fn drop(&mut self) {
        let before = self.before.take();
        // A thread that ends has no scope any more.
        drop(SCOPE.try_with(|scope| scope.replace(before)));
    }
}

/// The ledger of the device where something is made that has no place: the scope's, or the host's.
pub fn default_ledger() -> Ledger {
    if !uses_devices() {
        return host_ledger();
    }
    SCOPE.with_borrow(Option::clone).unwrap_or_else(host_ledger)
}

/// A tensor that was made in host memory, on the device of the scope that the thread is in.
///
/// # Errors
/// Where there is no memory for it there.
pub fn in_scope(array: Array) -> Result<Array> {
    if !uses_devices() {
        return Ok(array);
    }
    match SCOPE.with_borrow(Option::clone) {
        Some(ledger) if !ledger.is_host() => array.copied_to(&ledger, "tensor"),
        _ => Ok(array),
    }
}

/// The ledger of the device that an op with these inputs runs on.
///
/// # Errors
/// Where they lie on different ones.
pub fn ledger_of<'a>(op: &'static str, arrays: impl Iterator<Item = &'a Array>) -> Result<Ledger> {
    if !uses_devices() {
        return Ok(host_ledger());
    }
    let (mut found, mut scalar): (Option<Ledger>, Option<Ledger>) = (None, None);
    for array in arrays {
        let Some(ledger) = array.storage().ledger() else { continue };
        if ledger.is_host() && array.layout().count() == 1 {
            scalar.get_or_insert(ledger);
            continue;
        }
        match &found {
            Some(other) if !is_one(other, &ledger) => {
                let (left, right) = (other.device(), ledger.device());
                return Err(ErrorKind::DeviceMismatch { op, left, right }.into());
            }
            Some(_) => {}
            None => found = Some(ledger),
        }
    }
    // Host memory is one, whichever context counts it: what is made is the current one's.
    Ok(match found {
        Some(ledger) if !ledger.is_host() => ledger,
        Some(_) => host_ledger(),
        None if scalar.is_some() => host_ledger(),
        None => default_ledger(),
    })
}

/// Whether both count the same memory: the host's is one, whichever context counts it.
fn is_one(a: &Ledger, b: &Ledger) -> bool {
    a.is(b) || a.is_host() && b.is_host()
}

/// An input as an op needs it that runs there: a copy where it follows, nothing where it can stay as it is.
///
/// # Errors
/// Where it lies elsewhere and does not follow, and where there is no memory for the copy.
pub fn beside(op: &'static str, place: &Ledger, array: &Array) -> Result<Option<Array>> {
    if !uses_devices() {
        return Ok(None);
    }
    let Some(ledger) = array.storage().ledger() else { return Ok(None) };
    if is_one(&ledger, place) {
        return Ok(None);
    }
    match ledger.is_host() && array.layout().count() == 1 {
        true => array.copied_to(place, op).map(Some),
        false => {
            let (left, right) = (place.device(), ledger.device());
            Err(ErrorKind::DeviceMismatch { op, left, right }.into())
        }
    }
}

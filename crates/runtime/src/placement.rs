//! Where ops run: where their inputs lie. Recipes lie nowhere and follow, and so does a single number in host memory; where nothing lies
//! anywhere, the op runs on the device of the scope that the thread is in, or on the CPU.
//!
//! Any other mix is an error. Under soft placement it is none: the op runs on the device of its first input that is not in host memory,
//! the others are copied there, and whoever set it is told.
//!
//! Decision: `docs/decisions/devices-are-backends.md`.

use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::PoisonError;
use std::sync::atomic::{AtomicBool, Ordering};

use tonnage_core::{Device, ErrorKind, Result, Source};

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

    /// Inside of others: as if there were no scope.
    pub fn none() -> DeviceScope {
        DeviceScope { before: SCOPE.replace(None), thread: PhantomData }
    }

    /// The device of the innermost scope of this thread; none where only the CPU was ever used.
    pub fn current() -> Option<Device> {
        match uses_devices() {
            true => SCOPE.with_borrow(|scope| scope.as_ref().map(Ledger::device)),
            false => None,
        }
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

/// A tensor on the device of the scope that the thread is in: itself where there is none, or where it lies there.
///
/// # Errors
/// Where there is no memory for it there.
pub fn in_scope(array: Array) -> Result<Array> {
    if !uses_devices() {
        return Ok(array);
    }
    let Some(scope) = SCOPE.with_borrow(Option::clone) else { return Ok(array) };
    let is_there = match array.storage().ledger() {
        Some(ledger) => is_one(&ledger, &scope),
        // What lies nowhere is as much in host memory as anywhere.
        None => scope.is_host(),
    };
    match is_there {
        true => Ok(array),
        false => array.copied_to(&scope, "tensor"),
    }
}

/// Whether two ledgers count the same memory. Host memory is one, whichever context counts it.
fn is_one(left: &Ledger, right: &Ledger) -> bool {
    left.is(right) || left.is_host() && right.is_host()
}

/// An input that was copied to the device of the others.
#[derive(Debug, Clone, Copy)]
pub struct SoftCopy {
    /// The op that needed it there.
    pub op: &'static str,
    /// Where it lies.
    pub from: Device,
    /// Where the op ran.
    pub to: Device,
    /// The line that the op was run for.
    pub source: Source,
}

/// Who is told of copies under soft placement; nobody where it is off.
fn soft_placement() -> Option<fn(&SoftCopy)> {
    let context = Context::current();
    *context.settings().soft_placement.read().unwrap_or_else(PoisonError::into_inner)
}

/// The ledger of the device that an op with these inputs runs on.
///
/// # Errors
/// Where they lie on different ones, unless placement is soft.
#[inline]
pub fn ledger_of<'a>(op: &'static str, arrays: impl Iterator<Item = &'a Array>) -> Result<Ledger> {
    match uses_devices() {
        true => ledger_among(op, arrays),
        false => Ok(host_ledger()),
    }
}

#[inline(never)]
fn ledger_among<'a>(op: &'static str, arrays: impl Iterator<Item = &'a Array>) -> Result<Ledger> {
    let (mut found, mut scalar): (Option<Ledger>, Option<Ledger>) = (None, None);
    for array in arrays {
        let Some(ledger) = array.storage().ledger() else { continue };
        if ledger.is_host() && array.layout().count() == 1 {
            scalar.get_or_insert(ledger);
            continue;
        }
        match &found {
            Some(other) if !is_one(other, &ledger) => {
                if soft_placement().is_none() {
                    let (left, right) = (other.device(), ledger.device());
                    return Err(ErrorKind::DeviceMismatch { op, left, right }.into());
                }
                if other.is_host() {
                    found = Some(ledger);
                }
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

/// Whether an input lies on another device than an op that runs there.
pub fn is_elsewhere(place: &Ledger, array: &Array) -> bool {
    uses_devices() && array.storage().ledger().is_some_and(|ledger| !is_one(&ledger, place))
}

/// Whether an input has to be copied for an op that runs there; under soft placement whoever set it is told.
///
/// # Errors
/// Where it lies elsewhere and does not follow, unless placement is soft.
pub fn follows(op: &'static str, place: &Ledger, array: &Array, source: Source) -> Result<bool> {
    if !is_elsewhere(place, array) {
        return Ok(false);
    }
    let (from, to) = (array.device().unwrap_or(Device::CPU), place.device());
    if from == Device::CPU && array.layout().count() == 1 {
        return Ok(true);
    }
    match soft_placement() {
        Some(tell) => tell(&SoftCopy { op, from, to, source }),
        None => return Err(ErrorKind::DeviceMismatch { op, left: to, right: from }.into()),
    }
    Ok(true)
}

/// An input as an op needs it that runs there: a copy where it follows, nothing where it can stay as it is.
///
/// # Errors
/// Where it lies elsewhere and does not follow, and where there is no memory for the copy.
pub fn beside(
    op: &'static str,
    place: &Ledger,
    array: &Array,
    source: Source,
) -> Result<Option<Array>> {
    match follows(op, place, array, source)? {
        true => array.copied_to(place, op).map(Some),
        false => Ok(None),
    }
}

/// The inputs of a call as it needs them that runs there: before it is planned, as a copy may lie otherwise.
///
/// # Errors
/// As of [`beside`].
#[inline]
pub fn all_beside(
    op: &'static str,
    place: &Ledger,
    arrays: &mut [Array],
    source: Source,
) -> Result<()> {
    match uses_devices() {
        true => bring_all(op, place, arrays, source),
        false => Ok(()),
    }
}

#[inline(never)]
fn bring_all(op: &'static str, place: &Ledger, arrays: &mut [Array], source: Source) -> Result<()> {
    for array in arrays {
        if let Some(copy) = beside(op, place, array, source)? {
            *array = copy;
        }
    }
    Ok(())
}

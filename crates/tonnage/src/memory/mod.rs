//! Seeing and limiting memory: what is held, by whom, since which line; `why` tells who holds a tensor, `line` who holds what is from a
//! line (both ask `holders`), `steady` whether a step
//! leaves something behind.

mod holders;
mod line;
mod steady;
mod why;

pub use line::{WhyLine, why_line};
pub use steady::assert_steady;
pub use why::{HeldBy, Why, why};

pub use tonnage_runtime::events::{Action, Event, EventReport, Scope};
pub use tonnage_runtime::ledger::{Holder, Info, leak_check};
pub use tonnage_runtime::system::{available_memory, resident};
pub use tonnage_runtime::timeline::{CallRecord, InnerStep, Moment, Recording, Span, Timeline};

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Result, Source};
use tonnage_runtime::{Context, Ledger};

/// The ledger of a device.
fn ledger(device: &str) -> Result<Ledger> {
    Ok(Context::current().ledger(device.parse()?)?.clone())
}

/// What a device holds: bytes now, at the peak, by kind and by holder with source line.
///
/// ```
/// use tonnage::{memory, tensor};
/// let x = tensor([1.0f32; 100])?;
/// let info = memory::info("cpu:0")?;
/// assert!(info.in_use.get() >= 400);
/// println!("{info}");
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn info(device: &str) -> Result<Info> {
    Ok(ledger(device)?.info())
}

/// Lets the peak start again from what is held now.
pub fn reset_peak(device: &str) -> Result<()> {
    ledger(device)?.reset_peak();
    Ok(())
}

/// Gives back what a device keeps warm for the next call, and says how much that was.
///
/// ```
/// use tonnage::{memory, tensor};
/// drop(tensor(vec![1.0f32; 1 << 18])?);
/// memory::empty_cache("cpu:0")?;
/// assert!(memory::info("cpu:0")?.cached.is_zero());
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a device that is not there.
pub fn empty_cache(device: &str) -> Result<Bytes> {
    Ok(ledger(device)?.give_up_cache())
}

/// The most that a device may hold from here on; `None` is what the machine has, and so is a limit beyond that.
///
/// It is a budget for everything at once. Functions are planned into what others leave of it, as under a budget
/// of their own, whichever is less. In eager mode large tensors that nobody uses at the moment leave memory when
/// there is no room, and come back when they are read: those that are recipes or were moved to a file before for nothing, all
/// others through a file, what was used longest ago first. Results stay the same, bit for bit. What does not
/// fit even so is an error, with the largest holders by source line.
///
/// ```
/// use tonnage::{Bytes, memory, tensor};
/// let held: Vec<_> = (0..8).map(|_| tensor(vec![1.0f32; 1 << 16])).collect::<Result<_, _>>()?;
/// memory::set_limit("cpu:0", Some(Bytes::mib(1)))?;
/// let more = tensor(vec![2.0f32; 1 << 16])?; // 256 KiB: some of the others have to go
/// let info = memory::info("cpu:0")?;
/// assert!(info.in_use <= Bytes::mib(1) && info.away >= Bytes::mib(1));
/// assert_eq!(held[0].sum_all()?.to_vec::<f32>()?, [65_536.0]); // and come back
/// # memory::set_limit("cpu:0", None)?;
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a device that is not there, and for a limit of no bytes.
#[track_caller]
pub fn set_limit(device: &str, limit: Option<Bytes>) -> Result<()> {
    let ledger = ledger(device)?;
    if limit.is_some_and(Bytes::is_zero) {
        let help = "give the bytes that the device may hold, or `None` for what the machine has";
        let error = bad_argument("set_limit", "a limit of 0 bytes", help);
        return Err(error.at(Source::here()));
    }
    ledger.set_limit(limit);
    Ok(())
}

/// The most that a device may hold, where [`set_limit`] was told; none otherwise.
///
/// # Errors
/// For a device that is not there.
pub fn limit(device: &str) -> Result<Option<Bytes>> {
    Ok(ledger(device)?.limited().map(|(limit, _)| limit))
}

/// Values that wait in a file while a call meets its budget wait in that folder from here on, instead of the one that
/// the environment's `TONNAGE_SPILL_DIR` names, or the system's folder for what does not last. Files carry the number
/// of their process, so that several can share a folder; those that a process left which was ended are removed when
/// another first spills there.
///
/// # Errors
/// Where it is no folder.
pub fn set_spill_folder(path: impl Into<std::path::PathBuf>) -> Result<()> {
    let path = path.into();
    if !path.is_dir() {
        let what = format!("`{}` is no folder", path.display());
        return Err(bad_argument("set_spill_folder", what, "make it first, or choose another"));
    }
    tonnage_runtime::spill::set_folder(path);
    Ok(())
}

/// Records a device over time: what was obtained and freed when, by which line, on all threads, and every planned call step by
/// step. Up to a million buffers and calls are recorded. While nothing is recorded it costs nothing.
///
/// ```
/// use tonnage::report::Picture;
/// use tonnage::{memory, tensor};
/// let recording = memory::record("cpu:0")?;
/// let x = tensor(vec![1.0f32; 1000])?;
/// let y = (&x * 2.0)?;
/// let timeline = recording.finish();
/// assert_eq!(timeline.spans.last().unwrap().bytes.get(), 4032); // y, in whole cache lines
/// println!("{}", Picture::of_timeline("two tensors", &timeline).chart(80, 12, None, false));
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a device that is not there, and where a recording goes on already.
#[track_caller]
pub fn record(device: &str) -> Result<Recording> {
    ledger(device)?.record(tonnage_runtime::timeline::MOST).ok_or_else(|| {
        let what = "a recording goes on already";
        bad_argument("record", what, "finish or drop it first").at(Source::here())
    })
}

/// Records what the block of code until its end does to memory, op by op.
///
/// ```
/// use tonnage::{memory, tensor};
/// let x = tensor([1.0f32, 2.0])?;
/// let scope = memory::scope();
/// let y = (x * 2.0)?; // x is moved in: its bytes are reused
/// let report = scope.report();
/// assert_eq!(report.count(memory::Action::Reused), 1);
/// assert_eq!(report.count(memory::Action::Allocated), 0);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn scope() -> Scope {
    Scope::open()
}

//! Seeing and limiting memory: what is held, by whom, since which line.

pub use tonnage_runtime::events::{Action, Event, Report, Scope};
pub use tonnage_runtime::ledger::{Holder, Info, leak_check};
pub use tonnage_runtime::system::resident;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Result};
use tonnage_runtime::Ledger;

/// The ledger of a device.
fn ledger(device: &str) -> Result<&'static Ledger> {
    match device {
        "cpu:0" | "cpu" => Ok(Ledger::cpu()),
        other => {
            let what = format!("there is no device `{other}`");
            Err(bad_argument("memory", what, "use cpu:0"))
        }
    }
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

/// The most that a device may hold from here on; `None` is what the machine has.
pub fn set_limit(device: &str, limit: Option<Bytes>) -> Result<()> {
    ledger(device)?.set_limit(limit);
    Ok(())
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

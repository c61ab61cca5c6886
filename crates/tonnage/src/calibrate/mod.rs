//! Calibration: what this machine does in a second, measured once and saved in the user's cache folder.
//!
//! Which plan a budget takes depends on these figures, so they never change by themselves: a program uses those that are
//! built in, unless somebody has called [`calibrate`] on this machine, in this process or in an earlier one. The
//! file is looked for once, when a budget is first planned for. A file of another version, of another CPU or
//! for another number of threads is as good as none; one that cannot be read is ignored with a notice.
//!
//! Decision: `docs/decisions/machine-figures-are-asked-for.md`.

mod file;
mod measure;

use std::path::PathBuf;
use std::sync::OnceLock;

use serde::Serialize;
use tonnage_core::error::bad_argument;
use tonnage_core::{Result, World};
use tonnage_plan::Machine;
use tonnage_runtime::{Context, machine as in_use};

use crate::notices::{self, Notice};
use crate::trace;

/// Measures this machine, which takes less than a second and some 50 MiB, saves the figures for later processes, and
/// uses them for plans under a budget from here on; those of the network stay as they are. Results never depend on them: they decide what is
/// recomputed, not what comes out.
///
/// ```no_run
/// let machine = tonnage::calibrate()?;
/// println!("{:.0} GFLOP/s, {:.1} GB/s", machine.flops / 1e9, machine.bytes / 1e9);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Inside of a function that is traced, or where there is no memory for it. A cache folder that cannot be written
/// is a notice: the figures are used all the same.
pub fn calibrate() -> Result<Machine> {
    calibrate_across(&World::alone())
}

/// The same on all ranks of a world, which call it together: what is sent between them is measured too, and all use the figures of the slowest network.
///
/// # Errors
/// As [`calibrate`] has them, and where the network fails.
pub fn calibrate_across(world: &World) -> Result<Machine> {
    if trace::current().is_some() {
        let help = "call it outside, once";
        return Err(bad_argument("calibrate", "called while a function is traced", help));
    }
    let machine = measure::machine(world, &machine())?;
    in_use::set_machine(machine);
    if let Err(why) = file::store(&machine) {
        notices::give(&Notice::Calibration { why });
    }
    Ok(machine)
}

/// The figures that were saved for this machine.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case", tag = "state")]
#[non_exhaustive]
pub enum SavedFigures {
    /// They are there, and budgets are planned with them.
    Used {
        /// The file.
        path: PathBuf,
        /// What it says.
        figures: Machine,
    },
    /// There are none.
    None {
        /// The file that they would be in; `None` where there is no folder for caches.
        path: Option<PathBuf>,
    },
    /// They are of another version, processor or number of threads.
    Other {
        /// The file.
        path: PathBuf,
    },
    /// The file cannot be used.
    Unusable {
        /// Which file, and why.
        why: String,
    },
}

/// What was saved by [`calibrate`] on this machine, in this process or in an earlier one.
pub(crate) fn saved_figures() -> SavedFigures {
    let path = file::path();
    match (file::load(), path) {
        (Ok(Some(figures)), Some(path)) => SavedFigures::Used { path, figures },
        (Ok(_), Some(path)) if path.exists() => SavedFigures::Other { path },
        (Ok(_), path) => SavedFigures::None { path },
        (Err(why), _) => SavedFigures::Unusable { why },
    }
}

/// Whether the figures of this machine were looked for in a context.
#[derive(Default)]
struct Loaded(OnceLock<()>);

/// The figures that budgets are planned with.
///
/// ```
/// assert!(tonnage::machine().flops > 0.0);
/// ```
pub fn machine() -> Machine {
    Context::current().local::<Loaded>().0.get_or_init(|| match file::load() {
        Ok(Some(machine)) => in_use::set_machine(machine),
        Ok(None) => {}
        Err(why) => notices::give(&Notice::Calibration { why }),
    });
    in_use::machine()
}

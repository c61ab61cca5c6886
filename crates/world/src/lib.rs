//! Several processes that work together, on one machine or on many: the ranks that `mpirun` started, and the MPI library that moves bytes between
//! them.
//!
//! Nothing of MPI is needed to build or to run: the library is loaded when a job of several ranks [joins](join). A process that nobody
//! started as a rank is a world of its own.
//!
//! `launcher` knows whether this process is a rank of a job, `search` which files an MPI library may be, `mpi` loads one and calls it,
//! `engine` is what ops see of it. MPI is loaded on Linux with the GNU C library, which is where it was tried.
//!
//! Decision: `docs/decisions/mpi-is-loaded-at-run-time.md`.

mod launcher;

#[cfg(all(target_os = "linux", target_env = "gnu", target_endian = "little"))]
mod engine;
#[cfg(all(target_os = "linux", target_env = "gnu", target_endian = "little"))]
mod mpi;
#[cfg(all(target_os = "linux", target_env = "gnu", target_endian = "little"))]
mod search;
#[cfg(all(target_os = "linux", target_env = "gnu", target_endian = "little"))]
use engine as system;

#[cfg(not(all(target_os = "linux", target_env = "gnu", target_endian = "little")))]
mod system {
    //! A system where MPI is not loaded.

    use tonnage_core::{Result, World};

    /// A process that was started as a rank has no engine; any other is alone.
    pub fn world(started: Option<Option<usize>>) -> Result<World> {
        match started {
            None => Ok(World::alone()),
            Some(_) => {
                let what = "a launcher started this process as a rank, and MPI is not loaded here";
                let help = "use Linux with the GNU C library, or start one process";
                Err(super::no_engine(what.into(), help))
            }
        }
    }

    /// There is no library.
    pub fn find() -> std::result::Result<super::Found, Vec<String>> {
        Err(Vec::new())
    }
}

use std::path::PathBuf;
use std::sync::{Mutex, OnceLock, PoisonError};

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, Result};
pub use tonnage_core::{Engine, World};

/// The world of this process, once it has joined, and what its engine took of memory then: MPI is initialized once.
static JOINED: Mutex<Option<(World, Bytes)>> = Mutex::new(None);

/// What says that a rank that waits was interrupted.
static INTERRUPT: OnceLock<fn() -> bool> = OnceLock::new();

/// Lets a rank that waits for others ask now and then whether it was interrupted, as by Ctrl-C: where the answer is yes, all ranks end. The first question stays.
pub fn set_interrupt(is_interrupted: fn() -> bool) {
    let _ = INTERRUPT.set(is_interrupted);
}

/// The ranks of the job that this process belongs to, or a world of one rank where nobody started it as one of several. All ranks call this at the same
/// place; calling it again gives the same world.
///
/// MPI that is initialized already, by `mpi4py` for example, is shared. Otherwise it is initialized here, and ends with the process: where a rank
/// ends with a status that is not 0, all end.
///
/// ```
/// let world = tonnage_world::join()?;
/// assert_eq!((world.rank(), world.size()), (0, 1)); // nobody started this example by `mpirun`
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// Where a launcher started this process as one of several, and no MPI library is found, or one of another MPI than the launcher's.
pub fn join() -> Result<World> {
    let mut joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((world, _)) = joined.as_ref() {
        return Ok(world.clone());
    }
    let before = resident();
    let world = system::world(launcher::started())?;
    // Connections and shared pages are there once each rank has heard of every other.
    world.must(world.engine().barrier("join"));
    let taken = match world.size() {
        1 => Bytes::ZERO,
        _ => resident().saturating_sub(before),
    };
    *joined = Some((world.clone(), taken));
    Ok(world)
}

/// What the engine took of this process when it joined: resident memory that no plan knows, beside what a step takes. Nothing of one rank.
///
/// ```
/// tonnage_world::join()?;
/// assert!(tonnage_world::engine_memory().is_zero()); // one rank
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub fn engine_memory() -> Bytes {
    let joined = JOINED.lock().unwrap_or_else(PoisonError::into_inner);
    joined.as_ref().map_or(Bytes::ZERO, |(_, taken)| *taken)
}

/// Memory of this process that is resident, as Linux tells it.
fn resident() -> Bytes {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok());
    Bytes::new(kilobytes.unwrap_or(0) << 10)
}

/// An MPI library of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Its file.
    pub file: PathBuf,
    /// What it says of itself.
    pub version: String,
    /// Whose handles it takes: `Open MPI`, `MPICH`, or `the standard ABI`.
    pub handles: &'static str,
}

/// The MPI library that [`join`] would use, or the names that it was looked for under. It is loaded, and not initialized.
pub fn find() -> std::result::Result<Found, Vec<String>> {
    system::find()
}

/// How many ranks the launcher of this process started: one where there is none, and `None` where it does not say.
pub fn started_ranks() -> Option<usize> {
    launcher::started().unwrap_or(Some(1))
}

fn no_engine(what: String, help: &str) -> Error {
    bad_argument("join", what, help)
}

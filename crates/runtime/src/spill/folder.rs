//! Where spill files are, what they are called, and the removal of those whose process is gone.
//!
//! A name holds the number of its process and when that process started, so no two processes make the same one. A
//! living process holds a lock on each of its files. A file goes if its process is gone *and* nobody holds its lock:
//! the first alone would remove files of another container that shares the folder, the second alone those that were
//! just made and are about to be locked.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use tonnage_core::{ErrorKind, Result};

const PREFIX: &str = "tonnage-";
const SUFFIX: &str = ".spill";

#[derive(Default)]
struct Chosen {
    folder: Option<PathBuf>,
    /// Folders that were cleared by this process.
    cleared: Vec<PathBuf>,
}

static CHOSEN: Mutex<Chosen> = Mutex::new(Chosen { folder: None, cleared: Vec::new() });

/// Spill files are made in that folder from here on.
pub fn set_folder(path: impl Into<PathBuf>) {
    CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).folder = Some(path.into());
}

/// Where spill files are made: what was set, or the environment's `TONNAGE_SPILL_DIR`, or the system's folder for
/// what does not last.
pub fn folder() -> PathBuf {
    let set = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner).folder.clone();
    set.or_else(|| std::env::var_os("TONNAGE_SPILL_DIR").filter(|s| !s.is_empty()).map(Into::into))
        .unwrap_or_else(std::env::temp_dir)
}

/// A new file in the folder, which this process alone has open and locked. Clears the folder at its first use.
pub(super) fn create() -> Result<(File, PathBuf)> {
    let folder = folder();
    let first = {
        let mut chosen = CHOSEN.lock().unwrap_or_else(PoisonError::into_inner);
        let first = !chosen.cleared.contains(&folder);
        if first {
            chosen.cleared.push(folder.clone());
        }
        first
    };
    if first {
        clear(&folder);
    }
    static NEXT: AtomicU64 = AtomicU64::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (process, start) = (std::process::id(), started());
        let path = folder.join(format!("{PREFIX}{process}-{start}-{number}{SUFFIX}"));
        match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
            Ok(file) => match file.try_lock() {
                // Somebody who clears the folder was quicker: another name.
                Err(TryLockError::WouldBlock) => {}
                // A file system without locks has the process's number to go by.
                Ok(()) | Err(TryLockError::Error(_)) => return Ok((file, path)),
            },
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => {
                let what = format!("no file can be made in the folder ({e})");
                let help = "choose one that can be written with memory::set_spill_folder or \
                            TONNAGE_SPILL_DIR, or forbid spilling with no_spill";
                let path = folder.display().to_string();
                return Err(ErrorKind::Spill { what, path, help: help.into() }.into());
            }
        }
    }
}

/// The same, without a name on unix: it goes with the process however that ends. Elsewhere the next process that spills clears it.
pub(super) fn nameless() -> Result<(File, PathBuf)> {
    let (file, path) = create()?;
    if cfg!(unix) {
        // Where that fails it is a file with a name, as elsewhere.
        let _ = fs::remove_file(&path);
    }
    Ok((file, path))
}

/// Removes files whose process is gone. What cannot be removed stays: it is in nobody's way.
fn clear(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.flatten().map(|entry| entry.path()) {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let Some((process, start)) = owner(name) else { continue };
        if is_alive(process, start) {
            continue;
        }
        let Ok(file) = OpenOptions::new().read(true).write(true).open(&path) else { continue };
        match file.try_lock() {
            // Not while it is open: some systems refuse that.
            Ok(()) => {
                drop(file);
                let _ = fs::remove_file(&path);
            }
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => {}
        }
    }
}

/// The process that a file belongs to, and when it started.
fn owner(name: &str) -> Option<(u32, u64)> {
    let inner = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let mut parts = inner.split('-');
    let (process, start, _) = (parts.next()?, parts.next()?, parts.next()?);
    Some((process.parse().ok()?, start.parse().ok()?))
}

/// Whether a process of that number lives that started then; where the system does not tell, the lock alone decides.
fn is_alive(process: u32, start: u64) -> bool {
    match process == std::process::id() {
        true => start == started(),
        false => start_of(process) == Some(start),
    }
}

/// When this process started: as the system counts, or when it first asked.
fn started() -> u64 {
    static STARTED: OnceLock<u64> = OnceLock::new();
    *STARTED.get_or_init(|| {
        let now =
            || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
        start_of(std::process::id()).unwrap_or_else(now)
    })
}

/// When a living process started, in the system's ticks since it was switched on.
#[cfg(target_os = "linux")]
fn start_of(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name, in brackets, may hold anything. Behind it come the state, which is Z of one that has ended and
    // whose parent has not asked yet, and at the 20th place the start.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    match fields.next()? {
        "Z" | "X" => None,
        _ => fields.nth(18)?.parse().ok(),
    }
}

#[cfg(not(target_os = "linux"))]
fn start_of(_: u32) -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, b"spilled").unwrap();
        path
    }

    #[test]
    fn only_files_of_processes_that_are_gone_are_cleared() {
        let folder = std::env::temp_dir().join(format!("tonnage-clear-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (own, start) = (std::process::id(), started());
        let gone = touch(&folder, &format!("tonnage-{own}-{}-0.spill", start ^ 1));
        let mine = touch(&folder, &format!("tonnage-{own}-{start}-0.spill"));
        let other = touch(&folder, "tonnage-notes.txt");
        // Gone as far as this process can see, but somebody holds it.
        let held = touch(&folder, &format!("tonnage-{own}-{}-1.spill", start ^ 1));
        let lock = File::open(&held).unwrap();
        lock.try_lock().unwrap();
        clear(&folder);
        assert!(!gone.exists());
        assert!(mine.exists() && other.exists() && held.exists());
        drop(lock);
        clear(&folder);
        assert!(!held.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_tell_whose_files_they_are() {
        assert_eq!(owner("tonnage-12-345-6.spill"), Some((12, 345)));
        for other in ["tonnage-12-345.spill", "tonnage-a-1-2.spill", "x.spill", "tonnage-.spill"] {
            assert_eq!(owner(other), None, "{other}");
        }
    }
}

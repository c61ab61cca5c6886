//! Files that belong to a process, and the removal of those whose process is gone.
//!
//! A name holds the number of its process and when that process started, so no two processes make the same one. A
//! living process holds a lock on each of its files. A file goes if its process is gone *and* nobody holds its lock:
//! the first alone would remove files of another container that shares the folder, the second alone those that were
//! just made and are about to be locked.

use std::collections::HashSet;
use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

/// A process, told apart from later ones of the same number by when it started. As text it is `number-start`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Process {
    pub number: u32,
    start: u64,
}

impl Process {
    /// This process.
    pub fn own() -> Process {
        Process { number: std::process::id(), start: started() }
    }

    /// Whether it still runs; where the system does not tell, it counts as gone.
    pub fn is_alive(self) -> bool {
        match self.number == std::process::id() {
            true => self.start == started(),
            false => start_of(self.number) == Some(self.start),
        }
    }
}

impl fmt::Display for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.number, self.start)
    }
}

impl FromStr for Process {
    type Err = ();

    fn from_str(text: &str) -> Result<Process, ()> {
        let (number, start) = text.split_once('-').ok_or(())?;
        Ok(Process { number: number.parse().map_err(drop)?, start: start.parse().map_err(drop)? })
    }
}

/// A kind of files that belong to processes, by how their names begin and end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct OwnFiles {
    /// How names begin.
    pub prefix: &'static str,
    /// How names end.
    pub suffix: &'static str,
}

impl OwnFiles {
    /// A new file in a folder, which this process alone has open and locked. The first use of a folder removes what
    /// processes left there that are gone.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn create(self, folder: &Path) -> io::Result<(File, PathBuf)> {
        if self.is_first_use(folder) {
            self.clear(folder);
        }
        static NEXT: AtomicU64 = AtomicU64::new(0);
        loop {
            let number = NEXT.fetch_add(1, Ordering::Relaxed);
            let OwnFiles { prefix, suffix } = self;
            let path = folder.join(format!("{prefix}{}-{number}{suffix}", Process::own()));
            match OpenOptions::new().read(true).write(true).create_new(true).open(&path) {
                Ok(file) => match file.try_lock() {
                    // Somebody who clears the folder was quicker: another name.
                    Err(TryLockError::WouldBlock) => {}
                    // A file system without locks has the process's number to go by.
                    Ok(()) | Err(TryLockError::Error(_)) => return Ok((file, path)),
                },
                Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(e),
            }
        }
    }

    /// Whether this process makes its first file of the kind in a folder.
    fn is_first_use(self, folder: &Path) -> bool {
        /// A folder that is forgotten is looked through once more, which harms nothing.
        const MOST: usize = 1024;
        static USED: Mutex<Option<HashSet<(OwnFiles, PathBuf)>>> = Mutex::new(None);
        let mut used = USED.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.get_or_insert_default();
        if used.len() >= MOST {
            used.clear();
        }
        used.insert((self, folder.into()))
    }

    /// Removes files whose process is gone. What cannot be removed stays: it is in nobody's way.
    fn clear(self, folder: &Path) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if self.owner(name).is_none_or(Process::is_alive) {
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

    /// The process that a file belongs to.
    fn owner(self, name: &str) -> Option<Process> {
        let inner = name.strip_prefix(self.prefix)?.strip_suffix(self.suffix)?;
        let (process, number) = inner.rsplit_once('-')?;
        number.parse::<u64>().ok()?;
        process.parse().ok()
    }
}

/// When this process started: as the system counts, or when it first asked.
fn started() -> u64 {
    static STARTED: OnceLock<(u32, u64)> = OnceLock::new();
    let now = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_nanos() as u64);
    let ask = || start_of(std::process::id()).unwrap_or_else(now);
    let (number, start) = *STARTED.get_or_init(|| (std::process::id(), ask()));
    // A fork has its parent's answer.
    if number == std::process::id() { start } else { ask() }
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

    const SPILL: OwnFiles = OwnFiles { prefix: "tonnage-", suffix: ".spill" };

    fn touch(folder: &Path, name: &str) -> PathBuf {
        let path = folder.join(name);
        fs::write(&path, b"left").unwrap();
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
        SPILL.clear(&folder);
        assert!(!gone.exists());
        assert!(mine.exists() && other.exists() && held.exists());
        drop(lock);
        SPILL.clear(&folder);
        assert!(!held.exists());
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn names_tell_whose_files_they_are() {
        assert_eq!(SPILL.owner("tonnage-12-345-6.spill"), Some(Process { number: 12, start: 345 }));
        for other in ["tonnage-12-345.spill", "tonnage-a-1-2.spill", "x.spill", "tonnage-.spill"] {
            assert_eq!(SPILL.owner(other), None, "{other}");
        }
    }
}

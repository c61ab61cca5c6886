//! Folders that one process at a time writes to.
//!
//! The lock is a file in the folder, locked by the system and naming its holder. The system gives the lock back however
//! the process ends, so that a `kill -9` leaves a file that holds nobody up.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use tonnage_core::{Error, ErrorKind, Result};

use crate::process::Process;

/// What the file is called.
const NAME: &str = "tonnage.lock";

/// How often a lock that is held is looked at for the name of its holder, a millisecond apart.
const LOOKS: u32 = 100;

/// Folders that this process holds. A fork of it finds them here too, and they are not its own.
static HELD: Mutex<Vec<Weak<FolderLock>>> = Mutex::new(Vec::new());

/// A folder that this process alone writes to, while this lives. All who ask for it in one process share it.
///
/// ```
/// use tonnage_runtime::FolderLock;
/// let folder = std::env::temp_dir().join(format!("mine-{}", std::process::id()));
/// std::fs::create_dir(&folder).unwrap();
/// let held = FolderLock::take(&folder)?;
/// let again = FolderLock::take(&folder)?;
/// drop((held, again));
/// assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
/// # std::fs::remove_dir(&folder).unwrap();
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct FolderLock {
    folder: PathBuf,
    holder: Process,
    /// Open for as long as the folder is held.
    _file: File,
    turn: Mutex<()>,
}

impl FolderLock {
    /// Takes a folder that is there.
    ///
    /// # Errors
    /// Where another process holds it, which the error names; or it cannot be written.
    pub fn take(folder: &Path) -> Result<Arc<FolderLock>> {
        let folder = fs::canonicalize(folder).map_err(|e| failed(folder, &e))?;
        let own = Process::own();
        let mut held = HELD.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|lock| lock.strong_count() > 0);
        let mut all = held.iter().filter_map(Weak::upgrade);
        if let Some(lock) = all.find(|lock| lock.folder == folder && lock.holder == own) {
            return Ok(lock);
        }
        let file = locked(&folder, own)?;
        let lock =
            Arc::new(FolderLock { folder, holder: own, _file: file, turn: Mutex::default() });
        held.push(Arc::downgrade(&lock));
        Ok(lock)
    }

    /// Held by the one thread of this process that changes the folder.
    ///
    /// # Errors
    /// In a fork of the process that took the lock: it is not the fork's.
    pub fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        match self.holder == Process::own() {
            true => Ok(self.turn.lock().unwrap_or_else(PoisonError::into_inner)),
            false => Err(in_use(&self.folder, Some(self.holder))),
        }
    }
}

impl Drop for FolderLock {
    fn drop(&mut self) {
        // Elsewhere a file that is open cannot go. One that stays holds nobody up.
        if cfg!(unix) && self.holder == Process::own() {
            let _ = fs::remove_file(self.folder.join(NAME));
        }
    }
}

/// The locked file of a folder, with the holder's name in it.
fn locked(folder: &Path, own: Process) -> Result<File> {
    let path = folder.join(NAME);
    let mut looks = 0;
    loop {
        let open =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(&path);
        let mut file = open.map_err(|e| failed(&path, &e))?;
        match file.try_lock() {
            Ok(()) if is_there(&file, &path) => {
                return named(file, own).map_err(|e| failed(&path, &e));
            }
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => match holder(&mut file) {
                // Another thread of this process gives it back right now.
                Some(holder) if holder == own => std::thread::yield_now(),
                // It has the lock and is about to write its name.
                None if looks < LOOKS => {
                    looks += 1;
                    std::thread::sleep(Duration::from_millis(1));
                }
                holder => return Err(in_use(folder, holder)),
            },
            // A file system without locks has the name in the file to go by.
            Err(TryLockError::Error(_)) => {
                return match holder(&mut file).filter(|other| other.is_alive()) {
                    Some(other) => Err(in_use(folder, Some(other))),
                    None => named(file, own).map_err(|e| failed(&path, &e)),
                };
            }
        }
    }
}

/// A lock file with the name of its holder in it.
fn named(mut file: File, own: Process) -> std::io::Result<File> {
    file.set_len(0)?;
    file.seek(SeekFrom::Start(0))?;
    writeln!(file, "{own}")?;
    Ok(file)
}

/// Whether a file still has its name: the holder before may have removed it between opening and locking.
#[cfg(unix)]
fn is_there(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let of = |found: fs::Metadata| (found.dev(), found.ino());
    match (file.metadata(), fs::metadata(path)) {
        (Ok(own), Ok(there)) => of(own) == of(there),
        _ => false,
    }
}

#[cfg(not(unix))]
fn is_there(_: &File, _: &Path) -> bool {
    true
}

/// The process that a lock file names; none where it has not come to write its name.
fn holder(file: &mut File) -> Option<Process> {
    let mut text = String::new();
    file.take(64).read_to_string(&mut text).ok()?;
    text.trim().parse().ok()
}

fn in_use(folder: &Path, holder: Option<Process>) -> Error {
    let by = holder.map_or("another process".into(), |holder| format!("process {}", holder.number));
    let what = format!("is written to by {by}, and takes one at a time");
    let help = "choose another folder, or wait until that process has ended".to_string();
    ErrorKind::BadFile { path: folder.display().to_string(), what, help }.into()
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let what = format!("cannot be locked ({error})");
    let help = "choose a folder that you may write to".to_string();
    ErrorKind::BadFile { path: path.display().to_string(), what, help }.into()
}

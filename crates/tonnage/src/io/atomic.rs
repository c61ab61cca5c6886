//! Files that appear whole or not at all.
//!
//! They are written under a name of this process's own beside the one that they will have. A process that is killed leaves such a file; the
//! next one that writes into the folder removes it.

use std::fs::{self, File};
use std::io::{BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use tonnage_core::Result;
use tonnage_runtime::OwnFiles;
use tonnage_runtime::system::open_to_write;

use super::{bad_file, failed};

/// Saves a text, atomically: whoever reads it, also after a crash or a `kill -9` at any moment, finds the old one or the new
/// one.
///
/// ```
/// use tonnage::io::save_text;
/// let path = std::env::temp_dir().join(format!("notes-{}", std::process::id()));
/// save_text(&path, "whole")?;
/// assert_eq!(std::fs::read_to_string(&path).unwrap(), "whole");
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn save_text(path: impl AsRef<Path>, text: &str) -> Result<()> {
    save_bytes(path, text.as_bytes())
}

/// Saves bytes in the same way.
pub fn save_bytes(path: impl AsRef<Path>, bytes: &[u8]) -> Result<()> {
    let path = path.as_ref();
    write_atomically(path, |file| file.write_all(bytes).map_err(|e| failed(path, "written", &e)))
}

/// Whether a file could be saved under a name, for a program that will have something to save after a long time.
///
/// ```
/// use tonnage::io::can_save;
/// let folder = std::env::temp_dir();
/// assert!(can_save(folder.join("report.json")).is_ok());
/// assert!(can_save(folder.join("nowhere").join("report.json")).is_err());
/// assert!(can_save(folder).is_err());
/// ```
///
/// # Errors
/// Where it could not: there is a folder of that name, or no file can be made beside it.
pub fn can_save(path: impl AsRef<Path>) -> Result<()> {
    let path = path.as_ref();
    match write_target(path) {
        WriteTarget::As(_) if path.is_dir() => {
            Err(bad_file(path, "cannot be opened: it is a folder", "name a file in it"))
        }
        WriteTarget::As(_) => Ok(()),
        WriteTarget::File(path) => begin(&path).map(drop),
    }
}

/// Files that are not whole yet. Names do not grow with those that the files will have, which may be as long as the system allows.
const PARTS: OwnFiles = OwnFiles { prefix: ".tonnage-", suffix: ".part" };

/// Where a file is written to: some formats seek back to fill in what they know later.
pub(super) trait WriteSeek: Write + Seek {}

impl<T: Write + Seek> WriteSeek for T {}

/// Writes a file that appears under its name when it is whole and on the disk. What is there and is no file is written to as it is.
pub(super) fn write_atomically(
    path: &Path,
    write: impl FnOnce(&mut dyn WriteSeek) -> Result<()>,
) -> Result<()> {
    let path = match write_target(path) {
        WriteTarget::As(path) => return write_through(path, write),
        WriteTarget::File(path) => path,
    };
    let (path, (file, beside)) = (path.as_path(), begin(&path)?);
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    write(&mut writer)?;
    let file = writer.into_inner().map_err(|e| failed(path, "written", e.error()))?;
    file.sync_all().map_err(|e| failed(path, "written", &e))?;
    fs::rename(&beside.0, path).map_err(|e| failed(path, "put in place", &e))?;
    // The name is on the disk when the folder is; where a folder cannot be opened as a file, the system sees to it.
    if let Ok(folder) = File::open(folder(path)) {
        let _ = folder.sync_all();
    }
    Ok(())
}

/// Where something is written that has a name.
enum WriteTarget<'p> {
    /// To what is there as it is.
    As(&'p Path),
    /// To a file of that name, which replaces the one that is there.
    File(PathBuf),
}

fn write_target(path: &Path) -> WriteTarget<'_> {
    let is_link = fs::symlink_metadata(path).is_ok_and(|there| there.is_symlink());
    let is_other = fs::metadata(path).is_ok_and(|there| !there.is_file());
    if is_other || (is_link && path.starts_with("/dev")) {
        return WriteTarget::As(path);
    }
    // What a link leads to is written, and the link stays.
    let followed = if is_link { fs::canonicalize(path).ok() } else { None };
    WriteTarget::File(followed.unwrap_or_else(|| path.into()))
}

/// A new file beside the one that it will replace.
fn begin(path: &Path) -> Result<(File, PartialFile)> {
    let (file, beside) = PARTS.create(folder(path)).map_err(|e| failed(path, "made", &e))?;
    Ok((file, PartialFile(beside)))
}

/// The folder that a file is in.
fn folder(path: &Path) -> &Path {
    path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Writes to what is no file, and to `/dev/stdout`, which may be one: a file of that name must not put it out of its place.
fn write_through(path: &Path, write: impl FnOnce(&mut dyn WriteSeek) -> Result<()>) -> Result<()> {
    let mut file = open_to_write(path).map_err(|e| failed(path, "opened", &e))?;
    // Behind what was printed already; pipes have no places.
    let _ = file.seek(SeekFrom::End(0));
    let mut writer = BufWriter::with_capacity(1 << 20, file);
    write(&mut writer)?;
    writer.flush().map_err(|e| failed(path, "written", &e))
}

/// A file that is not whole yet, gone when this is dropped.
struct PartialFile(PathBuf);

impl Drop for PartialFile {
    fn drop(&mut self) {
        // It is not there any more where everything went well.
        let _ = fs::remove_file(&self.0);
    }
}

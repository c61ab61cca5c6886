//! Files that are opened to be read. What is no file is refused before it is opened: a pipe that nobody writes to would wait for ever, and
//! a device may never end.

use std::fs::{self, File, FileType};
use std::io::Read;
use std::path::Path;

use tonnage_core::Result;

use super::{bad_file, failed};

/// Opens a file that can be read at any place; and its length.
pub(super) fn open_file(path: &Path) -> Result<(File, u64)> {
    opened(path, |_| false)
}

/// Reads a file from beginning to end.
///
/// ```
/// use tonnage::io::{read_bytes, save_bytes};
/// let path = std::env::temp_dir().join(format!("bytes-{}", std::process::id()));
/// save_bytes(&path, &[1, 2, 3])?;
/// assert_eq!(read_bytes(&path)?, [1, 2, 3]);
/// assert!(read_bytes(std::env::temp_dir()).unwrap_err().to_string().contains("is a folder"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where it is not there, or is no file. A pipe that the process was started with (`/dev/stdin`, a shell's `<(...)`) is one here.
pub fn read_bytes(path: impl AsRef<Path>) -> Result<Vec<u8>> {
    let path = path.as_ref();
    let is_given = path.starts_with("/dev") || path.starts_with("/proc/self/fd");
    let (mut file, length) = opened(path, |kind| is_given && is_pipe(kind))?;
    let mut bytes = Vec::new();
    let room = usize::try_from(length).unwrap_or(usize::MAX);
    bytes.try_reserve(room).map_err(|e| failed(path, "read", &e.into()))?;
    file.read_to_end(&mut bytes).map_err(|e| failed(path, "read", &e))?;
    Ok(bytes)
}

/// Reads a text in the same way.
///
/// # Errors
/// As [`read_bytes`] has them, and where it is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> Result<String> {
    let path = path.as_ref();
    String::from_utf8(read_bytes(path)?).map_err(|e| {
        let what = format!("is no text: byte {} is not UTF-8", e.utf8_error().valid_up_to());
        bad_file(path, what, "save it as UTF-8")
    })
}

fn opened(path: &Path, also: impl Fn(FileType) -> bool) -> Result<(File, u64)> {
    let refused = |kind: FileType| match kind.is_file() || also(kind) {
        true => None,
        false => Some(bad_file(path, format!("is {}", called(kind)), "name a file")),
    };
    let found = fs::metadata(path).map_err(|e| failed(path, "opened", &e))?;
    if let Some(error) = refused(found.file_type()) {
        return Err(error);
    }
    let file = File::open(path).map_err(|e| failed(path, "opened", &e))?;
    let found = file.metadata().map_err(|e| failed(path, "read", &e))?;
    // Another may have come to its place in between.
    match refused(found.file_type()) {
        Some(error) => Err(error),
        None => Ok((file, found.len())),
    }
}

#[cfg(unix)]
fn is_pipe(kind: FileType) -> bool {
    std::os::unix::fs::FileTypeExt::is_fifo(&kind)
}

#[cfg(not(unix))]
fn is_pipe(_: FileType) -> bool {
    false
}

/// What people call what is no file.
#[cfg(unix)]
fn called(kind: FileType) -> &'static str {
    use std::os::unix::fs::FileTypeExt;
    match () {
        () if kind.is_dir() => "a folder",
        () if kind.is_fifo() => "a pipe",
        () if kind.is_socket() => "a socket",
        () => "a device",
    }
}

#[cfg(not(unix))]
fn called(kind: FileType) -> &'static str {
    if kind.is_dir() { "a folder" } else { "a device" }
}

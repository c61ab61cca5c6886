//! Room on a disk, taken before anything is written; and what the system is told of files.
//!
//! Decision: `docs/decisions/products-stage-files.md`.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

/// Makes a file that long and has the file system set the room aside, so that a full disk shows now. Where a
/// file system cannot, the file is only made that long.
pub(crate) fn reserve(file: &File, len: u64) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(answer) = allocate(file, len) {
        return answer;
    }
    file.set_len(len)
}

/// `None` where the file system does not know how.
#[cfg(target_os = "linux")]
fn allocate(file: &File, len: u64) -> Option<io::Result<()>> {
    use std::os::fd::AsRawFd;
    let Ok(len) = libc::off64_t::try_from(len) else {
        return Some(Err(io::Error::from(io::ErrorKind::FileTooLarge)));
    };
    loop {
        // SAFETY: the descriptor is that of a file that is open for the whole call.
        if unsafe { libc::fallocate64(file.as_raw_fd(), 0, 0, len) } == 0 {
            return Some(Ok(()));
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EINTR) => {}
            Some(libc::EOPNOTSUPP | libc::ENOSYS) => return None,
            _ => return Some(Err(error)),
        }
    }
}

/// Opens what is there to write to it. A pipe that nobody reads is an error: opening it would wait for a reader.
#[cfg(unix)]
pub fn open_to_write(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{FileTypeExt, OpenOptionsExt};
    let mut options = OpenOptions::new();
    options.write(true);
    let is_pipe = std::fs::metadata(path)?.file_type().is_fifo();
    // Held until the file is open: it says at once whether there is a reader.
    let _asks =
        match is_pipe {
            true => Some(options.clone().custom_flags(libc::O_NONBLOCK).open(path).map_err(
                |error| match error.raw_os_error() {
                    Some(libc::ENXIO) => io::Error::other("it is a pipe that nobody reads"),
                    _ => error,
                },
            )?),
            false => None,
        };
    options.open(path)
}

/// Opens what is there to write to it.
#[cfg(not(unix))]
pub fn open_to_write(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).open(path)
}

/// Fills a slice with what lies there; several threads read at once.
#[cfg(unix)]
pub fn read_at(file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, into, at)
}

/// Puts bytes there; several threads write at once.
#[cfg(unix)]
pub(crate) fn write_at(file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, at)
}

/// A file has one place that it is at: one thread after the other.
#[cfg(not(unix))]
static PLACE: std::sync::Mutex<()> = std::sync::Mutex::new(());

/// Fills a slice with what lies there.
#[cfg(not(unix))]
pub fn read_at(mut file: &File, at: u64, into: &mut [u8]) -> io::Result<()> {
    use std::io::{Read, Seek};
    let _alone = PLACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    file.seek(io::SeekFrom::Start(at)).and_then(|_| file.read_exact(into))
}

/// Puts bytes there.
#[cfg(not(unix))]
pub(crate) fn write_at(mut file: &File, at: u64, bytes: &[u8]) -> io::Result<()> {
    use std::io::{Seek, Write};
    let _alone = PLACE.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    file.seek(io::SeekFrom::Start(at)).and_then(|_| file.write_all(bytes))
}

/// Tells the system that these bytes of a file are read next, so that it may bring them while others are computed
/// with. What is there already costs next to nothing. Elsewhere than on Linux nothing is told: systems read ahead of
/// whoever reads in order by themselves.
pub fn read_ahead(file: &File, at: u64, len: u64) {
    #[cfg(target_os = "linux")]
    {
        use std::os::fd::AsRawFd;
        /// The system takes no more of one call than a disk takes of one request.
        const AT_ONCE: u64 = 1 << 20;
        /// No more than this is brought before it is asked for.
        const MOST: u64 = 16 << 20;
        let Ok(end) = libc::off64_t::try_from(at.saturating_add(len.min(MOST))) else { return };
        let mut at = at as libc::off64_t;
        while at < end {
            let len = (end - at).min(AT_ONCE as libc::off64_t);
            // SAFETY: the descriptor is that of a file that is open for the whole call; advice, whose answer does not matter.
            unsafe { libc::posix_fadvise64(file.as_raw_fd(), at, len, libc::POSIX_FADV_WILLNEED) };
            at += len;
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = (file, at, len);
}

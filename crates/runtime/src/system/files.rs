//! Room on a disk, taken before anything is written.

use std::fs::File;
use std::io;

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

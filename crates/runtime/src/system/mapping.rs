//! Files that the system shows as memory. What of them is resident is the system's choice, so none of it is in the ledger.
//!
//! Decision: `docs/decisions/mapping-is-opt-in.md`.
#![allow(unsafe_code, reason = "calls the system's mmap, munmap and madvise")]

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{self, NonNull};

/// A file as memory, to be read.
///
/// Whoever maps a file sees to it that nobody changes it meanwhile: bytes that another process writes may show at any
/// time, and a file that is cut short ends the process where it is read.
#[derive(Debug)]
pub struct Mapping {
    at: NonNull<u8>,
    len: usize,
}

// SAFETY: the pages are only read.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// The first bytes of a file.
    ///
    /// # Errors
    /// Where there are none, or the system cannot show the file as memory.
    pub fn of(file: &File, len: usize) -> io::Result<Mapping> {
        // SAFETY: a new mapping at an address of the system's choice touches nothing that exists; the descriptor is open.
        let at = unsafe {
            libc::mmap(ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0)
        };
        match NonNull::new(at.cast::<u8>()) {
            Some(at) if at.as_ptr().cast() != libc::MAP_FAILED => Ok(Mapping { at, len }),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Its bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: that many bytes are mapped for as long as this lives, and never written through it.
        unsafe { std::slice::from_raw_parts(self.at.as_ptr(), self.len) }
    }

    /// Lets the system take the pages back; whoever reads them again finds them as they are in the file.
    pub fn release(&self) {
        // SAFETY: advice on our own mapping; of a file's pages nothing is lost, and the answer does not matter.
        unsafe { libc::madvise(self.at.as_ptr().cast(), self.len, libc::MADV_DONTNEED) };
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nobody borrows from it any more.
        unsafe { libc::munmap(self.at.as_ptr().cast(), self.len) };
    }
}

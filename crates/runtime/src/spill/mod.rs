//! Spill files: where a planned call puts values that its budget has no room for, and takes them back from.
//!
//! A call that spills makes one file, as long as its plan says, and removes it when it ends. `folder` says where, and
//! clears what processes left that are gone; `file` is the file with a checksum for every value; `lane` is the thread
//! that writes and reads beside the kernels.
//!
//! The invariant: a value that is read back is the one that was written, or the call fails, before any variable is
//! written.

mod file;
mod folder;
mod lane;
mod sum;

pub use file::SpillFile;
pub use folder::{folder, set_folder};
pub use lane::DiskLane;

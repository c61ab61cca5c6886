//! Spill files: where a planned call puts values that its budget has no room for, and takes them back from.
//!
//! A call that spills makes one file, as long as its plan says, and removes it when it ends. `folder` says where;
//! `file` is the file with a checksum for every value; `lane` is the thread that writes and reads beside the kernels.
//!
//! Values that outlive their call are [`FileValue`] in one file a process, in `ranges` of it; ops read them a tile at
//! a time, as they read a user's files (`file_pass` gathers small reads).
//!
//! The invariant: a value that is read back is the one that was written, or the call fails, before any variable is
//! written.
//!
//! Decision: `docs/decisions/spill-files-are-named.md`.

mod checksum;
mod file;
mod file_pass;
mod file_value;
mod folder;
mod lane;
mod ranges;

pub use checksum::Checksum;
pub use file::SpillFile;
pub use file_pass::FilePass;
pub use file_value::FileValue;
pub use folder::{folder, set_folder};
pub use lane::DiskLane;
pub(crate) use ranges::Ranges;

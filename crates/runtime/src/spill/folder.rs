//! Where spill files are, and what they are called: each belongs to its process ([`OwnFiles`]).

use std::fs::{self, File};
use std::path::PathBuf;

use tonnage_core::{ErrorKind, Result};

use crate::context::Context;
use crate::process::OwnFiles;

const FILES: OwnFiles = OwnFiles { prefix: "tonnage-", suffix: ".spill" };

/// Spill files are made in that folder from here on.
pub fn set_folder(path: impl Into<PathBuf>) {
    *Context::current().spill_folder() = Some(path.into());
}

/// Where spill files are made: what was set, or the environment's `TONNAGE_SPILL_DIR`, or the system's folder for
/// what does not last.
pub fn folder() -> PathBuf {
    let set = Context::current().spill_folder().clone();
    set.or_else(|| std::env::var_os("TONNAGE_SPILL_DIR").filter(|s| !s.is_empty()).map(Into::into))
        .unwrap_or_else(std::env::temp_dir)
}

/// A new file in the folder, which this process alone has open and locked. Clears the folder at its first use.
pub(super) fn create() -> Result<(File, PathBuf)> {
    let folder = folder();
    FILES.create(&folder).map_err(|e| {
        let what = format!("no file can be made in the folder ({e})");
        let help = "choose one that can be written with memory::set_spill_folder or \
                    TONNAGE_SPILL_DIR, or forbid spilling with no_spill";
        let path = folder.display().to_string();
        ErrorKind::Spill { what, path, help: help.into() }.into()
    })
}

/// The same, without a name on unix: it goes with the process however that ends. Elsewhere the next process that
/// spills clears it.
pub(super) fn nameless() -> Result<(File, PathBuf)> {
    let (file, path) = create()?;
    if cfg!(unix) {
        // Where that fails it is a file with a name, as elsewhere.
        let _ = fs::remove_file(&path);
    }
    Ok((file, path))
}

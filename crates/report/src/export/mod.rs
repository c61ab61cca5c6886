//! A picture for the tools that people know, a format a file.

mod csv;
mod pprof;
mod proto;
mod trace;

pub use csv::csv_row;

use crate::picture::Picture;

impl Picture {
    /// All of it as JSON: the fields of [`Picture`], bytes as numbers.
    pub fn json(&self) -> String {
        // Strings, numbers and lists of them are always JSON.
        serde_json::to_string(self).unwrap_or_default()
    }
}

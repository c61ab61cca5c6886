//! Checksums in files: what is read is what was written, or an error that names the file.
//!
//! A text holds the checksum of itself as digits that count as zeros. Files without a checksum, of other programs and of earlier versions,
//! are read as they are.

use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;
use tonnage_core::{Error, Result};
use tonnage_runtime::spill::Checksum;

use super::{bad_file, read_text, save_text};

/// The digits of a checksum.
pub(super) const DIGITS: usize = 16;

/// What stands for a checksum that is not known yet.
const UNKNOWN: [u8; DIGITS] = [b'0'; DIGITS];

/// How the checksum in a JSON file is called.
const FIELD: &str = "\"checksum\": \"";

/// A checksum as digits.
pub(super) fn digits(sum: u64) -> String {
    format!("{sum:0DIGITS$x}")
}

/// Puts the checksum of all bytes into some of them, which count as zeros.
pub(super) fn seal(bytes: &mut [u8], at: usize) {
    let sum = sum_without(bytes, at);
    bytes[at..at + DIGITS].copy_from_slice(digits(sum).as_bytes());
}

/// Whether bytes are as they were when they were sealed.
pub(super) fn is_sealed(bytes: &[u8], at: usize) -> bool {
    bytes.len() >= at + DIGITS
        && digits(sum_without(bytes, at)).as_bytes() == &bytes[at..at + DIGITS]
}

fn sum_without(bytes: &[u8], at: usize) -> u64 {
    let mut sum = Checksum::default();
    sum.add(&bytes[..at]);
    sum.add(&UNKNOWN);
    sum.add(&bytes[at + DIGITS..]);
    sum.finish()
}

/// Where a text stands in bytes for the last time.
pub(super) fn find_last(bytes: &[u8], text: &str) -> Option<usize> {
    bytes.windows(text.len()).rposition(|window| window == text.as_bytes())
}

/// The error where bytes are not those that were saved.
pub(super) fn damaged(path: &Path, what: &str) -> Error {
    let what = format!("{what} is not as it was saved: the checksum is another");
    bad_file(path, what, "the file is damaged, or was changed by another program; get it again")
}

/// Sums up what is written through it.
pub(super) struct Summed<'a> {
    pub to: &'a mut dyn Write,
    pub sum: Checksum,
}

impl Write for Summed<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.to.write(bytes)?;
        self.sum.add(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.to.flush()
    }
}

/// A value with the checksum of the file that it is in.
#[derive(Serialize)]
struct WithChecksum<'a, T> {
    #[serde(flatten)]
    value: &'a T,
    checksum: &'a str,
}

/// Saves a struct as JSON, atomically, with a checksum.
///
/// ```
/// use std::collections::BTreeMap;
/// use tonnage::io::{read_json, save_json};
/// let path = std::env::temp_dir().join(format!("sizes-{}.json", std::process::id()));
/// let sizes = BTreeMap::from([("width".to_string(), 64)]);
/// save_json(&path, &sizes)?;
/// let text = std::fs::read_to_string(&path).unwrap();
/// assert!(text.contains("\"checksum\""));
/// std::fs::write(&path, text.replace("64", "65")).unwrap();
/// let error = read_json::<serde_json::Value>(&path, "table of sizes").unwrap_err().to_string();
/// assert!(error.contains("checksum"));
/// # std::fs::remove_file(&path).unwrap();
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where it has no fields with names, or the file cannot be written.
pub fn save_json(path: impl AsRef<Path>, value: &impl Serialize) -> Result<()> {
    let path = path.as_ref();
    let unknown = String::from_utf8_lossy(&UNKNOWN);
    let text = serde_json::to_string_pretty(&WithChecksum { value, checksum: &unknown })
        .map_err(|e| bad_file(path, format!("cannot be made ({e})"), "save fields with names"))?;
    let mut bytes = text.into_bytes();
    if let Some(at) = find_last(&bytes, FIELD) {
        seal(&mut bytes, at + FIELD.len());
    }
    save_text(path, &String::from_utf8_lossy(&bytes))
}

/// Reads what [`save_json`] saved: `what`, in a user's words. A file without a checksum is read as it is.
///
/// # Errors
/// Where it is not there, is not as it was saved, or holds something else.
pub fn read_json<T: DeserializeOwned>(path: impl AsRef<Path>, what: &str) -> Result<T> {
    let path = path.as_ref();
    let text = read_text(path)?;
    let wrong = |e| bad_file(path, format!("is no {what} ({e})"), "name another file, or mend it");
    let value = serde_json::from_str(&text).map_err(wrong)?;
    match find_last(text.as_bytes(), FIELD) {
        Some(at) if !is_sealed(text.as_bytes(), at + FIELD.len()) => Err(damaged(path, "it")),
        _ => Ok(value),
    }
}

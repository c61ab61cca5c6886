//! Did a piece of code give back all that it took?

use std::collections::HashMap;
use std::fmt::Write;

use super::{Holder, Ledger, Owner};
use tonnage_core::Bytes;

/// Runs `f` and says which holders it left behind in the ledger, if any. For tests.
///
/// # Errors
/// A text that names each owner that holds more than before, and how much.
pub fn leak_check(ledger: &Ledger, f: impl FnOnce()) -> Result<(), String> {
    let before = ledger.info();
    f();
    let after = ledger.info();
    if before.in_use == after.in_use {
        return Ok(());
    }
    let had: HashMap<&Owner, Bytes> =
        before.holders.iter().map(|holder| (&holder.owner, holder.bytes)).collect();
    let mut text = format!("in use was {} and is {}", before.in_use, after.in_use);
    for Holder { owner, bytes, .. } in &after.holders {
        let had = had.get(owner).copied().unwrap_or(Bytes::ZERO);
        if *bytes > had {
            // Writing into a String cannot fail.
            let _ = write!(text, "; {owner} holds {} more", *bytes - had);
        }
    }
    Err(text)
}

//! Does a step hold as much after it as before? For users' own tests.

use std::collections::HashMap;

use tonnage_core::error::Holder;
use tonnage_core::{Bytes, ErrorKind, Kind, Result, Source};
use tonnage_runtime::{Owner, host_ledger};

/// Runs before anything is compared: the first ones trace, plan and make variables resident.
const FIRST: usize = 3;
/// Runs that are compared.
const RUNS: usize = 5;

/// Runs a step a few times, and then some more: those may leave nothing behind.
///
/// What the first three runs leave is taken as it is: they trace, plan, and make first values of variables and of optimizers. From then on the
/// ledger has to show the same holders with no more bytes, tensors and graphs alike.
///
/// ```
/// use tonnage::{memory, tensor};
/// memory::assert_steady(|| {
///     let x = tensor(vec![1.0f32; 1024])?;
///     (x * 2.0)?.sum_all()?;
///     Ok(())
/// })?;
/// let mut leaked = Vec::new();
/// let error = memory::assert_steady(|| {
///     leaked.push(tensor(vec![1.0f32; 1024])?);
///     Ok(())
/// });
/// let text = error.unwrap_err().to_string();
/// assert!(text.contains("input tensor at") && text.contains("holds 20.00 KiB in 5 more"), "{text}");
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::Grew`], which names what grew, by line and with how much; and whatever the step fails with. Other threads that
/// work meanwhile are seen too: let them wait.
#[track_caller]
pub fn assert_steady(mut step: impl FnMut() -> Result<()>) -> Result<()> {
    let (source, ledger) = (Source::here(), host_ledger());
    for _ in 0..FIRST {
        step()?;
    }
    let before = ledger.info();
    for _ in 0..RUNS {
        step()?;
    }
    let after = ledger.info();
    let had: HashMap<&Owner, (Bytes, usize)> =
        before.holders.iter().map(|h| (&h.owner, (h.bytes, h.buffers))).collect();
    let mut grown: Vec<Holder> = Vec::new();
    for holder in &after.holders {
        let (bytes, buffers) = had.get(&holder.owner).copied().unwrap_or_default();
        // Traces that a step adds grow without end too; a table that doubles once does not.
        let doubled = holder.owner.kind == Kind::Graph && holder.bytes.get() <= 2 * bytes.get();
        if holder.bytes > bytes && !doubled {
            grown.push(Holder {
                kind: holder.owner.kind,
                what: holder.owner.to_string(),
                source: holder.owner.source,
                bytes: holder.bytes - bytes,
                buffers: holder.buffers.saturating_sub(buffers),
            });
        }
    }
    if grown.is_empty() {
        return Ok(());
    }
    grown.sort_by(|a, b| b.bytes.cmp(&a.bytes).then(a.what.cmp(&b.what)));
    let (before, after) = (before.in_use + before.graphs, after.in_use + after.graphs);
    Err(tonnage_core::Error::from(ErrorKind::Grew { runs: RUNS, before, after, grown }).at(source))
}

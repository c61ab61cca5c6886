//! Why are the bytes of this line alive?

use std::collections::HashSet;
use std::fmt;

use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Result, Source};
use tonnage_runtime::host_ledger;
use tonnage_runtime::ledger::Holder;

use super::holders::{BytesInQuestion, known};
use super::why::HeldBy;

/// What lives of the bytes that a line obtained, and who holds it. Prints as a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WhyLine {
    /// The ledger's entries of that line, largest first; none where nothing of it lives.
    pub held: Vec<Holder>,
    /// Who holds them.
    pub held_by: Vec<HeldBy>,
}

impl WhyLine {
    /// What they take in all.
    pub fn bytes(&self) -> Bytes {
        self.held.iter().map(|holder| holder.bytes).sum()
    }
}

/// What lives of the bytes that a line obtained, and who holds it: for "what is still there of line 12?", without a tensor at
/// hand. The line is a file's name, or the end of its path, and a number, as `memory::info` and errors print it.
///
/// ```
/// use tonnage::memory::{self, HeldBy};
/// use tonnage::{Elementwise, GradientTape, tensor};
/// let x = tensor(vec![0.5f32; 1024])?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let line = line!() + 1;
/// let sum = (&x).tanh()?.sum_all()?; // nobody holds tanh's result but the tape
/// let why = memory::why_line(&format!("{}:{line}", file!()))?;
/// assert!(why.held_by.iter().any(|holder| matches!(holder, HeldBy::Tape { op: "tanh", .. })));
/// println!("{why}");
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where it is not the name of a file, a colon and a number.
#[track_caller]
pub fn why_line(line: &str) -> Result<WhyLine> {
    let parts = line.rsplit_once(':').and_then(|(file, at)| Some((file, at.parse::<u32>().ok()?)));
    let Some((file, number)) = parts.filter(|(file, at)| !file.is_empty() && *at > 0) else {
        let help = "give a file and a line of it, as in `src/main.rs:12`";
        let error = bad_argument("why_line", format!("`{line}` is no line of a file"), help);
        return Err(error.at(Source::here()));
    };
    let is_it = |source: Source| source.line() == number && is_file(source.file(), file);
    let holders = host_ledger().info().holders.into_iter();
    let held: Vec<Holder> = holders.filter(|holder| is_it(holder.owner.source)).collect();
    let asked = known(&BytesInQuestion::Line(&is_it));
    let mut held_by = asked.held_by;
    let buffers: usize = held.iter().map(|holder| holder.buffers).sum();
    let explained: HashSet<usize> = asked.storages.into_iter().collect();
    let handles = buffers.saturating_sub(explained.len());
    if handles > 0 {
        held_by.push(HeldBy::Program { handles });
    }
    Ok(WhyLine { held, held_by })
}

/// Whether a path ends in that name, whole parts of it.
fn is_file(path: &str, name: &str) -> bool {
    let before = path.strip_suffix(name);
    before.is_some_and(|rest| rest.is_empty() || rest.ends_with(['/', '\\']))
}

impl fmt::Display for WhyLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.held.is_empty() {
            return writeln!(f, "nothing of that line is in memory");
        }
        for Holder { owner, bytes, buffers } in &self.held {
            let plural = if *buffers == 1 { "" } else { "s" };
            writeln!(f, "{bytes} in {buffers} buffer{plural} of {owner}")?;
        }
        self.held_by.iter().try_for_each(|holder| writeln!(f, "  {holder}"))
    }
}

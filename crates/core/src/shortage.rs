//! The figures of an error about memory: who asked, who holds how much, and what could be done about it.

use std::fmt;

use crate::bytes::Bytes;
use crate::device::Device;
use crate::kind::Kind;
use crate::source::Source;

/// How many holders a message names; the rest is summed up.
const NAMED: usize = 5;

/// Who holds how much, for the messages about memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// What it is held as.
    pub kind: Kind,
    /// What it is held as and by whom: `activation matmul at src/main.rs:12`.
    pub what: String,
    /// The user's line.
    pub source: Source,
    /// How much of it.
    pub bytes: Bytes,
    /// In how many buffers.
    pub buffers: usize,
}

impl Holder {
    pub(crate) fn amount(&self) -> String {
        match self.buffers {
            0 | 1 => self.bytes.to_string(),
            n => format!("{} in {n}", self.bytes),
        }
    }
}

/// The figures of an error about memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shortage {
    /// Who asked.
    pub what: String,
    /// Where.
    pub device: Device,
    /// How much was asked for.
    pub asked: Bytes,
    /// How much was in use then.
    pub in_use: Bytes,
    /// All holders, largest first: what is of one kind and comes from one line is one.
    pub holders: Vec<Holder>,
    /// Other processes that hold memory of the device, and how much where that is known.
    pub others: Vec<(String, Option<Bytes>)>,
}

impl Shortage {
    /// What is held by kind, largest first.
    pub fn by_kind(&self) -> Vec<(Kind, Bytes)> {
        let of = |kind: Kind| -> Bytes {
            self.holders.iter().filter(|h| h.kind == kind).map(|h| h.bytes).sum()
        };
        let mut sums: Vec<(Kind, Bytes)> = Kind::ALL.into_iter().map(|k| (k, of(k))).collect();
        sums.retain(|(_, bytes)| !bytes.is_zero());
        sums.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        sums
    }

    /// What could be done about what is held, most worthwhile first: for each kind that holds a quarter or more.
    pub fn remedies(&self) -> Vec<String> {
        let worth = |(_, bytes): &(Kind, Bytes)| bytes.get() >= self.in_use.get().div_ceil(4);
        let told = self.by_kind().into_iter().filter(worth).filter_map(|(kind, bytes)| {
            // Where nothing is in use a plan was refused: what it needs cannot be dropped.
            let what = (!self.in_use.is_zero()).then(|| remedy(kind))??;
            Some(format!("{bytes} are {what}"))
        });
        told.collect()
    }
}

fn remedy(kind: Kind) -> Option<&'static str> {
    Some(match kind {
        Kind::Activation => {
            "values on the way: drop tensors and tapes that are done with, or compute in a `function`, which plans them"
        }
        Kind::Gradient => "gradients: apply them and drop them before the next step",
        Kind::Variable => "variables: a smaller dtype halves them",
        Kind::Optimizer => "an optimizer's: `Adam8Bit`, `Adafactor` and `Sgd` remember less",
        Kind::Input => {
            "data and arguments: take them in batches, and move them into what reads them last"
        }
        Kind::Output => "results: drop those that were read",
        Kind::Constant => "captured by functions: drop the functions",
        Kind::Scratch | Kind::Graph | Kind::Staging => return None,
    })
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shortage { what, device, asked, in_use, .. } = self;
        write!(f, "{what} asked for {asked} with {in_use} in use on {device}")?;
        for (i, holder) in self.holders.iter().take(NAMED).enumerate() {
            let lead = if i == 0 { "; held by" } else { "," };
            write!(f, "{lead} {} ({})", holder.what, holder.amount())?;
        }
        if let Some(rest) = self.holders.get(NAMED..).filter(|rest| !rest.is_empty()) {
            let bytes: Bytes = rest.iter().map(|holder| holder.bytes).sum();
            write!(f, ", and {} more ({bytes})", rest.len())?;
        }
        for (i, (process, bytes)) in self.others.iter().enumerate() {
            let lead = if i == 0 { "; other processes have memory there:" } else { "," };
            write!(f, "{lead} {process}")?;
            if let Some(bytes) = bytes {
                write!(f, " ({bytes})")?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn holder(kind: Kind, what: &str, bytes: u64, buffers: usize) -> Holder {
        let (what, bytes) = (what.to_string(), Bytes::new(bytes));
        Holder { kind, what, source: Source::here(), bytes, buffers }
    }

    #[test]
    fn a_shortage_names_the_largest_sums_up_the_rest_and_says_what_could_be_done() {
        let mut holders = vec![holder(Kind::Activation, "activation matmul at a.rs:1", 4096, 3)];
        holders.push(holder(Kind::Variable, "variable w at a.rs:2", 2048, 1));
        holders.extend((0..5).map(|_| holder(Kind::Input, "input x at a.rs:3", 64, 1)));
        let in_use = holders.iter().map(|h| h.bytes).sum();
        let (what, device) = ("sort".into(), Device::SIM);
        let others = Vec::new();
        let shortage = Shortage { what, device, asked: Bytes::new(64), in_use, holders, others };
        let text = shortage.to_string();
        assert!(text.contains("held by activation matmul at a.rs:1 (4.00 KiB in 3)"), "{text}");
        assert!(text.contains("6.31 KiB in use on sim:0"), "{text}");
        assert!(text.ends_with(", and 2 more (128 B)"), "{text}");
        let by_kind: Bytes = shortage.by_kind().iter().map(|(_, bytes)| *bytes).sum();
        assert_eq!(by_kind, in_use);
        let remedies = shortage.remedies();
        assert_eq!(remedies.len(), 2, "a quarter and more: {remedies:?}");
        assert!(remedies[0].starts_with("4.00 KiB are values on the way: drop"), "{remedies:?}");
        let others = vec![("7 python".to_string(), Some(Bytes::mib(3))), ("8".to_string(), None)];
        let shared = Shortage { others, ..shortage.clone() }.to_string();
        let end = "; other processes have memory there: 7 python (3.00 MiB), 8";
        assert!(shared.ends_with(end), "{shared}");
        let planned = Shortage { in_use: Bytes::ZERO, ..shortage };
        assert!(planned.remedies().is_empty());
    }
}

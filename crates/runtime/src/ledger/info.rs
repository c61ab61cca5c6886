//! What the ledger answers: figures at one moment, and a table of them for 80 columns.

use std::fmt;

use tonnage_core::{Bytes, Kind};

use super::Owner;

/// Buffers of one owner, taken together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Who holds them.
    pub owner: Owner,
    /// How much in all.
    pub bytes: Bytes,
    /// How many.
    pub buffers: usize,
}

impl Holder {
    /// As errors name it.
    pub(super) fn named(&self) -> tonnage_core::error::Holder {
        tonnage_core::error::Holder {
            kind: self.owner.kind,
            what: self.owner.to_string(),
            source: self.owner.source,
            bytes: self.bytes,
            buffers: self.buffers,
        }
    }
}

/// The figures of a ledger at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Info {
    /// Held by someone.
    pub in_use: Bytes,
    /// The most that was in use since the last reset.
    pub peak: Bytes,
    /// Held by no one, kept warm, and given up before anything else is. On a GPU also the rest of pages that hold small tensors.
    pub cached: Bytes,
    /// Of tensors that live and were sent out of memory under a limit: they come back when they are read.
    pub away: Bytes,
    /// Obtained from the system: in use and cached.
    pub reserved: Bytes,
    /// The most that was reserved since the last reset.
    pub peak_reserved: Bytes,
    /// What reserved may be, where the user set it.
    pub limit: Option<Bytes>,
    /// Of a GPU's memory: what its driver takes for the context and the kernels of this process, and what other processes have.
    pub overhead: Bytes,
    /// What traces and plans take of Rust's allocator; no part of what is in use, and bounded where they
    /// are held.
    pub graphs: Bytes,
    /// In use, by kind, and graphs; kinds that hold nothing are left out.
    pub by_kind: Vec<(Kind, Bytes)>,
    /// In use, by owner, and graphs; largest first.
    pub holders: Vec<Holder>,
}

impl Info {
    /// Adds what was obtained from a device and is no block's, and says what else is taken there.
    pub(super) fn add_device(&mut self, idle: Bytes, taken: Option<Bytes>) {
        self.cached += idle;
        self.reserved += idle;
        self.peak_reserved = self.peak_reserved.max(self.reserved);
        self.overhead = taken.unwrap_or_default().saturating_sub(self.reserved);
    }
}

/// The columns of a holder, of its bytes and of its buffers: 80 in all.
const HOLDER: usize = 57;
/// How many holders the table shows.
const SHOWN: usize = 12;

impl fmt::Display for Info {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "in use {}, peak {}, cached {}", self.in_use, self.peak, self.cached)?;
        if !self.away.is_zero() {
            write!(f, ", away {}", self.away)?;
        }
        match self.limit {
            Some(limit) => write!(f, ", limit {limit}")?,
            None => write!(f, ", no limit")?,
        }
        match self.overhead.is_zero() {
            true => writeln!(f)?,
            false => writeln!(f, ", overhead {}", self.overhead)?,
        }
        if self.holders.is_empty() {
            return Ok(());
        }
        writeln!(f, "\n{:<HOLDER$} {:>11}", "kind", "bytes")?;
        for (kind, bytes) in &self.by_kind {
            let name = if *kind == Kind::Graph { "graph (not in use)" } else { kind.name() };
            writeln!(f, "{name:<HOLDER$} {bytes:>11}")?;
        }
        writeln!(f, "\n{:<HOLDER$} {:>11} {:>10}", "holder", "bytes", "buffers")?;
        for holder in self.holders.iter().take(SHOWN) {
            let Holder { owner, bytes, buffers } = holder;
            writeln!(f, "{:<HOLDER$} {bytes:>11} {buffers:>10}", fitted(&owner.to_string()))?;
        }
        if let Some(rest) = self.holders.get(SHOWN..).filter(|rest| !rest.is_empty()) {
            let bytes: Bytes = rest.iter().map(|holder| holder.bytes).sum();
            let buffers: usize = rest.iter().map(|holder| holder.buffers).sum();
            let text = format!("and {} more", rest.len());
            writeln!(f, "{text:<HOLDER$} {bytes:>11} {buffers:>10}")?;
        }
        Ok(())
    }
}

/// The text in the column's width: the front says what it is and the end says where, so the middle
/// gives way.
fn fitted(text: &str) -> String {
    let count = text.chars().count();
    if count <= HOLDER {
        return text.to_string();
    }
    let front = HOLDER / 2;
    let back = HOLDER - front - 1;
    text.chars().take(front).chain(['…']).chain(text.chars().skip(count - back)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonnage_core::Source;

    fn holder(kind: Kind, what: &'static str, name: Option<&str>, source: Source) -> Holder {
        let name = name.map(Into::into);
        Holder { owner: Owner { kind, what, name, source }, bytes: Bytes::mib(3), buffers: 2 }
    }

    #[test]
    fn prints_as_a_table_of_80_columns() {
        let source = Source::here();
        let info = Info {
            in_use: Bytes::mib(6),
            peak: Bytes::mib(9),
            cached: Bytes::new(4096),
            away: Bytes::mib(5),
            reserved: Bytes::mib(6) + Bytes::new(4096),
            peak_reserved: Bytes::mib(9),
            limit: Some(Bytes::mib(64)),
            overhead: Bytes::ZERO,
            graphs: Bytes::new(2048),
            by_kind: vec![
                (Kind::Variable, Bytes::mib(3)),
                (Kind::Activation, Bytes::mib(3)),
                (Kind::Graph, Bytes::new(2048)),
            ],
            holders: vec![
                holder(Kind::Variable, "w", Some("a layer's own rather long name"), source),
                holder(Kind::Activation, "add", None, source),
            ],
        };
        let line = source.line();
        let path = source.to_string();
        let end = &path[path.len() - 28..];
        let expected = format!(
            "\
in use 6.00 MiB, peak 9.00 MiB, cached 4.00 KiB, away 5.00 MiB, limit 64.00 MiB

kind                                                            bytes
variable                                                     3.00 MiB
activation                                                   3.00 MiB
graph (not in use)                                           2.00 KiB

holder                                                          bytes    buffers
variable w `a layer's own ra…{end}    3.00 MiB          2
activation add at crates/runtime/src/ledger/info.rs:{line:<5}    3.00 MiB          2
"
        );
        assert_eq!(info.to_string(), expected);
        assert!(info.to_string().lines().all(|line| line.chars().count() <= 80));
    }

    #[test]
    fn many_holders_are_summed_up_at_the_end() {
        let holders = (0..20).map(|_| holder(Kind::Input, "x", None, Source::here())).collect();
        let info = Info { holders, ..crate::Ledger::new(None).info() };
        let text = info.to_string();
        assert!(text.contains("and 8 more "), "{text}");
        assert!(text.contains("24.00 MiB         16"), "{text}");
        assert!(text.starts_with("in use 0 B, peak 0 B, cached 0 B, no limit"), "{text}");
    }
}

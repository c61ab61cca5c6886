//! Tracing that does not end: noticed once, with the argument that changed.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tonnage_core::Source;

use super::lock;
use super::signature::Signature;
use crate::notices::{self, ArgumentChange, Notice};

/// Traces from which on it is told, where at least every fourth call was one.
const TOLD_AT: u64 = 8;

/// How often a function was called and traced.
#[derive(Debug, Default)]
pub(crate) struct Retraces {
    calls: AtomicU64,
    log: Mutex<RetraceLog>,
}

#[derive(Debug, Default)]
struct RetraceLog {
    traces: u64,
    last: Option<Signature>,
    told: bool,
}

impl Retraces {
    pub fn called(&self) {
        self.calls.fetch_add(1, Ordering::Relaxed);
    }

    /// Notes a trace for a new signature.
    pub fn traced(&self, function: Source, signature: &Signature) {
        let mut log = lock(&self.log);
        log.traces += 1;
        let last = log.last.replace(signature.clone());
        let often = log.traces >= TOLD_AT && log.traces * 4 >= self.calls.load(Ordering::Relaxed);
        if log.told || !often {
            return;
        }
        log.told = true;
        let traces = log.traces as usize;
        drop(log);
        let changes = last.map_or(Vec::new(), |last| changes(&last, signature));
        notices::give(&Notice::Retracing { function, traces, changes });
    }
}

fn changes(last: &Signature, now: &Signature) -> Vec<ArgumentChange> {
    if last.text != now.text {
        let (from, to) = (last.text.clone(), now.text.clone());
        return vec![ArgumentChange { argument: String::new(), from, to }];
    }
    let types = last.types.iter().zip(&now.types).zip(&now.paths);
    types
        .filter(|((from, to), _)| from != to)
        .map(|((from, to), path)| ArgumentChange {
            argument: path.clone(),
            from: from.to_string(),
            to: to.to_string(),
        })
        .collect()
}

//! A recording of a ledger over time: every buffer with its owner, from when to when, and every planned call step by step.
//!
//! The ledger writes it under the lock that it holds anyway, so the figures are the ledger's own and those of all threads.
//! While nothing is recorded it costs one look at an option. It is bounded: what comes beyond the bound is counted as
//! lost, and the buffers that were recorded still end.
//!
//! Decision: `docs/decisions/ledger-writes-recordings.md`.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use tonnage_core::Bytes;
use tonnage_plan::Plan;

use crate::ledger::{Id, Ledger, Owner};
use crate::ticks::Ticks;

pub use crate::ticks::InnerStep;

/// Buffers and calls that are recorded at most, unless somebody says otherwise: about 128 MiB of them.
pub const MOST: usize = 1 << 20;

/// No span: of an entry that is not recorded.
const NONE: u32 = u32::MAX;

/// One buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// Nanoseconds from the start of the recording until it was obtained; 0 for what was there.
    pub from: u64,
    /// Until it was freed; `None` for what still lives.
    pub to: Option<u64>,
    /// How much.
    pub bytes: Bytes,
    /// Whose: a number in [`Timeline::owners`].
    pub owner: u32,
}

/// What was in use from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// Nanoseconds from the start of the recording.
    pub at: u64,
    /// The ledger's figure.
    pub in_use: Bytes,
}

/// A planned call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRecord {
    /// Its plan: a number in [`Timeline::plans`].
    pub plan: u32,
    /// Nanoseconds from the start of the recording.
    pub from: u64,
    /// When each of its steps ended, in nanoseconds from the start of the call. Of a call that failed: as far as it came.
    pub steps: Vec<u64>,
    /// Its steps inside of loops and branches; those that took longest first.
    pub inside: Vec<InnerStep>,
    /// What the executor saw kernels be lent, inputs and all; nothing for a call that failed.
    pub used: Option<Bytes>,
}

/// What was recorded.
#[derive(Debug, Clone, Default)]
pub struct Timeline {
    /// Who held something.
    pub owners: Vec<Owner>,
    /// Every buffer, in the order in which they were obtained.
    pub spans: Vec<Span>,
    /// Every change of what is in use, in order; the first is the start.
    pub curve: Vec<Moment>,
    /// Plans of the calls.
    pub plans: Vec<Arc<Plan>>,
    /// Planned calls, in the order in which they ended.
    pub calls: Vec<CallRecord>,
    /// How long it was recorded, in nanoseconds.
    pub length: u64,
    /// Buffers and calls that came after the bound.
    pub lost: u64,
}

impl Timeline {
    /// The most that was in use, and when first.
    pub fn peak(&self) -> Moment {
        let none = Moment { at: 0, in_use: Bytes::ZERO };
        let higher = |a: Moment, b: &Moment| if b.in_use > a.in_use { *b } else { a };
        self.curve.iter().fold(none, higher)
    }
}

/// Writes a timeline as the ledger tells it.
#[derive(Debug)]
pub(crate) struct TimelineRecorder {
    start: Instant,
    most: usize,
    made: Timeline,
    numbers: HashMap<Owner, u32>,
    /// By place in the ledger, the span of an entry.
    open: Vec<u32>,
    /// Plans that were seen. Each is held, so that another graph has another address.
    plans: HashMap<(usize, Bytes, usize), u32>,
}

impl TimelineRecorder {
    pub fn new(most: usize, in_use: Bytes) -> TimelineRecorder {
        let made = Timeline { curve: vec![Moment { at: 0, in_use }], ..Timeline::default() };
        let (numbers, open, plans) = (HashMap::new(), Vec::new(), HashMap::new());
        TimelineRecorder { start: Instant::now(), most, made, numbers, open, plans }
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn is_full(&mut self) -> bool {
        let full = self.made.spans.len() + self.made.calls.len() >= self.most;
        self.made.lost += u64::from(full);
        full
    }

    fn number(&mut self, owner: &Owner) -> u32 {
        if let Some(known) = self.numbers.get(owner) {
            return *known;
        }
        let number = self.made.owners.len() as u32;
        self.made.owners.push(owner.clone());
        self.numbers.insert(owner.clone(), number);
        number
    }

    fn span(&mut self, id: Id) -> &mut u32 {
        let at = id.index();
        if self.open.len() <= at {
            self.open.resize(at + 1, NONE);
        }
        &mut self.open[at]
    }

    /// What was there when the recording began.
    pub fn existing(&mut self, id: Id, owner: &Owner, bytes: Bytes) {
        self.begin_at(0, id, owner, bytes);
    }

    fn begin_at(&mut self, from: u64, id: Id, owner: &Owner, bytes: Bytes) {
        if self.is_full() {
            *self.span(id) = NONE;
            return;
        }
        let owner = self.number(owner);
        *self.span(id) = self.made.spans.len() as u32;
        self.made.spans.push(Span { from, to: None, bytes, owner });
    }

    /// An entry begins.
    pub fn begin(&mut self, id: Id, owner: &Owner, bytes: Bytes, in_use: Bytes) {
        let at = self.now();
        self.begin_at(at, id, owner, bytes);
        self.mark(at, in_use);
    }

    /// An entry ends.
    pub fn end(&mut self, id: Id, in_use: Bytes) {
        self.exchange(&[id], std::iter::empty(), in_use);
    }

    /// Entries end and others begin, at one moment.
    pub fn exchange<'a>(
        &mut self,
        ended: &[Id],
        began: impl Iterator<Item = (Id, &'a Owner, Bytes)>,
        in_use: Bytes,
    ) {
        let at = self.now();
        for id in ended {
            let span = std::mem::replace(self.span(*id), NONE);
            if let Some(span) = self.made.spans.get_mut(span as usize) {
                span.to = Some(at);
            }
        }
        for (id, owner, bytes) in began {
            self.begin_at(at, id, owner, bytes);
        }
        self.mark(at, in_use);
    }

    /// An entry has another owner from now on: its whole span is that one's.
    pub fn rename(&mut self, id: Id, owner: &Owner) {
        let (span, owner) = (*self.span(id), self.number(owner));
        if let Some(span) = self.made.spans.get_mut(span as usize) {
            span.owner = owner;
        }
    }

    fn mark(&mut self, at: u64, in_use: Bytes) {
        // Bounded as the spans are: each has a beginning and an end.
        if self.made.curve.len() < 2 * self.most {
            self.made.curve.push(Moment { at, in_use });
        }
    }

    /// A planned call ended.
    pub fn call(&mut self, plan: &Plan, ticks: Ticks, used: Option<Bytes>) {
        if self.is_full() {
            return;
        }
        let key = (Arc::as_ptr(&plan.graph) as usize, plan.arena, plan.steps.len());
        let next = self.made.plans.len() as u32;
        let number = *self.plans.entry(key).or_insert(next);
        if number == next {
            self.made.plans.push(Arc::new(plan.clone()));
        }
        let from = ticks.start.saturating_duration_since(self.start).as_nanos() as u64;
        let (steps, inside) = (ticks.ends(), ticks.inner_steps());
        self.made.calls.push(CallRecord { plan: number, from, steps, inside, used });
    }

    /// What was recorded so far.
    pub fn so_far(&self) -> Timeline {
        Timeline { length: self.now(), ..self.made.clone() }
    }

    /// What was recorded.
    pub fn finish(self) -> Timeline {
        Timeline { length: self.now(), ..self.made }
    }
}

/// While it lives, a ledger is recorded.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::{Buffer, Ledger, Owner};
/// let ledger = Ledger::new(None);
/// let recording = ledger.record(1000).unwrap();
/// assert!(ledger.record(1000).is_none()); // one at a time
/// drop(Buffer::obtain(&ledger, Bytes::new(640), Owner::new(Kind::Activation, "add"))?);
/// let timeline = recording.finish();
/// assert_eq!(timeline.peak().in_use, ledger.info().peak);
/// assert_eq!(timeline.spans[0].bytes, Bytes::new(640));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
#[must_use = "it records while it lives"]
pub struct Recording {
    ledger: Ledger,
}

impl Recording {
    pub(crate) fn new(ledger: Ledger) -> Recording {
        Recording { ledger }
    }

    /// What was recorded so far.
    pub fn so_far(&self) -> Timeline {
        self.ledger.recorded_so_far().unwrap_or_default()
    }

    /// Ends it, and says what was recorded.
    pub fn finish(self) -> Timeline {
        self.ledger.stop_recording().unwrap_or_default()
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.ledger.stop_recording();
    }
}

//! "Which ops allocate?" A record, on this thread and while a [`Scope`] is open, of what happens to
//! memory: the ledger records what is obtained and freed, eager mode what it did not have to obtain.
//!
//! With no scope open, recording costs one read of a thread-local number.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;
use std::marker::PhantomData;

use tonnage_core::{Bytes, Source};

/// What happened to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Action {
    /// Bytes were obtained.
    Allocated,
    /// A handle to the same bytes was made.
    Aliased,
    /// The same bytes, seen in another shape or order.
    View,
    /// A result took over the bytes of an input that nobody else held.
    Reused,
    /// A variable was written where it stands.
    InPlace,
    /// A description was made instead of bytes.
    Recipe,
    /// Bytes were freed.
    Freed,
}

impl Action {
    /// All of them, in the order of the report.
    pub const ALL: [Action; 7] = [
        Action::Allocated,
        Action::Aliased,
        Action::View,
        Action::Reused,
        Action::InPlace,
        Action::Recipe,
        Action::Freed,
    ];

    /// The user's word.
    pub const fn name(self) -> &'static str {
        match self {
            Action::Allocated => "allocated",
            Action::Aliased => "aliased",
            Action::View => "view",
            Action::Reused => "reused",
            Action::InPlace => "in place",
            Action::Recipe => "recipe",
            Action::Freed => "freed",
        }
    }
}

/// One thing that happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The op.
    pub op: &'static str,
    /// The user's line.
    pub source: Source,
    /// What happened.
    pub action: Action,
    /// To how many bytes: for a recipe, those that it describes.
    pub bytes: Bytes,
}

thread_local! {
    static OPEN: Cell<usize> = const { Cell::new(0) };
    static LOG: RefCell<Vec<Event>> = const { RefCell::new(Vec::new()) };
}

/// Records an event if a scope is open on this thread.
#[inline]
pub fn record(op: &'static str, source: Source, action: Action, bytes: Bytes) {
    // A buffer may be freed while the thread's locals are being destroyed: then nobody listens.
    if OPEN.try_with(Cell::get).is_ok_and(|open| open > 0) {
        push(Event { op, source, action, bytes });
    }
}

#[cold]
fn push(event: Event) {
    let _ = LOG.try_with(|log| log.borrow_mut().push(event));
}

/// While it lives, events of this thread are recorded. Scopes nest: the outer one sees it all.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::events::{Action, Scope};
/// use tonnage_runtime::{Buffer, Ledger, Owner};
/// let ledger = Ledger::new(None);
/// let scope = Scope::open();
/// drop(Buffer::obtain(&ledger, Bytes::new(640), Owner::new(Kind::Activation, "add"))?);
/// let report = scope.report();
/// assert_eq!(report.total(Action::Allocated), Bytes::new(640));
/// assert_eq!(report.total(Action::Freed), Bytes::new(640));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Scope {
    first: usize,
    /// A scope is closed on the thread that it listens to.
    _thread: PhantomData<*const ()>,
}

impl Scope {
    /// Starts to record.
    #[must_use = "it records while it lives"]
    pub fn open() -> Scope {
        OPEN.set(OPEN.get() + 1);
        Scope { first: LOG.with_borrow(Vec::len), _thread: PhantomData }
    }

    /// What has happened since it was opened.
    pub fn report(&self) -> EventReport {
        EventReport { events: LOG.with_borrow(|log| log.get(self.first..).unwrap_or(&[]).to_vec()) }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let left = OPEN.get().saturating_sub(1);
        OPEN.set(left);
        if left == 0 {
            LOG.take();
        }
    }
}

/// What happened in a scope. Prints as a table by op and source line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventReport {
    /// Everything, in order.
    pub events: Vec<Event>,
}

impl EventReport {
    /// The bytes that this happened to.
    pub fn total(&self, action: Action) -> Bytes {
        self.events.iter().filter(|event| event.action == action).map(|event| event.bytes).sum()
    }

    /// How often it happened.
    pub fn count(&self, action: Action) -> usize {
        self.events.iter().filter(|event| event.action == action).count()
    }
}

impl fmt::Display for EventReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rows: Vec<(Event, usize)> = Vec::new();
        let mut place: HashMap<(&str, Source, Action), usize> = HashMap::new();
        for event in &self.events {
            let at = *place.entry((event.op, event.source, event.action)).or_insert(rows.len());
            match rows.get_mut(at) {
                Some((sum, times)) => {
                    sum.bytes += event.bytes;
                    *times += 1;
                }
                None => rows.push((*event, 1)),
            }
        }
        writeln!(f, "{:<16} {:<9} {:>6} {:>11}  line", "op", "action", "times", "bytes")?;
        for (Event { op, source, action, bytes }, times) in rows {
            writeln!(f, "{op:<16} {:<9} {times:>6} {bytes:>11}  {source}", action.name())?;
        }
        let mut lead = "in all: ";
        for action in Action::ALL {
            let times = self.count(action);
            if times > 0 {
                write!(f, "{lead}{} {} ({times})", action.name(), self.total(action))?;
                lead = ", ";
            }
        }
        if lead == ", " { writeln!(f) } else { writeln!(f, "nothing happened") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Buffer, Ledger, Owner};
    use tonnage_core::Kind;

    fn obtain(ledger: &Ledger, bytes: u64, what: &'static str, source: Source) -> Buffer {
        let owner = Owner::new(Kind::Activation, what).at(source);
        Buffer::obtain(ledger, Bytes::new(bytes), owner).unwrap()
    }

    #[test]
    fn scopes_nest_and_each_sees_what_happened_since_it_was_opened() {
        let (ledger, source) = (Ledger::new(None), Source::here());
        drop(obtain(&ledger, 64, "before", source));
        let outer = Scope::open();
        let kept = obtain(&ledger, 64, "add", source);
        let inner = Scope::open();
        drop(kept);
        record("reshape", source, Action::View, Bytes::new(64));
        let actions =
            |report: EventReport| report.events.iter().map(|e| e.action).collect::<Vec<_>>();
        assert_eq!(actions(inner.report()), [Action::Freed, Action::View]);
        drop(inner);
        assert_eq!(actions(outer.report()), [Action::Allocated, Action::Freed, Action::View]);
        drop(outer);
        assert!(Scope::open().report().events.is_empty());
    }

    #[test]
    fn a_scope_hears_its_own_thread_alone() {
        let (ledger, source) = (Ledger::new(None), Source::here());
        let scope = Scope::open();
        std::thread::scope(|threads| {
            threads.spawn(|| drop(obtain(&ledger, 64, "elsewhere", source)));
        });
        assert!(scope.report().events.is_empty());
    }

    #[test]
    fn the_report_sums_by_op_line_and_action() {
        let (ledger, source) = (Ledger::new(None), Source::here());
        let scope = Scope::open();
        let first = obtain(&ledger, 1000, "matmul", source);
        let second = obtain(&ledger, 1000, "matmul", source);
        drop((first, second));
        record("fill", source, Action::Recipe, Bytes::mib(4));
        let report = scope.report();
        assert_eq!(report.count(Action::Allocated), 2);
        let expected = format!(
            "\
op               action     times       bytes  line
matmul           allocated      2    2.00 KiB  {source}
matmul           freed          2    2.00 KiB  {source}
fill             recipe         1    4.00 MiB  {source}
in all: allocated 2.00 KiB (2), recipe 4.00 MiB (1), freed 2.00 KiB (2)
"
        );
        assert_eq!(report.to_string(), expected);
    }

    #[test]
    fn an_empty_report_says_so() {
        assert!(Scope::open().report().to_string().ends_with("nothing happened\n"));
    }
}

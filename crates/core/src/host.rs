//! Work that the program around does: a closure that an op runs, with what it is lent as a kernel is.
//!
//! Two of them are the same only if they are one: a closure can't be compared, so its number is. A graph holds it by
//! reference, and it is freed with the last graph that does.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};
use crate::lent::{In, Out};

type Run = dyn Fn(&[In], &mut [Out]) -> Result<()> + Send + Sync;

/// The error of a count of what is wrong, and the number of all.
type Failure = dyn Fn(i64, i64) -> Error + Send + Sync;

enum Body {
    Run(Box<Run>),
    /// Looks at a count of what is wrong and at the number of all, and fails where the count is not 0.
    Assertion(Box<Failure>),
}

/// A closure that an op runs.
pub struct HostCall {
    number: u64,
    label: String,
    /// What the closure itself takes on the heap.
    bytes: usize,
    body: Body,
}

impl HostCall {
    fn of(label: String, bytes: usize, body: Body) -> HostCall {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        HostCall { number: NEXT.fetch_add(1, Ordering::Relaxed), label, bytes, body }
    }

    /// A call of `run`; the label is what a printed graph shows of it.
    pub fn new<F>(label: impl Into<String>, run: F) -> HostCall
    where
        F: Fn(&[In], &mut [Out]) -> Result<()> + Send + Sync + 'static,
    {
        HostCall::of(label.into(), size_of::<F>(), Body::Run(Box::new(run)))
    }

    /// A call that looks at a count of what is wrong and at the number of all, both `i64`, and fails where the count is not 0: with the
    /// error that `failure` makes of the two. A device that sees that it is 0 need not run it.
    pub fn assertion<F>(label: impl Into<String>, failure: F) -> HostCall
    where
        F: Fn(i64, i64) -> Error + Send + Sync + 'static,
    {
        HostCall::of(label.into(), size_of::<F>(), Body::Assertion(Box::new(failure)))
    }

    /// Whether it is an [`assertion`](HostCall::assertion).
    pub fn is_assertion(&self) -> bool {
        matches!(self.body, Body::Assertion(_))
    }

    /// What an assertion says of a count that is not 0.
    pub fn failure(&self, wrong: i64, all: i64) -> Option<Error> {
        match &self.body {
            Body::Run(_) => None,
            Body::Assertion(failure) => Some(failure(wrong, all)),
        }
    }

    /// What a printed graph shows of it.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Runs it.
    ///
    /// # Errors
    /// Its own; and a panic of it, which ends the call and not the program.
    pub fn run(&self, inputs: &[In], outputs: &mut [Out]) -> Result<()> {
        // What it may have left half done is its owner's: nothing of a plan is reached through it.
        catch_unwind(AssertUnwindSafe(|| self.body.run(inputs, outputs))).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<&str>().copied().map(str::to_string);
            let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
            let why = format!("it panicked: {}", text.unwrap_or_else(|| "no message".into()));
            Err(ErrorKind::Callback { why, raised: None }.into())
        })
    }

    /// Bytes on the heap that it owns; what the closure holds elsewhere is its owner's to count.
    pub fn heap_bytes(&self) -> usize {
        self.label.capacity() + self.bytes
    }
}

impl Body {
    fn run(&self, inputs: &[In], outputs: &mut [Out]) -> Result<()> {
        let failure = match self {
            Body::Run(run) => return run(inputs, outputs),
            Body::Assertion(failure) => failure,
        };
        let number = |i: usize| {
            let of = inputs.get(i)?;
            of.slice::<i64>().get(of.layout.offset).copied()
        };
        match number(0).zip(number(1)) {
            Some((0, _)) => Ok(()),
            Some((wrong, all)) => Err(failure(wrong, all)),
            None => Err(ErrorKind::BadGraph { what: "no count to look at".into() }.into()),
        }
    }
}

impl fmt::Debug for HostCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label)
    }
}

impl PartialEq for HostCall {
    fn eq(&self, other: &HostCall) -> bool {
        self.number == other.number
    }
}

impl Eq for HostCall {}

impl Hash for HostCall {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

impl Serialize for HostCall {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.label)
    }
}

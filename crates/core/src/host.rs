//! Work that the program around does: a closure that an op runs, with what it is lent as a kernel is.
//!
//! Two of them are the same only if they are one: a closure can't be compared, so its number is. A graph holds it by
//! reference, and it is freed with the last graph that does.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Serialize, Serializer};

use crate::error::{Error, ErrorKind, Result};
use crate::lent::{In, Out};

type Run = dyn Fn(&[In], &mut [Out]) -> Result<()> + Send + Sync;

/// The error of a finding that is not 0, and what it is of.
type Judge = dyn Fn(i64, i64) -> Error + Send + Sync;

/// A closure that an op runs.
pub struct HostCall {
    number: u64,
    label: String,
    /// What the closure itself takes on the heap.
    bytes: usize,
    run: Box<Run>,
    /// What it says of its finding, where that is all it looks at.
    judge: Option<Arc<Judge>>,
}

impl HostCall {
    /// A call of `run`; the label is what a printed graph shows of it.
    pub fn new<F>(label: impl Into<String>, run: F) -> HostCall
    where
        F: Fn(&[In], &mut [Out]) -> Result<()> + Send + Sync + 'static,
    {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let (label, bytes) = (label.into(), size_of::<F>());
        HostCall { number, label, bytes, run: Box::new(run), judge: None }
    }

    /// A call that looks at two numbers, a finding and what it is of, and fails where the finding is not 0. A device that sees that
    /// it is 0 need not run it.
    pub fn of_finding<F>(label: impl Into<String>, judge: F) -> HostCall
    where
        F: Fn(i64, i64) -> Error + Send + Sync + 'static,
    {
        let judge: Arc<Judge> = Arc::new(judge);
        let run = {
            let judge = judge.clone();
            move |inputs: &[In], _: &mut [Out]| {
                let number = |i: usize| {
                    let of = inputs.get(i)?;
                    of.slice::<i64>().get(of.layout.offset).copied()
                };
                match number(0).zip(number(1)) {
                    Some((0, _)) => Ok(()),
                    Some((found, of)) => Err(judge(found, of)),
                    None => {
                        Err(ErrorKind::BadGraph { what: "no finding to look at".into() }.into())
                    }
                }
            }
        };
        HostCall { judge: Some(judge), bytes: size_of::<F>(), ..HostCall::new(label, run) }
    }

    /// Whether it looks at a finding, and at nothing else.
    pub fn is_of_finding(&self) -> bool {
        self.judge.is_some()
    }

    /// What it says of a finding that is not 0, where it looks at one.
    pub fn judged(&self, found: i64, of: i64) -> Option<Error> {
        self.judge.as_ref().map(|judge| judge(found, of))
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
        catch_unwind(AssertUnwindSafe(|| (self.run)(inputs, outputs))).unwrap_or_else(|panic| {
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

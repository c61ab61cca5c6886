//! What Tonnage has to tell without being asked: once each, to whoever listens, or to the standard error.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use tonnage_core::{Bytes, Device, Source};
use tonnage_runtime::Context;

/// Something that a user will want to know.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Notice {
    /// A function is traced again and again. Said once a function.
    Retracing {
        /// Where the function was made.
        function: Source,
        /// How often it was traced.
        traces: usize,
        /// What was different from the trace before.
        changes: Vec<ArgumentChange>,
    },
    /// The figures of this machine could not be saved, or those that were saved cannot be used.
    Calibration {
        /// Which file, and why.
        why: String,
    },
    /// An input on another device was copied to that of the others, as [soft placement](crate::device::set_soft_placement) allows.
    /// Said once a line.
    Copied {
        /// The op that needed it there.
        op: &'static str,
        /// Where it lies.
        from: Device,
        /// Where the op ran.
        to: Device,
        /// The line that the op was run for.
        source: Source,
    },
    /// A device has no kernel for an op, which ran on the host instead: what it reads was copied out, and what it makes was copied in.
    /// Said once an op.
    OnHost {
        /// The op.
        op: &'static str,
        /// The device.
        device: Device,
        /// What passed through host memory.
        bytes: Bytes,
        /// The line that the op was run for, where that is known.
        source: Option<Source>,
    },
}

/// An argument that changed from one trace to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArgumentChange {
    /// Which: a path such as `.1[0].weight`; empty for an only argument.
    pub argument: String,
    /// What it was.
    pub from: String,
    /// What it is.
    pub to: String,
}

impl fmt::Display for Notice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Notice::Retracing { function, traces, changes } => {
                write!(f, "the function at {function} was traced {traces} times; ")?;
                for (i, ArgumentChange { argument, from, to }) in changes.iter().enumerate() {
                    let comma = if i > 0 { ", " } else { "" };
                    let argument = crate::function::signature::argument(argument);
                    write!(f, "{comma}{argument} went from {from} to {to}")?;
                }
                write!(
                    f,
                    "; open its dims with `signature` or `reduce_retracing`, or pass what changes as a tensor"
                )
            }
            Notice::Calibration { why } => write!(
                f,
                "figures of this machine: {why}; the built-in ones serve, or call `calibrate` again"
            ),
            Notice::Copied { op, from, to, source } => write!(
                f,
                "{op}: an input on {from} was copied to {to} (at {source}); copy it once, before, or make it there"
            ),
            Notice::OnHost { op, device, bytes, source } => {
                write!(f, "{op} runs on the host, since {device} has no kernel for it")?;
                source.map_or(Ok(()), |source| write!(f, " (at {source})"))?;
                write!(f, ": {bytes} were copied there and back")
            }
        }
    }
}

type Listener = Arc<dyn Fn(&Notice) + Send + Sync>;

/// Who listens in a context.
#[derive(Default)]
struct Listening(RwLock<Option<Listener>>);

fn listening() -> Arc<Listening> {
    Context::current().local()
}

/// Sends notices to `listener` from here on, instead of to the standard error.
///
/// ```
/// use std::sync::{Arc, Mutex};
/// use tonnage::{Tensor, function, notices, zeros};
/// let heard = Arc::new(Mutex::new(Vec::new()));
/// let to = heard.clone();
/// notices::listen(move |notice| to.lock().unwrap().push(notice.to_string()));
/// let f = function(|x: Tensor| x + 1.0);
/// for n in 1..20 {
///     f.call(zeros([n])?)?;
/// }
/// let heard = heard.lock().unwrap();
/// assert_eq!(heard.len(), 1);
/// assert!(heard[0].contains("the argument went from f32[7] to f32[8]"), "{}", heard[0]);
/// # Ok::<(), tonnage::Error>(())
/// ```
pub fn listen(listener: impl Fn(&Notice) + Send + Sync + 'static) {
    *listening().0.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(listener));
}

/// Lets notices go to the standard error again.
pub fn stop_listening() {
    *listening().0.write().unwrap_or_else(PoisonError::into_inner) = None;
}

pub(crate) fn give(notice: &Notice) {
    // The listener is called outside of the lock: it may run functions itself.
    let listener = listening().0.read().unwrap_or_else(PoisonError::into_inner).clone();
    match listener {
        Some(listener) => listener(notice),
        None => eprintln!("tonnage: {notice}"),
    }
}

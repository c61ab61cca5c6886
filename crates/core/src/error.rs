//! The one `Error`: which op, both sides, and what to do, on one line.
//!
//! An [`ErrorKind`] says what went wrong as data; [`Error`] adds the user's line.
//! Running out of memory is three kinds, because a caller does three different things about it:
//! [`ErrorKind::NeverFits`], [`ErrorKind::OverBudget`] and [`ErrorKind::SystemRefused`].

use std::any::Any;
use std::fmt;
use std::sync::Arc;

pub use crate::shortage::{Holder, Shortage};

use crate::bytes::Bytes;
use crate::device::Device;
use crate::dtype::DType;
use crate::shape::Shape;
use crate::source::Source;

/// What every fallible call returns.
pub type Result<T> = std::result::Result<T, Error>;

/// Something that the caller can act on.
///
/// ```
/// use tonnage_core::{Error, ErrorKind};
/// let error: Error = ErrorKind::AxisOutOfRange { op: "sum", axis: 3, rank: 2 }.into();
/// assert_eq!(error.to_string(), "sum: axis 3 is out of range for rank 2; use -2 to 1");
/// ```
#[derive(Clone)]
pub struct Error {
    kind: Box<ErrorKind>,
    source: Option<Source>,
}

impl Error {
    /// What went wrong, as data.
    pub fn kind(&self) -> &ErrorKind {
        &self.kind
    }

    /// The same; where the system refused memory, with the other processes that have some.
    pub fn beside(mut self, processes: impl FnOnce() -> Vec<(String, Option<Bytes>)>) -> Error {
        if let ErrorKind::SystemRefused { shortage } = &mut *self.kind {
            shortage.others = processes();
        }
        self
    }

    /// The user's line, where it is known.
    pub fn source_line(&self) -> Option<Source> {
        self.source
    }

    /// The same error, at that line unless it already has one.
    #[must_use]
    pub fn at(mut self, source: Source) -> Error {
        self.source.get_or_insert(source);
        self
    }
}

impl From<ErrorKind> for Error {
    fn from(kind: ErrorKind) -> Error {
        Error { kind: Box::new(kind), source: None }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.kind, f)?;
        match self.source {
            Some(source) => write!(f, " (at {source})"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for Error {
    // `main` prints errors with `Debug`: it should read like the message.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for Error {}

impl From<std::convert::Infallible> for Error {
    fn from(never: std::convert::Infallible) -> Error {
        match never {}
    }
}

/// An exception of another language on its way through Rust, from any thread to any other. Two are equal if they are the same one.
#[derive(Clone)]
pub struct Raised(Arc<dyn Any + Send + Sync>);

impl Raised {
    /// One that can be [read](Raised::get) again.
    pub fn new(exception: impl Any + Send + Sync) -> Raised {
        Raised(Arc::new(exception))
    }

    /// The exception, where it is of that type.
    pub fn get<E: Any>(&self) -> Option<&E> {
        self.0.downcast_ref()
    }
}

impl PartialEq for Raised {
    fn eq(&self, other: &Raised) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl fmt::Debug for Raised {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Raised")
    }
}

/// What went wrong.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ErrorKind {
    /// Two shapes that should agree.
    #[error("{op}: shapes {left} and {right} do not fit; {help}")]
    ShapeMismatch {
        /// The op.
        op: &'static str,
        /// One side.
        left: Shape,
        /// The other side.
        right: Shape,
        /// What to do.
        help: String,
    },
    /// Two dtypes that should agree.
    #[error("{op}: dtypes {left} and {right} do not agree; {help}")]
    DTypeMismatch {
        /// The op.
        op: &'static str,
        /// One side.
        left: DType,
        /// The other side.
        right: DType,
        /// What to do.
        help: String,
    },
    /// A dtype that the op has no meaning for.
    #[error("{op}: dtype {dtype} is not supported; use {supported}")]
    DTypeUnsupported {
        /// The op.
        op: &'static str,
        /// What it was given.
        dtype: DType,
        /// What it takes.
        supported: &'static str,
    },
    /// A tensor of the wrong rank.
    #[error("{op}: {shape} has rank {}, but {expected} is needed", shape.rank())]
    RankMismatch {
        /// The op.
        op: &'static str,
        /// What it was given.
        shape: Shape,
        /// What it takes.
        expected: String,
    },
    /// An axis that the tensor does not have.
    #[error("{op}: axis {axis} is out of range for rank {rank}; use {}", axis_range(*.rank))]
    AxisOutOfRange {
        /// The op.
        op: &'static str,
        /// The axis.
        axis: i64,
        /// The tensor's rank.
        rank: usize,
    },
    /// An axis that is named twice.
    #[error("{op}: axis {axis} is named twice; name each axis once")]
    DuplicateAxis {
        /// The op.
        op: &'static str,
        /// The axis, counted from the front.
        axis: usize,
    },
    /// A reshape that would lose or make elements.
    #[error("{op}: {from} has {} elements and {to} has {}; both must be equal", from.count_text(), to.count_text())]
    ElementCount {
        /// The op.
        op: &'static str,
        /// The shape as it is.
        from: Shape,
        /// The shape asked for.
        to: Shape,
    },
    /// A shape whose size no machine can address.
    #[error(
        "{op}: a {dtype} tensor of shape {shape} has more than 2^63 bytes; use a smaller shape"
    )]
    TooLarge {
        /// The op.
        op: &'static str,
        /// The shape.
        shape: Shape,
        /// The dtype.
        dtype: DType,
    },
    /// A number of inputs that the op does not take.
    #[error("{op}: takes {expected} inputs, got {got}")]
    InputCount {
        /// The op.
        op: &'static str,
        /// What it takes.
        expected: String,
        /// What it was given.
        got: usize,
    },
    /// Any other argument that makes no sense.
    #[error("{op}: {what}; {help}")]
    BadArgument {
        /// The op or call.
        op: &'static str,
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// An index that the data decided, outside of its axis.
    #[error("{op}: index {index} at position {position} is out of range for an axis of {size}; use 0 to {}", (*.size).saturating_sub(1))]
    IndexOutOfRange {
        /// The op.
        op: &'static str,
        /// The index.
        index: i64,
        /// Where it stands among the indices, counted through.
        position: usize,
        /// The length of the axis that it points into.
        size: usize,
    },
    /// A matrix that cannot be factorized.
    #[error("{op}: matrix {matrix} is not {needed} (column {column}); {help}")]
    Singular {
        /// The op.
        op: &'static str,
        /// Which matrix of the batch.
        matrix: usize,
        /// The column where it showed.
        column: usize,
        /// What it should be.
        needed: &'static str,
        /// What to do.
        help: String,
    },
    /// An assertion that did not hold.
    #[error("assertion failed: {what}")]
    Asserted {
        /// What should have been, and what was.
        what: String,
    },
    /// A closure that an op ran and that did not come to its end.
    #[error("the callback failed: {why}")]
    Callback {
        /// Its error, or its panic.
        why: String,
        /// What it raised, where it is written in another language.
        raised: Option<Raised>,
    },
    /// No memory: more than the limit or the machine has, whatever else is freed.
    #[error(
        "never fits: {shortage}; the most there can be is {limit}; use a smaller shape or dtype, or raise the limit"
    )]
    NeverFits {
        /// Who asked for how much.
        shortage: Shortage,
        /// What the device has in all.
        limit: Bytes,
    },
    /// No memory: over the budget or limit that the user set.
    #[error("over budget: {shortage}; the budget is {budget}{}; {}{}drop a holder or raise the budget", least_text(.least), would_help_text(.would_help), remedies_text(.shortage))]
    OverBudget {
        /// Who asked for how much.
        shortage: Shortage,
        /// The user's figure.
        budget: Bytes,
        /// The least budget that would do, where a plan knows it.
        least: Option<Bytes>,
        /// What would make it fit, if it were allowed.
        would_help: Option<String>,
    },
    /// No memory: the system said no.
    #[error("the system refused: {shortage}; {}free memory elsewhere on the machine, or set a budget below what it has", remedies_text(.shortage))]
    SystemRefused {
        /// Who asked for how much.
        shortage: Shortage,
    },
    /// Inputs of one op that lie on different devices.
    #[error("{op}: inputs are on {left} and {right}; move one of them with `to(\"{left}\")`")]
    DeviceMismatch {
        /// The op.
        op: &'static str,
        /// One side.
        left: Device,
        /// The other side.
        right: Device,
    },
    /// A device that is not there.
    #[error("there is no device `{name}`: {what}")]
    NoDevice {
        /// What was asked for.
        name: String,
        /// Why it is not there, and what to do.
        what: String,
    },
    /// A device that stopped working in the middle of something.
    #[error("{device} failed: {what}")]
    DeviceFailed {
        /// The device.
        device: Device,
        /// What it said.
        what: String,
    },
    /// What should have held as much after every run holds more.
    #[error("not steady: after {runs} more runs {} more are in use ({before} before, {after} now){}; drop what a run leaves behind", after.saturating_sub(*before), grown_text(.grown))]
    Grew {
        /// How many runs were compared with what was before them.
        runs: usize,
        /// In use before them.
        before: Bytes,
        /// In use after them.
        after: Bytes,
        /// By whom more is held, with how much more, largest first.
        grown: Vec<Holder>,
    },
    /// A variable without a value yet.
    #[error("variable `{name}` (made at {made}) has no value yet; assign or initialize it first")]
    Uninitialized {
        /// The variable.
        name: String,
        /// Where it was made.
        made: Source,
    },
    /// A name that is taken.
    #[error("the name `{name}` is taken: made at {first}, and again at {second}; {help}")]
    NameTaken {
        /// The name.
        name: String,
        /// Where it was made first.
        first: Source,
        /// Where it was asked for again.
        second: Source,
        /// What to do.
        help: String,
    },
    /// Something that was closed before.
    #[error("{what} is closed; {help}")]
    Closed {
        /// What it is, with its name.
        what: String,
        /// What to do.
        help: String,
    },
    /// Reading the values of a tensor that has none yet.
    #[error(
        "{what} of a symbolic tensor: it has no values while a function is traced; use `cond` or `while_loop` to decide on it, or return it"
    )]
    Symbolic {
        /// What was asked of it.
        what: &'static str,
    },
    /// A symbolic tensor used outside of its function.
    #[error(
        "{op}: a symbolic tensor of another trace; a function's inner values leave it through its results alone"
    )]
    Escaped {
        /// The op.
        op: &'static str,
    },
    /// A function that calls itself again and again while it is traced.
    #[error(
        "function: the one made at {function} is inside of {depth} others, or of itself, and calls on; end the recursion by a plain argument, or loop with `while_loop`"
    )]
    Recursion {
        /// Where the function was made.
        function: Source,
        /// How many functions are inside of one another.
        depth: usize,
    },
    /// Asking for a gradient that does not exist.
    #[error("no gradient through {op}: {why}")]
    NoGradient {
        /// The op.
        op: &'static str,
        /// Its row's reason.
        why: String,
    },
    /// A derivative that is not what differences say.
    #[error("check_gradients: input {input}, {ty}: {mode} is {got}, differences say {slope}")]
    WrongGradient {
        /// Which input.
        input: usize,
        /// Its type.
        ty: String,
        /// Which derivative, in which mode.
        mode: String,
        /// What the derivative says.
        got: f64,
        /// What differences say.
        slope: f64,
    },
    /// A tape that cannot answer.
    #[error("tape: {what}; {help}")]
    Tape {
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// A gradient rule that asks for a value that its row does not save. A bug in a row.
    #[error(
        "{op}: its gradient rule asked for {what}, which its row does not save; declare it in `saves`"
    )]
    NotDeclared {
        /// The op.
        op: &'static str,
        /// What it asked for.
        what: String,
    },
    /// A graph that breaks an invariant. A bug in a rewrite.
    #[error("bad graph: {what}")]
    BadGraph {
        /// Which invariant, and where.
        what: String,
    },
    /// The host asked a call to stop.
    #[error(
        "interrupted: the call was asked to stop; variables that it had not begun to update are as before"
    )]
    Interrupted,
    /// A file for values that do not fit into a budget, which cannot be made, written or read back.
    #[error("spill: {what}: {path}; {help}")]
    Spill {
        /// What is wrong.
        what: String,
        /// The file or folder.
        path: String,
        /// What to do.
        help: String,
    },
    /// A file that cannot be read or written, or that is not what it says.
    #[error("{path}: {what}; {help}")]
    BadFile {
        /// The file.
        path: String,
        /// What is wrong.
        what: String,
        /// What to do.
        help: String,
    },
    /// A text that is no number of bytes.
    #[error("`{text}` is no number of bytes: {why}; write it like 512MiB or 2GB")]
    BadBytes {
        /// The text.
        text: String,
        /// Why not.
        why: String,
    },
}

fn axis_range(rank: usize) -> String {
    match rank {
        0 => "no axis: a scalar has none".to_string(),
        _ => format!("-{rank} to {}", rank - 1),
    }
}

fn least_text(least: &Option<Bytes>) -> String {
    match least {
        Some(least) => format!(", the least that would do is {least} ({} bytes)", least.get()),
        None => String::new(),
    }
}

fn would_help_text(would_help: &Option<String>) -> String {
    would_help.as_ref().map_or(String::new(), |text| format!("{text}; "))
}

fn remedies_text(shortage: &Shortage) -> String {
    shortage.remedies().iter().map(|text| format!("{text}; ")).collect()
}

fn grown_text(grown: &[Holder]) -> String {
    let text = |holder: &Holder| format!("; {} holds {} more", holder.what, holder.amount());
    grown.iter().map(text).collect()
}

/// Shorthand for [`ErrorKind::BadArgument`].
pub fn bad_argument(op: &'static str, what: impl Into<String>, help: impl Into<String>) -> Error {
    ErrorKind::BadArgument { op, what: what.into(), help: help.into() }.into()
}

//! Errors as Python's: each kind is an exception of TensorFlow's name, and of the standard class that a Python user
//! would catch. An exception that a user's own function raised while it was traced passes through as it is.

use std::cell::RefCell;

use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::panic::PanicException;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tonnage::{Error, ErrorKind, Result};
use tonnage_core::error::Raised;

/// The module that has the exception classes.
static CLASSES: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

thread_local! {
    /// What a signal's handler raised while a call ran.
    static INTERRUPT: RefCell<Option<PyErr>> = const { RefCell::new(None) };
}

/// Says which module has the exception classes.
///
/// A panic becomes an exception at every entry of the extension, by pyo3: of a class that is no `Exception`, so that a
/// program's handlers would not see it. That class is given another base here, which serves all entries at once.
#[pyfunction]
pub fn set_error_classes(py: Python<'_>, module: Py<PyAny>) -> PyResult<()> {
    let base = module.bind(py).getattr("InternalError")?;
    py.get_type::<PanicException>().setattr("__bases__", (base,))?;
    let _ = CLASSES.set(py, module);
    Ok(())
}

/// Panics, for tests of what becomes of that.
#[pyfunction]
pub fn panic_for_tests(text: String) {
    std::panic::resume_unwind(Box::new(text));
}

/// An exception of a user's function as an error that can pass through Rust.
pub fn carry(error: PyErr) -> Error {
    let why = error.to_string();
    ErrorKind::Callback { why, raised: Some(Raised::new(error)) }.into()
}

/// Whether a signal's handler raised: asked now and then while a long call runs, on the thread that it was made on.
pub fn is_interrupted() -> bool {
    let asked = Python::attach(|py| {
        // A caller that holds the interpreter's lock lets others run for a moment.
        py.detach(std::thread::yield_now);
        py.check_signals()
    });
    match asked {
        Ok(()) => false,
        Err(error) => {
            INTERRUPT.with_borrow_mut(|interrupt| *interrupt = Some(error));
            true
        }
    }
}

/// How a call ended: with what a signal's handler raised meanwhile, even if that came too late to stop the call.
pub fn settled<R>(py: Python<'_>, made: Result<R>) -> PyResult<R> {
    match INTERRUPT.with_borrow_mut(Option::take) {
        Some(interrupt) => Err(interrupt),
        None => made.map_err(|error| raise(py, error)),
    }
}

/// The exception for an error.
pub fn raise(py: Python<'_>, error: Error) -> PyErr {
    if let ErrorKind::Callback { raised: Some(raised), .. } = error.kind()
        && let Some(raised) = raised.get::<PyErr>()
    {
        return raised.clone_ref(py);
    }
    let name = match error.kind() {
        ErrorKind::NeverFits { .. }
        | ErrorKind::OverBudget { .. }
        | ErrorKind::SystemRefused { .. } => "ResourceExhaustedError",
        ErrorKind::Uninitialized { .. } => "FailedPreconditionError",
        ErrorKind::Closed { .. } => "ClosedError",
        ErrorKind::Symbolic { .. } => "OperatorNotAllowedInGraphError",
        ErrorKind::Escaped { .. } => "InaccessibleTensorError",
        ErrorKind::NoGradient { .. } => "GradientError",
        ErrorKind::Tape { .. } => "TapeError",
        ErrorKind::Interrupted => "CancelledError",
        ErrorKind::DeviceFailed { .. } => "InternalError",
        ErrorKind::Callback { .. } => "UnknownError",
        ErrorKind::Recursion { .. } => "EndlessRecursionError",
        ErrorKind::NameTaken { .. } => "NameTakenError",
        // What a signature does not take.
        ErrorKind::BadArgument { op: "function", .. } => "SignatureError",
        ErrorKind::BadArgument { op: tonnage::data::PAD_TO_SHAPE, .. } => "DataLossError",
        ErrorKind::DTypeMismatch { .. } | ErrorKind::DTypeUnsupported { .. } => "DTypeError",
        _ => "InvalidArgumentError",
    };
    let mut text = error.to_string();
    if let ErrorKind::DeviceMismatch { left, .. } = error.kind() {
        let copies = format!("`tf.identity` inside of `tf.device(\"{left}\")`");
        text = text.replace(&format!("`to(\"{left}\")`"), &copies);
    }
    of_class(py, name, text)
}

/// An exception of one of the package's own classes.
pub fn of_class(py: Python<'_>, name: &str, text: String) -> PyErr {
    let Some(classes) = CLASSES.get(py) else { return PyRuntimeError::new_err(text) };
    match classes.bind(py).getattr(name) {
        Ok(class) => match class.call1((py.None(), py.None(), text.clone())) {
            Ok(value) => PyErr::from_value(value),
            Err(_) => PyRuntimeError::new_err(text),
        },
        Err(_) => PyRuntimeError::new_err(text),
    }
}

/// Where a size or a number of the program would be what only the data say.
pub fn data_decide(py: Python<'_>, what: &str) -> PyErr {
    let text = format!("{what} depends on values that are not known while a function is traced");
    let Some(classes) = CLASSES.get(py) else { return PyTypeError::new_err(text) };
    let made = classes.bind(py).getattr("DataDecideError").and_then(|class| class.call1((text,)));
    made.map_or_else(|error| error, PyErr::from_value)
}

/// An error about an argument.
pub fn type_error(text: impl Into<String>) -> PyErr {
    PyTypeError::new_err(text.into())
}

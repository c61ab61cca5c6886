//! Python callables that steps of a pipeline call back, on whichever thread runs them.
//!
//! A step holds its callable weakly: whoever made the step holds it as Python holds things, so that a callable that refers to its own
//! pipeline is garbage that Python finds.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{self, ThreadId};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::{PyTuple, PyWeakrefMethods, PyWeakrefReference};
use tonnage::{ErrorKind, Result};

use crate::errors::{carry, type_error};

/// How long the end of the program waits for callables that run on other threads.
const PATIENCE: Duration = Duration::from_secs(2);

/// Calls that run now.
static RUNNING: AtomicUsize = AtomicUsize::new(0);
/// The thread that ends the program: others call nothing any more.
static ENDED_BY: OnceLock<ThreadId> = OnceLock::new();

struct Running;

impl Running {
    fn begin() -> Result<Running> {
        RUNNING.fetch_add(1, Ordering::SeqCst);
        let running = Running;
        match ENDED_BY.get().is_some_and(|by| *by != thread::current().id()) {
            true => Err(ErrorKind::Interrupted.into()),
            false => Ok(running),
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        RUNNING.fetch_sub(1, Ordering::SeqCst);
    }
}

/// Ends what threads of pipelines do in Python: an interpreter that is going away must not be entered.
#[pyfunction]
pub fn end_callbacks(py: Python<'_>) {
    let _ = ENDED_BY.set(thread::current().id());
    py.detach(|| {
        let since = Instant::now();
        while RUNNING.load(Ordering::SeqCst) > 0 && since.elapsed() < PATIENCE {
            thread::yield_now();
        }
    });
}

/// Enters Python from a step of a pipeline.
pub fn enter<R>(f: impl FnOnce(Python<'_>) -> PyResult<R>) -> Result<R> {
    let _running = Running::begin()?;
    match Python::try_attach(f) {
        Some(made) => made.map_err(carry),
        None => Err(ErrorKind::Interrupted.into()),
    }
}

/// A callable of a step.
pub struct Callback(Py<PyWeakrefReference>);

impl Callback {
    /// The callable itself; none where it is gone.
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.bind(py).upgrade()
    }

    /// One that the caller holds for as long as the step is there.
    pub fn new(callable: &Bound<'_, PyAny>) -> PyResult<Callback> {
        PyWeakrefReference::new(callable).map(|weak| Callback(weak.unbind()))
    }

    /// Calls it.
    pub fn call<'py>(
        &self,
        py: Python<'py>,
        args: impl IntoIterator<Item = Bound<'py, PyAny>, IntoIter: ExactSizeIterator>,
    ) -> PyResult<Bound<'py, PyAny>> {
        match self.get(py) {
            Some(callable) => callable.call1(PyTuple::new(py, args)?),
            None => Err(type_error("the dataset that this step belongs to is gone")),
        }
    }
}

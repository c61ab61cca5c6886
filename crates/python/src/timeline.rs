//! Recordings of the ledger over time, and reports as files: a page for a browser, a chart for a terminal, and the formats of
//! the tools that people know.

use std::sync::{Mutex, PoisonError};

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tonnage::Plan;
use tonnage::memory::{Recording, Timeline};
use tonnage::report::{self, Picture, Report};

use crate::errors::raise;
use crate::run::run_attached;

/// Records what is held, until it is finished.
#[pyclass(frozen, name = "Recording", module = "tonnage")]
pub struct PyRecording(Mutex<Option<Recording>>);

#[pymethods]
impl PyRecording {
    /// Ends it: what was recorded.
    fn finish(&self) -> PyResult<PyTimeline> {
        let recording = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        match recording {
            Some(recording) => Ok(PyTimeline(recording.finish())),
            None => Err(PyRuntimeError::new_err("the recording is finished already")),
        }
    }
}

/// Begins to record a device.
#[pyfunction]
pub fn start_recording(py: Python<'_>, device: &str) -> PyResult<PyRecording> {
    let made = run_attached(py, || tonnage::memory::record(device))?;
    Ok(PyRecording(Mutex::new(Some(made))))
}

/// What a device held over time, by line, and the planned calls step by step.
#[pyclass(frozen, name = "Timeline", module = "tonnage")]
pub struct PyTimeline(Timeline);

#[pymethods]
impl PyTimeline {
    /// The most that was held, in bytes.
    #[getter]
    fn peak(&self) -> u64 {
        self.0.peak().in_use.get()
    }

    /// How long it went on, in seconds.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.length as f64 / 1e9
    }

    /// How many buffers were seen.
    #[getter]
    fn buffers(&self) -> usize {
        self.0.spans.len()
    }

    /// How many planned calls were seen.
    #[getter]
    fn calls(&self) -> usize {
        self.0.calls.len()
    }

    /// As a chart for a terminal.
    #[pyo3(signature = (columns = 80, lines = 12))]
    fn chart(&self, columns: usize, lines: usize) -> String {
        Picture::of_timeline("run", &self.0).chart(columns, lines, None, false)
    }

    /// Writes it in the format that the file's name says.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        let saved = match is_page(&path.to_lowercase()) {
            true => report::save_html(path, &Report::new("Tonnage: a run").timeline(&self.0)),
            false => report::save(path, &Picture::of_timeline("run", &self.0)),
        };
        saved.map_err(|e| raise(py, e))
    }
}

/// A plan as a chart for a terminal.
pub fn plan_chart(plan: &Plan, columns: usize, lines: usize) -> String {
    Picture::of_plan("plan", plan).chart(columns, lines, None, false)
}

/// A plan as a page of HTML.
pub fn plan_page(plan: &Plan) -> Report {
    Report::new("Tonnage: a plan").plan(plan)
}

/// Writes a plan in the format that the file's name says.
pub fn save_plan(py: Python<'_>, path: &str, plan: &Plan) -> PyResult<()> {
    let saved = match path.to_lowercase() {
        name if name.ends_with(".txt") => {
            return Ok(std::fs::write(path, format!("{plan}\n"))?);
        }
        name if is_page(&name) => report::save_html(path, &plan_page(plan)),
        _ => report::save(path, &Picture::of_plan("plan", plan)),
    };
    saved.map_err(|e| raise(py, e))
}

fn is_page(path: &str) -> bool {
    path.ends_with(".html") || path.ends_with(".htm")
}

//! What is held, by whom, and what a plan says.

use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tonnage::bind::Budgets;
use tonnage::memory::{self, Action};
use tonnage::{Bytes, Plan, Ran};

use crate::errors::raise;
use crate::function::{budget_of, bytes};
use crate::run::run_attached;
use crate::timeline;

/// A plan: the order, an address for every buffer, and the peak.
#[pyclass(frozen, name = "Plan", module = "tonnage")]
pub struct PyPlan(pub Arc<Plan>);

#[pymethods]
impl PyPlan {
    /// The most that is held at once, in bytes.
    #[getter]
    fn peak(&self) -> u64 {
        self.0.peak().get()
    }

    /// Whether the peak is an upper bound: data decide on a branch, on a number of iterations or on a size, so that a call
    /// may use less.
    #[getter]
    fn is_bound(&self) -> bool {
        self.0.is_bound
    }

    /// What a call on a device obtains of host memory, in bytes: what it spills there, and what passes through there.
    #[getter]
    fn host_bytes(&self) -> u64 {
        self.0.host_bytes().get()
    }

    /// What a call obtains, in bytes.
    #[getter]
    fn obtains(&self) -> u64 {
        self.0.obtains().get()
    }

    /// What a call sends to other ranks, in bytes.
    #[getter]
    fn sent(&self) -> u64 {
        self.0.sent().get()
    }

    /// Seconds that a call is expected to take, by the figures of this machine.
    #[getter]
    fn seconds(&self) -> f64 {
        self.0.seconds(&tonnage::machine())
    }

    /// What it writes to a file, in bytes.
    #[getter]
    fn spilled(&self) -> u64 {
        self.0.spilled().get()
    }

    /// What it reads from files that tensors stay in, in bytes.
    #[getter]
    fn reads(&self) -> u64 {
        self.0.reads().get()
    }

    /// What it writes to files that variables are stored in, in bytes.
    #[getter]
    fn writes(&self) -> u64 {
        self.0.writes().get()
    }

    /// What lives at the peak: kind, what, line, how many, bytes; the largest first.
    fn live_at_peak<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        for holder in self.0.live_at_peak() {
            let made = PyDict::new(py);
            made.set_item("kind", holder.kind.to_string())?;
            made.set_item("what", &holder.what)?;
            made.set_item("source", holder.source.to_string())?;
            made.set_item("count", holder.count)?;
            made.set_item("bytes", holder.bytes.get())?;
            all.append(made)?;
        }
        Ok(all)
    }

    /// Every step: its op, line, bytes, what is live, and what it does to memory.
    fn steps<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let all = PyList::empty(py);
        for step in self.0.explain().steps {
            let made = PyDict::new(py);
            made.set_item("op", step.op)?;
            made.set_item("fused", step.fused)?;
            made.set_item("memory", format!("{:?}", step.memory))?;
            made.set_item("bytes", step.bytes.get())?;
            made.set_item("live", step.live.get())?;
            made.set_item("source", step.source.map(|s| s.to_string()))?;
            made.set_item("layer", step.layer.as_deref())?;
            all.append(made)?;
        }
        Ok(all)
    }

    /// What lives at the peak by layer of the model, in bytes; outside of layers the name is empty.
    fn by_layer(&self) -> Vec<(String, u64)> {
        let shares = self.0.explain().by_layer;
        shares.into_iter().map(|share| (share.name, share.bytes.get())).collect()
    }

    /// What is held step by step, as a chart for a terminal.
    #[pyo3(signature = (columns = 80, lines = 12))]
    fn chart(&self, columns: usize, lines: usize) -> String {
        timeline::plan_chart(&self.0, columns, lines)
    }

    /// As a page of HTML, with a picture of addresses over steps.
    fn html(&self) -> String {
        timeline::plan_page(&self.0).html()
    }

    /// Writes it in the format that the file's name says: `.html`, `.csv`, `.json`, `.trace.json`, `.pb.gz` or `.txt`.
    fn save(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        timeline::save_plan(py, path, &self.0)
    }

    fn __str__(&self) -> String {
        self.0.to_string()
    }

    fn __repr__(&self) -> String {
        format!("<tonnage.Plan: peak={} steps={}>", self.0.peak(), self.0.explain().steps.len())
    }
}

/// What a call took.
pub fn ran<'py>(py: Python<'py>, ran: &Ran) -> PyResult<Bound<'py, PyDict>> {
    let made = PyDict::new(py);
    made.set_item("predicted", ran.peak.get())?;
    made.set_item("used", ran.measured.used.get())?;
    made.set_item("obtained", ran.measured.obtained.get())?;
    made.set_item("spilled", ran.measured.spilled.get())?;
    made.set_item("seconds", ran.seconds)?;
    made.set_item("text", ran.to_string())?;
    Ok(made)
}

/// What a device holds.
#[pyfunction]
pub fn memory_info<'py>(py: Python<'py>, device: &str) -> PyResult<Bound<'py, PyDict>> {
    let info = memory::info(device).map_err(|e| raise(py, e))?;
    let made = PyDict::new(py);
    made.set_item("current", info.in_use.get())?;
    made.set_item("peak", info.peak.get())?;
    made.set_item("cached", info.cached.get())?;
    made.set_item("away", info.away.get())?;
    made.set_item("reserved", info.reserved.get())?;
    made.set_item("overhead", info.overhead.get())?;
    made.set_item("graphs", info.graphs.get())?;
    made.set_item("limit", info.limit.map(|b| b.get()))?;
    let holders = PyList::empty(py);
    for holder in &info.holders {
        let one = PyDict::new(py);
        one.set_item("kind", holder.owner.kind.to_string())?;
        one.set_item("what", holder.owner.what)?;
        one.set_item("name", holder.owner.name.as_ref().map(|n| n.to_string()))?;
        one.set_item("source", holder.owner.source.to_string())?;
        one.set_item("bytes", holder.bytes.get())?;
        one.set_item("buffers", holder.buffers)?;
        holders.append(one)?;
    }
    made.set_item("holders", holders)?;
    made.set_item("text", info.to_string())?;
    Ok(made)
}

/// Lets the peak start again from what is held now.
#[pyfunction]
pub fn reset_peak(py: Python<'_>, device: &str) -> PyResult<()> {
    memory::reset_peak(device).map_err(|e| raise(py, e))
}

/// Gives back what a device keeps warm, and says how much that was.
#[pyfunction]
pub fn empty_cache(py: Python<'_>, device: &str) -> PyResult<u64> {
    memory::empty_cache(device).map(|bytes| bytes.get()).map_err(|e| raise(py, e))
}

/// The most that a device may hold; `None` is what the machine has.
#[pyfunction]
#[pyo3(signature = (device, limit))]
pub fn set_limit(py: Python<'_>, device: &str, limit: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    let limit = limit.map(bytes).transpose()?;
    run_attached(py, || memory::set_limit(device, limit))
}

/// Where values that wait in a file wait.
#[pyfunction]
pub fn set_spill_folder(py: Python<'_>, path: String) -> PyResult<()> {
    memory::set_spill_folder(path).map_err(|e| raise(py, e))
}

/// Keeps variables that are made from here on in files, or no longer; what held before.
#[pyfunction]
pub fn keep_in_files(in_files: bool) -> bool {
    tonnage::bind::keep_in_files(in_files)
}

/// Gives a budget to the functions that this thread calls from here on; the one before.
#[pyfunction]
pub fn enter_budget(py: Python<'_>, budget: &Bound<'_, PyAny>) -> PyResult<(Option<u64>, bool)> {
    let before = tonnage::bind::enter_budget(budget_of(budget)?).map_err(|e| raise(py, e))?;
    Ok((before.bytes.map(Bytes::get), before.least))
}

/// Whether the functions that this thread calls now have a budget.
#[pyfunction]
pub fn has_budget_around() -> bool {
    !tonnage::bind::budget_around().is_none()
}

/// Brings the budget before back.
#[pyfunction]
#[pyo3(signature = (before))]
pub fn leave_budget(before: (Option<u64>, bool)) {
    let (bytes, least) = before;
    tonnage::bind::leave_budget(Budgets { bytes: bytes.map(Bytes::new), least });
}

/// What the system says that this process holds, in bytes.
#[pyfunction]
pub fn resident() -> Option<u64> {
    memory::resident().map(|bytes| bytes.get())
}

/// What an op did: op, line, action, bytes.
type Done = (String, String, String, u64);

/// Runs a callable and says what each op did to memory: op, line, action, bytes.
#[pyfunction]
pub fn record_memory<'py>(
    py: Python<'py>,
    f: &Bound<'py, PyAny>,
) -> PyResult<(Bound<'py, PyAny>, Vec<Done>)> {
    let _ = py;
    let scope = memory::scope();
    let made = f.call0()?;
    let report = scope.report();
    let line = |e: &memory::Event| {
        let action: Action = e.action;
        (e.op.to_string(), e.source.to_string(), action.name().to_string(), e.bytes.get())
    };
    Ok((made, report.events.iter().map(line).collect()))
}

/// Sends what Tonnage has to tell without being asked to a callable.
#[pyfunction]
pub fn listen(callable: Py<PyAny>) {
    tonnage::notices::listen(move |notice| {
        let text = notice.to_string();
        // A listener that fails, or an interpreter that ends, must not fail the call that gave the notice.
        let told = Python::try_attach(|py| callable.bind(py).call1((text.clone(),)).is_ok());
        if told != Some(true) {
            eprintln!("tonnage: {text}");
        }
    });
}

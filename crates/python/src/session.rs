//! Deferred graphs and sessions, for programs in the manner of TensorFlow 1.

use pyo3::prelude::*;
use tonnage::{Graph, Session, Tensor, bind};

use crate::args::{Dt, ShapeArg, ValueArg};
use crate::nest::{LeafPolicy, Nest};
use crate::run::{self, MUCH, run, run_attached};
use crate::strings::{FlatValues, PyValue};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;

/// A graph that is built first and run later.
#[pyclass(frozen, subclass, weakref, dict, name = "Graph", module = "tonnage")]
pub struct PyGraph(Graph);

#[pymethods]
impl PyGraph {
    #[new]
    fn new(py: Python<'_>) -> PyResult<PyGraph> {
        run_attached(py, || Ok(Graph::new())).map(PyGraph)
    }

    /// Lets ops go into it until it is left.
    fn enter(&self) {
        run::enter_graph(Some(self.0.clone()));
    }

    /// As it was before.
    fn leave(&self) {
        run::leave_graph();
    }

    /// A value that is fed.
    fn add_placeholder(
        &self,
        py: Python<'_>,
        name: &str,
        dtype: Dt,
        shape: ShapeArg,
    ) -> PyResult<PyTensor> {
        let shape = shape.with_batch().open(&format!("{name}_"));
        // Not through the graph that is built: this is it.
        let made = match crate::line::here(py) {
            Some(line) => line.stand_for(|| self.0.placeholder(name, dtype.0, shape)),
            None => self.0.placeholder(name, dtype.0, shape),
        };
        made.map(PyTensor::from).map_err(|e| crate::errors::raise(py, e))
    }

    /// Lets a variable be read as a value from here on, without an update of it.
    fn show(
        &self,
        py: Python<'_>,
        variable: &Bound<'_, PyVariable>,
        value: &Bound<'_, PyTensor>,
    ) -> PyResult<()> {
        let (variable, value) = (&variable.get().variable, &value.get().tensor);
        self.0.show(variable, value).map_err(|e| crate::errors::raise(py, e))
    }

    /// Lets what is built from here on wait for these values; what was waited for before.
    fn wait_for(
        &self,
        py: Python<'_>,
        values: Vec<PyRef<'_, PyTensor>>,
    ) -> PyResult<Vec<PyTensor>> {
        let values: Vec<Tensor> = values.iter().map(|t| t.tensor.clone()).collect();
        let before = self.0.wait_for(&values).map_err(|e| crate::errors::raise(py, e))?;
        Ok(before.into_iter().map(Into::into).collect())
    }

    /// The names of its placeholders.
    fn placeholder_names(&self) -> Vec<String> {
        self.0.placeholders().into_iter().map(|(name, _)| name).collect()
    }

    /// The variables that were made in it.
    fn variables(&self) -> Vec<PyVariable> {
        self.0.variables().into_iter().map(|variable| PyVariable { variable }).collect()
    }

    /// Its nodes as text.
    fn text(&self) -> String {
        self.0.to_string()
    }
}

/// Runs a graph, and owns the values of its variables.
#[pyclass(frozen, name = "RawSession", module = "tonnage")]
pub struct PySession(Session);

#[pymethods]
impl PySession {
    #[new]
    fn new(py: Python<'_>, graph: &Bound<'_, PyGraph>) -> PySession {
        let make = || Session::new(&graph.get().0);
        PySession(match crate::line::here(py) {
            Some(line) => line.stand_for(make),
            None => make(),
        })
    }

    /// Gives every variable its first value, or one of them.
    #[pyo3(signature = (variable = None))]
    fn initialize(&self, py: Python<'_>, variable: Option<&Bound<'_, PyVariable>>) -> PyResult<()> {
        let declared = variable.map(|v| v.get().variable.clone());
        run::eagerly(|| {
            run(py, MUCH, || match &declared {
                Some(declared) => self.0.initialize_variable(declared),
                None => self.0.initialize(),
            })
        })
    }

    /// Computes what is asked for, and runs what leads to `updates`.
    fn run<'py>(
        &self,
        py: Python<'py>,
        fetches: &Bound<'py, PyAny>,
        updates: Vec<PyRef<'py, PyTensor>>,
        feeds: Vec<(String, PyRef<'py, PyTensor>)>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let fetches = Nest::of(fetches, LeafPolicy::Tensors)?;
        let updates: Vec<Tensor> = updates.iter().map(|t| t.tensor.clone()).collect();
        let updates: Vec<&Tensor> = updates.iter().collect();
        let feeds: Vec<(String, Tensor)> =
            feeds.into_iter().map(|(name, t)| (name, t.tensor.clone())).collect();
        let made = run::eagerly(|| {
            run(py, MUCH, || {
                let feeds = feeds.iter().map(|(name, t)| (name.as_str(), t.clone()));
                self.0.run_with(&fetches, &updates, feeds)
            })
        })?;
        made.object(py)
    }

    /// The session's value of a variable.
    fn value(&self, py: Python<'_>, variable: &Bound<'_, PyVariable>) -> PyResult<PyTensor> {
        let declared = &variable.get().variable;
        run::eagerly(|| run_attached(py, || self.0.variable(declared)?.read())).map(Into::into)
    }

    /// Whether a variable has a value in this session.
    fn is_initialized(&self, py: Python<'_>, variable: &Bound<'_, PyVariable>) -> PyResult<bool> {
        let declared = &variable.get().variable;
        run_attached(py, || Ok(self.0.variable(declared)?.is_initialized()))
    }

    /// Gives a variable another value in this session.
    fn set(
        &self,
        py: Python<'_>,
        variable: &Bound<'_, PyVariable>,
        value: &Bound<'_, PyTensor>,
    ) -> PyResult<()> {
        let (declared, value) = (&variable.get().variable, &value.get().tensor);
        run::eagerly(|| run_attached(py, || self.0.variable(declared)?.assign(value)))
    }

    /// Frees everything that it holds.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.0.close().map_err(|e| crate::errors::raise(py, e))
    }
}

/// Whether ops become nodes of a graph.
#[pyfunction]
pub fn is_symbolic() -> bool {
    run::is_symbolic()
}

/// Whether a body or a branch is being traced.
#[pyfunction]
pub fn is_in_region() -> bool {
    bind::is_in_region()
}

/// Whether a function, or a body or branch, is being traced.
#[pyfunction]
pub fn is_tracing() -> bool {
    bind::is_tracing()
}

/// The value of a tensor that has one, or that constants alone decide on while a function is traced.
#[pyfunction]
pub fn known_value(x: ValueArg) -> Option<PyValue> {
    let FlatValues { tensors, kinds } = FlatValues::of([x.0]);
    let tensors = tensors.iter().map(bind::known).collect::<Option<Vec<_>>>()?;
    FlatValues { tensors, kinds }.values().ok()?.pop().map(PyValue::from)
}

/// Calls a callable as if nothing were traced and no graph built.
#[pyfunction]
pub fn call_eagerly(f: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    run::eagerly(|| f.call0().map(Bound::unbind))
}

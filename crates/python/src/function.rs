//! Functions: a Python callable that is traced and planned.

use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tonnage::{Bytes, Function, Result, bind};

use crate::errors::{self, carry};
use crate::line;
use crate::memory::{PyPlan, ran};
use crate::nest::{As, Nest};
use crate::run::current_graph;
use crate::variable::PyVariable;

type Body = Box<dyn Fn(Nest) -> Result<Nest> + Send + Sync>;

/// A Python callable as a planned program.
#[pyclass(frozen, subclass, weakref, dict, name = "Function", module = "tonnage")]
pub struct PyFunction(Function<Nest, Nest, Body>, Callable);

/// The callable, shared with the closure that is traced, so that the garbage collector sees it once.
type Callable = Arc<Mutex<Option<Py<PyAny>>>>;

/// Bytes as users write them: a number, or text such as "512MiB".
pub fn bytes(given: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(number) = given.extract::<u64>() {
        return Ok(Bytes::new(number));
    }
    let text: String = given.extract()?;
    Bytes::from_str(&text).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// What runs when it is traced: the callable, with symbols for tensors.
fn body(callable: Callable) -> Body {
    Box::new(move |arguments: Nest| {
        Python::attach(|py| {
            let go = || -> PyResult<Nest> {
                let held = callable.lock().unwrap_or_else(PoisonError::into_inner);
                let Some(callable) = held.as_ref().map(|c| c.clone_ref(py)) else {
                    return Err(PyValueError::new_err("the function is gone"));
                };
                drop(held);
                let given = arguments.object(py)?;
                let given = given.cast::<PyTuple>()?;
                let args = given.get_item(0)?.cast_into::<PyTuple>()?;
                let made = match given.len() {
                    1 => callable.bind(py).call1(args)?,
                    _ => {
                        let kwargs = given.get_item(1)?.cast_into::<PyDict>()?;
                        callable.bind(py).call(args, Some(&kwargs))?
                    }
                };
                Nest::of(&made, As::Tensors)
            };
            go().map_err(carry)
        })
    })
}

#[pymethods]
impl PyFunction {
    #[new]
    #[pyo3(signature = (callable, signature, budget, reduce_retracing, spill, exact))]
    fn new(
        py: Python<'_>,
        callable: Py<PyAny>,
        signature: Option<&Bound<'_, PyTuple>>,
        budget: Option<&Bound<'_, PyAny>>,
        reduce_retracing: bool,
        spill: bool,
        exact: bool,
    ) -> PyResult<PyFunction> {
        let callable: Callable = Arc::new(Mutex::new(Some(callable)));
        let body = body(callable.clone());
        let make = || tonnage::function::<Nest, Nest, Body>(body);
        let mut made = match line::here(py) {
            Some(line) => line.stand_for(make),
            None => make(),
        };
        if let Some(signature) = signature {
            made = made.signature(Nest::of_call(signature, None)?);
        }
        if reduce_retracing {
            made = made.reduce_retracing();
        }
        if let Some(budget) = budget {
            made = made.budget(bytes(budget)?).map_err(|e| errors::raise(py, e))?;
        }
        if !spill {
            made = made.no_spill();
        }
        if exact {
            made = made.exact();
        }
        Ok(PyFunction(made, callable))
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        match self.1.try_lock() {
            Ok(callable) => callable.iter().try_for_each(|callable| visit.call(callable)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let arguments = Nest::of_call(args, kwargs)?;
        let made = match current_graph().is_some() || bind::is_tracing() {
            true => crate::run::run_attached(py, || self.0.call(arguments))?,
            false => crate::run::run(py, crate::run::MUCH, || self.0.call(arguments))?,
        };
        made.object(py)
    }

    /// What a call with such arguments would take; runs nothing.
    #[pyo3(signature = (*args, **kwargs))]
    fn plan(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyPlan> {
        let arguments = Nest::of_call(args, kwargs)?;
        crate::run::run(py, crate::run::MUCH, || self.0.plan(&arguments)).map(PyPlan)
    }

    /// The largest size of the one open dim that fits a budget.
    fn max_batch(
        &self,
        py: Python<'_>,
        budget: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<usize> {
        let (arguments, budget) = (Nest::of_call(args, None)?, bytes(budget)?);
        crate::run::run(py, crate::run::MUCH, || self.0.max_batch(&arguments, budget))
    }

    /// The graph for such arguments, as text.
    #[pyo3(signature = (*args, **kwargs))]
    fn graph_text(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<String> {
        let arguments = Nest::of_call(args, kwargs)?;
        crate::run::run(py, crate::run::MUCH, || self.0.graph(&arguments))
    }

    /// Traces it for such arguments, if it was not yet, and says what comes out: types as text.
    #[pyo3(signature = (*args, **kwargs))]
    fn trace(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<()> {
        let arguments = Nest::of_call(args, kwargs)?;
        crate::run::run(py, crate::run::MUCH, || self.0.concrete(&arguments).map(drop))
    }

    /// What the last planned call took.
    fn last_run<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.0.last_run().map(|last| ran(py, &last)).transpose()
    }

    /// How many traces are remembered.
    #[getter]
    fn traces(&self) -> usize {
        self.0.traces()
    }

    /// What traces and plans take themselves.
    #[getter]
    fn graph_bytes(&self) -> u64 {
        self.0.graph_bytes().get()
    }

    /// The variables that were made while it was traced.
    #[getter]
    fn made_variables(&self) -> Vec<PyVariable> {
        self.0.variables().into_iter().map(|variable| PyVariable { variable }).collect()
    }

    /// Lets it run op by op, or not; `None` does as all functions do.
    #[pyo3(signature = (eagerly))]
    fn run_eagerly(&self, eagerly: Option<bool>) {
        self.0.run_eagerly(eagerly);
    }
}

/// Lets all functions run op by op.
#[pyfunction]
pub fn run_functions_eagerly(eagerly: bool) {
    tonnage::run_functions_eagerly(eagerly);
}

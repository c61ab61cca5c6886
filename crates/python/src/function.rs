//! Functions: a Python callable that is traced and planned.
//!
//! Decisions: `docs/decisions/data-decided-sizes-in-python.md`, `docs/decisions/open-lengths-in-python.md`.

use std::str::FromStr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tonnage::{Budget, Bytes, Dim, Function, Result, Tensor, TensorType, bind};

use crate::errors::carry;
use crate::line;
use crate::memory::{PyPlan, ran};
use crate::nest::{LeafPolicy, Nest};
use crate::run::{Calling, MUCH, current_graph, run, run_attached};
use crate::variable::PyVariable;

type Body = Box<dyn Fn(Nest) -> Result<Nest> + Send + Sync>;

type Planned = Function<Nest, Nest, Body>;

/// A Python callable as a planned program.
#[pyclass(frozen, subclass, weakref, dict, name = "Function", module = "tonnage")]
pub struct PyFunction {
    planned: Planned,
    callable: Callable,
    /// Of a function with a signature: what it says, and how it runs for calls that one trace cannot serve.
    loose: Option<Loose>,
}

/// Open lengths of a signature that have no names: first ones are taken to be the same, the batch, and one trace serves all. A
/// function for which that is not so is traced for the lengths of its calls.
struct Loose {
    signature: Vec<TensorType>,
    planned: Planned,
    is_needed: AtomicBool,
}

impl Loose {
    /// Whether arguments are of the signature, but for lengths that one name stands for.
    fn takes(&self, given: &[Tensor]) -> bool {
        let pairs = || self.signature.iter().zip(given);
        self.signature.len() == given.len()
            && pairs().all(|(says, tensor)| {
                let (shape, dtype) = (tensor.shape(), tensor.dtype());
                let fits = |(a, b): (&Dim, &Dim)| a.known().is_none() || a == b;
                says.dtype == dtype
                    && says.shape.len() == shape.len()
                    && says.shape.iter().zip(shape.iter()).all(fits)
            })
    }
}

/// The callable, shared with the closure that is traced, so that the garbage collector sees it once.
type Callable = Arc<Mutex<Option<Py<PyAny>>>>;

/// Bytes as users write them: a number, or text such as "512MiB".
pub fn bytes(given: &Bound<'_, PyAny>) -> PyResult<Bytes> {
    if let Ok(number) = given.extract::<u64>() {
        return Ok(Bytes::new(number));
    }
    let Ok(text) = given.extract::<String>() else {
        let what = given.repr()?;
        let help = "a whole number from 0 to 2**64 - 1, or text such as '512MiB', is needed";
        return Err(PyValueError::new_err(format!("{what} is no number of bytes: {help}")));
    };
    Bytes::from_str(&text).map_err(|e| PyValueError::new_err(e.to_string()))
}

/// A budget as users write it: bytes, or "least".
pub fn budget_of(given: &Bound<'_, PyAny>) -> PyResult<Budget> {
    match given.extract::<String>() {
        Ok(text) => Budget::from_str(&text).map_err(|e| PyValueError::new_err(e.to_string())),
        Err(_) => bytes(given).map(Budget::Bytes),
    }
}

/// The same for what is written in Python.
#[pyfunction]
pub fn byte_count(given: &Bound<'_, PyAny>) -> PyResult<u64> {
    Ok(bytes(given)?.get())
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
                Nest::of(&made, LeafPolicy::Tensors)
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
        let budget = budget.map(budget_of).transpose()?;
        let line = line::here(py);
        let make = || -> PyResult<Planned> {
            let body = body(callable.clone());
            let make = || tonnage::function::<Nest, Nest, Body>(body);
            let mut made = match line {
                Some(line) => line.stand_for(make),
                None => make(),
            };
            if let Some(budget) = budget {
                made = run_attached(py, || made.budget(budget))?;
            }
            if !spill {
                made = made.no_spill();
            }
            Ok(if exact { made.exact() } else { made })
        };
        let (mut planned, mut loose) = (make()?, None);
        if let Some(signature) = signature {
            let arguments = Nest::of_call(signature, None)?;
            let types: Vec<TensorType> = arguments.tensors.iter().map(Tensor::ty).collect();
            if types.iter().any(|ty| ty.shape.iter().any(|dim| dim.known().is_none())) {
                let planned = make()?.reduce_retracing();
                loose =
                    Some(Loose { signature: types, planned, is_needed: AtomicBool::new(false) });
            }
            planned = planned.signature(arguments);
        }
        if reduce_retracing {
            planned = planned.reduce_retracing();
        }
        Ok(PyFunction { planned, callable, loose })
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> std::result::Result<(), PyTraverseError> {
        match self.callable.try_lock() {
            Ok(callable) => callable.iter().try_for_each(|callable| visit.call(callable)),
            Err(_) => Ok(()),
        }
    }

    fn __clear__(&self) {
        *self.callable.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, function) = (slf.py(), slf.get());
        let arguments = Nest::of_call(args, kwargs)?;
        if current_graph().is_some() || bind::is_tracing() {
            return run_attached(py, || function.planned.call(arguments))?.object(py);
        }
        let _calling = Calling::begin();
        let planned = match &function.loose {
            Some(loose) if loose.is_needed.load(Relaxed) && loose.takes(&arguments.tensors) => {
                &loose.planned
            }
            _ => &function.planned,
        };
        match run(py, MUCH, || planned.call(arguments)) {
            Ok(made) => made.object(py),
            Err(error) => function.once_more(slf, args, kwargs, error),
        }
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
        run(py, MUCH, || self.planned.plan(&arguments)).map(PyPlan)
    }

    /// The largest size of the one open dim that fits a budget.
    fn max_batch(
        &self,
        py: Python<'_>,
        budget: &Bound<'_, PyAny>,
        args: &Bound<'_, PyTuple>,
    ) -> PyResult<usize> {
        let (arguments, budget) = (Nest::of_call(args, None)?, bytes(budget)?);
        run(py, MUCH, || self.planned.max_batch(&arguments, budget))
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
        run(py, MUCH, || self.planned.graph(&arguments))
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
        run(py, MUCH, || self.planned.concrete(&arguments).map(drop))
    }

    /// What the last planned call took.
    fn last_run<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        self.planned.last_run().map(|last| ran(py, &last)).transpose()
    }

    /// How many traces are cached.
    #[getter]
    fn traces(&self) -> usize {
        self.planned.traces()
    }

    /// What traces and plans take themselves.
    #[getter]
    fn graph_bytes(&self) -> u64 {
        self.planned.graph_bytes().get()
    }

    /// The variables that were made while it was traced.
    #[getter]
    fn made_variables(&self) -> Vec<PyVariable> {
        self.planned.variables().into_iter().map(|variable| PyVariable { variable }).collect()
    }

    /// Lets it run op by op, or not; `None` does as all functions do.
    #[pyo3(signature = (eagerly))]
    fn run_eagerly(&self, eagerly: Option<bool>) {
        self.planned.run_eagerly(eagerly);
    }
}

impl PyFunction {
    /// What a call that failed is after all: traced for its own lengths, or run op by op, where that helps.
    fn once_more<'py>(
        &self,
        slf: &Bound<'py, Self>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        error: PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        // What the package makes for itself knows no other way.
        if !slf.hasattr("_fitted")? {
            return Err(error);
        }
        let mut planned = &self.planned;
        if error.is_instance_of::<PyValueError>(py) {
            // Numbers and lists where a signature has tensors, arguments by name.
            let fitted = slf.call_method1("_fitted", (args, kwargs))?;
            if let Ok(fitted) = fitted.cast::<PyTuple>() {
                return slf.call1(fitted);
            }
        }
        if let Some(loose) = self.loose.as_ref().filter(|l| !l.is_needed.load(Relaxed))
            && error.is_instance_of::<PyValueError>(py)
        {
            let arguments = Nest::of_call(args, kwargs)?;
            let was_traced = planned.traces() > 0;
            let fits = !was_traced || self.planned.concrete(&arguments).is_err();
            if fits && loose.takes(&arguments.tensors) {
                loose.is_needed.store(!was_traced, Relaxed);
                planned = &loose.planned;
                match run(py, MUCH, || planned.call(arguments)) {
                    Ok(made) => return made.object(py),
                    Err(error) => return self.op_by_op(slf, planned, args, kwargs, error),
                }
            }
        }
        self.op_by_op(slf, planned, args, kwargs, error)
    }

    /// Where the data decide on sizes there is nothing to plan: then op by op, if Python agrees.
    fn op_by_op<'py>(
        &self,
        slf: &Bound<'py, Self>,
        planned: &Planned,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
        error: PyErr,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = slf.py();
        let asked = (error.value(py), error.traceback(py));
        if !error.is_instance_of::<PyTypeError>(py)
            || !slf.call_method1("_may_run_eagerly", asked)?.is_truthy()?
        {
            return Err(error);
        }
        planned.run_eagerly(true);
        let arguments = Nest::of_call(args, kwargs)?;
        run(py, MUCH, || planned.call(arguments))?.object(py)
    }
}

/// Lets all functions run op by op.
#[pyfunction]
pub fn run_functions_eagerly(eagerly: bool) {
    tonnage::run_functions_eagerly(eagerly);
}

//! Gradient tapes. A tape belongs to the thread that made it: it lives in a table of that thread, and Python holds its
//! number.

use std::cell::RefCell;
use std::collections::HashMap;
use std::thread::ThreadId;

use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use tonnage::{Gradient, GradientTape, IndexedSlices, Result, Sources, Tensor, Variable, Watched};

use crate::run::{MUCH, run, run_attached};
use crate::tensor::{PyTensor, sugar};
use crate::variable::{PyVariable, gradient};

thread_local! {
    static TAPES: RefCell<HashMap<u64, GradientTape>> = RefCell::default();
    static NEXT: RefCell<u64> = const { RefCell::new(0) };
}

/// A tape of the thread that made it.
#[pyclass(frozen, name = "Tape", module = "tonnage")]
pub struct PyTape {
    number: u64,
    thread: ThreadId,
}

/// A source of gradients: a tensor or a variable.
enum GradientSource {
    Tensor(Tensor),
    Variable(Variable),
}

impl GradientSource {
    fn extract(given: &Bound<'_, PyAny>) -> PyResult<GradientSource> {
        if let Ok(variable) = given.cast::<PyVariable>() {
            return Ok(GradientSource::Variable(variable.get().variable.clone()));
        }
        match given.cast::<PyTensor>() {
            Ok(tensor) => Ok(GradientSource::Tensor(tensor.get().tensor.clone())),
            Err(_) => {
                let class = given.get_type();
                let text = format!("a tape watches tensors and variables, not {class}");
                Err(crate::errors::type_error(text))
            }
        }
    }

    fn watched(&self) -> &dyn Watched {
        match self {
            GradientSource::Tensor(tensor) => tensor,
            GradientSource::Variable(variable) => variable,
        }
    }
}

struct SourceList(Vec<GradientSource>);

impl Sources for SourceList {
    type Gradients = Vec<Gradient>;
    fn for_each(&self, f: &mut dyn FnMut(&dyn Watched)) {
        self.0.iter().for_each(|of| f(of.watched()));
    }
    fn nest(&self, next: &mut dyn FnMut() -> Gradient) -> Vec<Gradient> {
        self.0.iter().map(|_| next()).collect()
    }
}

impl PyTape {
    fn with<R>(&self, f: impl FnOnce(&mut GradientTape) -> Result<R>) -> Result<R> {
        // Taken out while it is used: what is run may make and drop tapes.
        let Some(mut tape) = TAPES.with_borrow_mut(|tapes| tapes.remove(&self.number)) else {
            let what = "the tape was made on another thread, or is in use".to_string();
            let help = "make one on each thread".to_string();
            return Err(tonnage::ErrorKind::Tape { what, help }.into());
        };
        let made = f(&mut tape);
        TAPES.with_borrow_mut(|tapes| tapes.insert(self.number, tape));
        made
    }
}

#[pymethods]
impl PyTape {
    #[new]
    fn new(persistent: bool, watch_variables: bool) -> PyTape {
        let tape = match persistent {
            true => GradientTape::persistent(),
            false => GradientTape::new(),
        };
        let tape = tape.watch_accessed_variables(watch_variables);
        let number = NEXT.with_borrow_mut(|next| {
            *next += 1;
            *next
        });
        TAPES.with_borrow_mut(|tapes| tapes.insert(number, tape));
        PyTape { number, thread: std::thread::current().id() }
    }

    /// Records nothing until it goes on.
    fn pause(&self, py: Python<'_>) -> PyResult<()> {
        run_attached(py, || {
            self.with(|tape| {
                tape.pause();
                Ok(())
            })
        })
    }

    /// Records again.
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        run_attached(py, || {
            self.with(|tape| {
                tape.resume();
                Ok(())
            })
        })
    }

    /// Forgets everything.
    fn reset(&self, py: Python<'_>) -> PyResult<()> {
        run_attached(py, || {
            self.with(|tape| {
                tape.reset();
                Ok(())
            })
        })
    }

    /// Watches a tensor or a variable.
    fn watch(&self, py: Python<'_>, source: &Bound<'_, PyAny>) -> PyResult<()> {
        let of = GradientSource::extract(source)?;
        run_attached(py, || {
            self.with(|tape| {
                tape.watch(of.watched());
                Ok(())
            })
        })
    }

    /// Numbers of the variables that it watched.
    fn watched_variables(&self, py: Python<'_>) -> PyResult<Vec<u64>> {
        run_attached(py, || self.with(|tape| Ok(tape.watched_variables())))
    }

    /// Gradients of the sum of targets; `None` for what they do not depend on, or what was not watched.
    #[pyo3(signature = (targets, sources, outputs))]
    fn gradient(
        &self,
        py: Python<'_>,
        targets: Vec<PyRef<'_, PyTensor>>,
        sources: Vec<Bound<'_, PyAny>>,
        outputs: Option<Vec<PyRef<'_, PyTensor>>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let (targets, outputs) = (plain(&targets), outputs.as_deref().map(plain));
        let sources = sources.iter().map(GradientSource::extract).collect::<PyResult<Vec<_>>>()?;
        let made = run(py, MUCH, || {
            self.with(|tape| {
                let known: Vec<bool> = sources.iter().map(|s| tape.watches(s.watched())).collect();
                let mut wanted = Vec::new();
                for (source, known) in sources.into_iter().zip(&known) {
                    if *known {
                        wanted.push(source);
                    }
                }
                let wanted = SourceList(wanted);
                let made = match outputs {
                    Some(outputs) => tape.gradient_from(&targets, &outputs, wanted)?,
                    None => tape.gradient(&targets, wanted)?,
                };
                let mut made = made.into_iter();
                let all = known.iter().map(|known| match known {
                    true => made.next().unwrap_or(Gradient::Unconnected),
                    false => Gradient::Unconnected,
                });
                Ok(all.collect::<Vec<_>>())
            })
        })?;
        made.into_iter().map(|g| gradient(py, g)).collect()
    }

    /// The derivative of every element of a target by every element of the sources.
    fn jacobian(
        &self,
        py: Python<'_>,
        target: PyRef<'_, PyTensor>,
        sources: Vec<Bound<'_, PyAny>>,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let target = target.tensor.clone();
        let sources =
            SourceList(sources.iter().map(GradientSource::extract).collect::<PyResult<Vec<_>>>()?);
        let made = run(py, MUCH, || self.with(|tape| tape.jacobian(&target, sources)))?;
        made.into_iter().map(|g| gradient(py, g)).collect()
    }

    /// The same for each row of a batch on its own.
    fn batch_jacobian(
        &self,
        py: Python<'_>,
        target: PyRef<'_, PyTensor>,
        source: PyRef<'_, PyTensor>,
    ) -> PyResult<PyTensor> {
        let (target, source) = (target.tensor.clone(), source.tensor.clone());
        run(py, MUCH, || self.with(|tape| tape.batch_jacobian(&target, &source))).map(Into::into)
    }

    /// Frees all that it holds.
    fn close(&self) -> PyResult<()> {
        let tape = TAPES.with_borrow_mut(|tapes| tapes.remove(&self.number));
        match tape.is_none() && self.thread != std::thread::current().id() {
            true => Err(PyRuntimeError::new_err("the tape was made on another thread")),
            false => Ok(()),
        }
    }
}

impl Drop for PyTape {
    fn drop(&mut self) {
        if self.thread == std::thread::current().id() {
            // At the end of a thread its table may be gone, and the tapes with it.
            let _ =
                TAPES.try_with(|tapes| tapes.try_borrow_mut().map(|mut t| t.remove(&self.number)));
        }
    }
}

/// Tensors without their wrappers.
fn plain(given: &[PyRef<'_, PyTensor>]) -> Vec<Tensor> {
    given.iter().map(|t| t.tensor.clone()).collect()
}

/// Gradients by the nodes of a graph that is being built.
#[pyfunction]
#[pyo3(signature = (targets, sources, outputs))]
pub fn graph_gradients(
    py: Python<'_>,
    targets: Vec<PyRef<'_, PyTensor>>,
    sources: Vec<Bound<'_, PyAny>>,
    outputs: Option<Vec<PyRef<'_, PyTensor>>>,
) -> PyResult<Vec<Py<PyAny>>> {
    let (targets, outputs) = (plain(&targets), outputs.as_deref().map(plain));
    let sources =
        SourceList(sources.iter().map(GradientSource::extract).collect::<PyResult<Vec<_>>>()?);
    let made = run_attached(py, || tonnage::bind::gradients(&targets, outputs, sources))?;
    made.into_iter().map(|g| gradient(py, g)).collect()
}

/// Rows that an update takes, where `IndexedSlices` are given.
pub fn delta(py: Python<'_>, given: &Bound<'_, PyAny>) -> PyResult<Option<IndexedSlices>> {
    if given.cast::<PyTensor>().is_ok() || !given.is_instance(&sugar(py, "IndexedSlices")?)? {
        return Ok(None);
    }
    let part = |name: &str| -> PyResult<Tensor> {
        Ok(given.getattr(name)?.cast_into::<PyTensor>()?.get().tensor.clone())
    };
    let (indices, values) = (part("indices")?, part("values")?);
    Ok(Some(tonnage::bind::rows(indices, values)))
}

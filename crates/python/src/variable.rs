//! Variables as Python sees them. The operators and the rest of TensorFlow's methods are Python's.

use std::cell::RefCell;

use pyo3::prelude::*;
use tonnage::{DType, Elementwise, Gradient, Reuse, Shape, Tensor, TensorType, Variable, bind};

use crate::convert::{self, Want};
use crate::dtype;
use crate::run::{MUCH, run};
use crate::tape::delta;
use crate::tensor::{PyTensor, sugar};

/// A named value that is updated in place.
#[pyclass(frozen, subclass, weakref, dict, name = "Variable", module = "tonnage")]
pub struct PyVariable {
    pub variable: Variable,
}

/// Variables that are read while a function with a gradient of its own runs.
#[derive(Default)]
struct Watch {
    /// What stands for some of them: arguments of that function.
    instead: Vec<(u64, Tensor)>,
    read: Vec<Variable>,
}

thread_local! {
    static WATCHES: RefCell<Vec<Watch>> = const { RefCell::new(Vec::new()) };
}

/// What stands for a variable, if something does; that it is read is noted.
fn stand_in(variable: &Variable) -> Option<Tensor> {
    WATCHES.with_borrow_mut(|watches| {
        let watch = watches.last_mut()?;
        let number = bind::variable_number(variable);
        if let Some((_, tensor)) = watch.instead.iter().find(|(of, _)| *of == number) {
            return Some(tensor.clone());
        }
        if watch.read.iter().all(|other| bind::variable_number(other) != number) {
            watch.read.push(variable.clone());
        }
        None
    })
}

/// Calls a callable in which tensors stand for variables; what it returns, and the other variables that it read.
#[pyfunction]
pub fn with_variables_as<'py>(
    f: &Bound<'py, PyAny>,
    variables: Vec<PyRef<'py, PyVariable>>,
    tensors: Vec<PyRef<'py, PyTensor>>,
) -> PyResult<(Bound<'py, PyAny>, Vec<PyVariable>)> {
    let pairs = variables.iter().zip(&tensors);
    let instead = pairs.map(|(v, t)| (bind::variable_number(&v.variable), t.tensor.clone()));
    let watch = Watch { instead: instead.collect(), read: Vec::new() };
    WATCHES.with_borrow_mut(|watches| watches.push(watch));
    let made = f.call0();
    let watch = WATCHES.with_borrow_mut(Vec::pop).unwrap_or_default();
    let read = watch.read.into_iter().map(|variable| PyVariable { variable });
    Ok((made?, read.collect()))
}

impl PyVariable {
    /// Its value now.
    pub fn read(&self, py: Python<'_>) -> PyResult<Tensor> {
        if let Some(tensor) = stand_in(&self.variable) {
            return Ok(tensor);
        }
        // Without the interpreter's lock: a call that writes it may be waiting for that in a callback.
        run(py, MUCH, || self.variable.read())
    }

    fn value_for(&self, value: &Bound<'_, PyAny>) -> PyResult<Tensor> {
        convert::tensor(value, Want::just(Some(self.variable.ty().dtype)))
    }
}

#[pymethods]
impl PyVariable {
    /// A variable that starts as `value`, or, without one, whose type is known; or another handle of the `same`.
    #[new]
    #[pyo3(signature = (value, trainable, name, dtype, shape, same = None))]
    fn new(
        py: Python<'_>,
        value: Option<&Bound<'_, PyAny>>,
        trainable: bool,
        name: &str,
        dtype: Option<&Bound<'_, PyAny>>,
        shape: Option<Vec<usize>>,
        same: Option<&Bound<'_, PyVariable>>,
    ) -> PyResult<PyVariable> {
        if let Some(same) = same {
            return Ok(PyVariable { variable: same.get().variable.clone() });
        }
        let dtype = dtype::maybe(dtype)?;
        let variable = match value {
            Some(value) => {
                let value = convert::tensor(value, Want::just(dtype))?;
                run(py, 0, move || match trainable {
                    true => Variable::new(name, value),
                    false => Variable::not_trainable(name, value),
                })?
            }
            None => {
                let shape = Shape::from(shape.unwrap_or_default());
                let ty = TensorType { dtype: dtype.unwrap_or(DType::F32), shape };
                run(py, 0, || Ok(Variable::deferred(name, ty)))?
            }
        };
        Ok(PyVariable { variable })
    }

    /// Its name.
    #[getter]
    fn plain_name(&self) -> &str {
        self.variable.name()
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<dtype::PyDType>> {
        dtype::object(py, self.variable.ty().dtype)
    }

    /// Its shape.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let sizes: Vec<Option<usize>> =
            self.variable.ty().shape.iter().map(|dim| dim.known()).collect();
        Ok(sugar(py, "TensorShape")?.call1((sizes,))?.unbind())
    }

    /// The device that its value lies on, as TensorFlow calls it; what lies nowhere yet says the CPU.
    #[getter]
    fn device(&self, py: Python<'_>) -> String {
        py.detach(|| self.variable.device()).full_name()
    }

    /// Whether tapes watch it by themselves.
    #[getter]
    fn trainable(&self) -> bool {
        self.variable.is_trainable()
    }

    /// Whether its value is stored in files.
    #[getter]
    fn in_files(&self) -> bool {
        self.variable.is_in_files()
    }

    /// Whether ranks hold blocks of it, so that all of them read it together.
    #[getter]
    fn in_blocks(&self) -> bool {
        bind::is_in_blocks(&self.variable)
    }

    /// Whether it has a value.
    #[getter]
    fn initialized(&self, py: Python<'_>) -> bool {
        py.detach(|| self.variable.is_initialized())
    }

    /// What it holds in memory.
    #[getter]
    fn bytes(&self, py: Python<'_>) -> u64 {
        py.detach(|| self.variable.bytes().get())
    }

    /// Which variable it is.
    #[getter]
    fn number(&self) -> u64 {
        bind::variable_number(&self.variable)
    }

    /// Its value now.
    fn read_value(&self, py: Python<'_>) -> PyResult<PyTensor> {
        self.read(py).map(PyTensor::from)
    }

    /// Gives it another value.
    fn put(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        let value = self.value_for(value)?;
        if value.shape() != self.variable.ty().shape {
            let text = format!(
                "Cannot assign value to variable '{}': Shape mismatch. The variable shape {}, and the assigned value shape {} are incompatible.",
                self.variable.name(),
                self.variable.ty().shape,
                value.shape()
            );
            return Err(pyo3::exceptions::PyValueError::new_err(text));
        }
        run(py, MUCH, || self.variable.assign(&value))
    }

    /// Adds to it, in place.
    fn add(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match delta(py, value)? {
            Some(rows) => run(py, MUCH, || self.variable.assign_add(&rows)),
            None => {
                let value = self.value_for(value)?;
                run(py, MUCH, || self.variable.assign_add(&value))
            }
        }
    }

    /// Takes from it, in place.
    fn sub(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<()> {
        match delta(py, value)? {
            Some(rows) => run(py, MUCH, || self.variable.assign_sub(&rows)),
            None => {
                let value = self.value_for(value)?;
                run(py, MUCH, || self.variable.assign_sub(&value))
            }
        }
    }

    /// Gives rows of it other values, in place.
    fn put_rows(
        &self,
        py: Python<'_>,
        indices: &Bound<'_, PyAny>,
        rows: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let indices = convert::tensor(indices, Want::default())?;
        let rows = self.value_for(rows)?;
        run(py, MUCH, || self.variable.assign_rows(&indices, &rows))
    }
}

/// The variable of that name in the current scopes: found or made, as `reuse` says (`None`: never found).
#[pyfunction]
pub fn get_variable(
    py: Python<'_>,
    name: &str,
    reuse: Option<&str>,
    make: &Bound<'_, PyAny>,
) -> PyResult<PyVariable> {
    let reuse = match reuse {
        Some("always") => Reuse::Always,
        Some("auto") => Reuse::Auto,
        _ => Reuse::Never,
    };
    let made = crate::run::run_attached(py, || {
        tonnage::get_variable(name, reuse, || {
            let value = make.call0().and_then(|v| convert::tensor(&v, Want::default()));
            value.map_err(crate::errors::carry)
        })
    });
    made.map(|variable| PyVariable { variable })
}

/// Runs a callable inside of a name scope.
#[pyfunction]
pub fn in_name_scope(name: &str, f: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    tonnage::name_scope(name, || f.call0()).map(Bound::unbind)
}

/// Forgets the names of all variables that were made by name.
#[pyfunction]
pub fn forget_variables() {
    tonnage::forget_variables();
}

/// A gradient as Python sees it: a tensor, rows as `(values, indices, shape)`, or none.
pub fn gradient(py: Python<'_>, gradient: Gradient) -> PyResult<Py<PyAny>> {
    match gradient {
        Gradient::Unconnected => Ok(py.None()),
        Gradient::Dense(tensor) => Ok(Py::new(py, PyTensor::from(tensor))?.into_any()),
        Gradient::Rows(rows) => {
            let parts: Vec<(Tensor, Tensor)> =
                rows.parts().map(|(i, v)| (i.clone(), v.clone())).collect();
            let (indices, values) = run(py, 0, move || {
                let mut all: (Vec<Tensor>, Vec<Tensor>) = (Vec::new(), Vec::new());
                // One list has one dtype: that of all parts, or the one that holds every index.
                let first = parts.first().map_or(DType::I64, |(indices, _)| indices.dtype());
                let same = parts.iter().all(|(indices, _)| indices.dtype() == first);
                let dtype = if same { first } else { DType::I64 };
                for (indices, values) in &parts {
                    // As many rows as indices: of rows without elements a length could not be inferred.
                    let count = indices.shape().elements();
                    let row = values.shape()[indices.rank()..].to_vec();
                    let shape: Shape = std::iter::once(count.clone()).chain(row).collect();
                    all.0.push(indices.cast(dtype)?.reshape([count])?);
                    all.1.push(values.reshape(shape)?);
                }
                let join = |all: &[Tensor]| match all {
                    [only] => Ok(only.clone()),
                    several => tonnage::concat(&several.iter().collect::<Vec<_>>(), 0),
                };
                Ok((join(&all.0)?, join(&all.1)?))
            })?;
            let shape: Vec<Option<usize>> = rows.ty().shape.iter().map(|d| d.known()).collect();
            let slices = sugar(py, "IndexedSlices")?;
            let made = slices.call1((PyTensor::from(values), PyTensor::from(indices), shape))?;
            Ok(made.unbind())
        }
    }
}

//! The tensor as Python sees it: properties, operators, conversions to numbers and text.

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyFloat, PyInt};
use tonnage::{DType, Dim, Elementwise, Scalar, Tensor, bind};
use tonnage_ops::{linalg, math};

use crate::args::{self, Dims, values};
use crate::convert::{self, Want};
use crate::numpy::PyExport;
use crate::operators::{AND, OR, XOR, binary, same_dtype, side};
use crate::run::{run, run_attached};
use crate::{dtype, index};

/// A tensor: values, a recipe for them, or a symbol in a function that is traced.
#[pyclass(frozen, subclass, weakref, dict, name = "Tensor", module = "tonnage")]
pub struct PyTensor {
    pub tensor: Tensor,
    /// Where it holds lengths of axes: which, so that a reshape by them works while they are open.
    pub dims: Dims,
}

impl From<Tensor> for PyTensor {
    fn from(tensor: Tensor) -> PyTensor {
        PyTensor { tensor, dims: None }
    }
}

/// What Python adds: classes for shapes, and how tensors are printed.
static SUGAR: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// Says which module has the classes for shapes.
#[pyfunction]
pub fn set_sugar(py: Python<'_>, module: Py<PyAny>) {
    let _ = SUGAR.set(py, module);
}

pub fn sugar<'py>(py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyAny>> {
    match SUGAR.get(py) {
        Some(module) => module.bind(py).getattr(name),
        None => Err(PyTypeError::new_err("import `tonnage`, not `tonnage._tonnage`")),
    }
}

/// Its lengths, `None` where one is open.
pub fn lengths(tensor: &Tensor) -> Vec<Option<usize>> {
    tensor.shape().iter().map(Dim::known).collect()
}

impl PyTensor {
    fn work(&self) -> usize {
        self.tensor.shape().count().unwrap_or(0)
    }

    fn number(&self, py: Python<'_>) -> PyResult<Scalar> {
        args::scalar_of(py, &self.tensor)
    }

    /// It, or the value that it is known to have while a function is traced: it may be a length, or of constants alone.
    fn or_known(&self) -> Tensor {
        if !self.tensor.is_symbolic() {
            return self.tensor.clone();
        }
        let length = match self.dims.as_deref() {
            Some([length]) if self.tensor.rank() == 0 => length.known(),
            _ => None,
        };
        let known = match length {
            Some(length) => crate::run::eagerly(|| tonnage::tensor(length as i64)).ok(),
            None => bind::known(&self.tensor),
        };
        known.unwrap_or_else(|| self.tensor.clone())
    }
}

#[pymethods]
impl PyTensor {
    // SAFETY: Python hands over a view that is the callee's to fill in.
    #[allow(unsafe_code, reason = "PyO3 has the slot in this form alone")]
    unsafe fn __getbuffer__(
        slf: &Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: std::ffi::c_int,
    ) -> PyResult<()> {
        // SAFETY: as above.
        unsafe { crate::buffer::fill(slf.as_any(), view, flags) }
    }

    fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::add::ADD, other, false)
    }

    fn __radd__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::add::ADD, other, true)
    }

    fn __sub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::sub::SUB, other, false)
    }

    fn __rsub__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::sub::SUB, other, true)
    }

    fn __mul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::mul::MUL, other, false)
    }

    fn __rmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::mul::MUL, other, true)
    }

    fn __truediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::div::DIV, other, false)
    }

    fn __rtruediv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::div::DIV, other, true)
    }

    fn __floordiv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::floor_div::FLOOR_DIV, other, false)
    }

    fn __rfloordiv__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::floor_div::FLOOR_DIV, other, true)
    }

    fn __mod__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::mod_::MOD, other, false)
    }

    fn __rmod__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::mod_::MOD, other, true)
    }

    fn __and__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, AND, other, false)
    }

    fn __rand__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, AND, other, true)
    }

    fn __or__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, OR, other, false)
    }

    fn __ror__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, OR, other, true)
    }

    fn __xor__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, XOR, other, false)
    }

    fn __rxor__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.gated(py, XOR, other, true)
    }

    fn __lshift__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::bitwise::SHIFT_LEFT, other, false)
    }

    fn __rlshift__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::bitwise::SHIFT_LEFT, other, true)
    }

    fn __rshift__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::bitwise::SHIFT_RIGHT, other, false)
    }

    fn __rrshift__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
        self.with(py, &math::bitwise::SHIFT_RIGHT, other, true)
    }

    fn __pow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        _modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        self.with(py, &math::pow::POW, other, false)
    }

    fn __rpow__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        _modulo: &Bound<'_, PyAny>,
    ) -> PyResult<Py<PyAny>> {
        self.with(py, &math::pow::POW, other, true)
    }

    fn __matmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let other = convert::tensor(other, Want::rather(self.tensor.dtype()))?;
        same_dtype(py, &linalg::matmul::MATMUL, &self.tensor, &other)?;
        run(py, crate::run::MUCH, || self.tensor.matmul(&other)).map(PyTensor::from)
    }

    fn __rmatmul__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        let other = convert::tensor(other, Want::rather(self.tensor.dtype()))?;
        same_dtype(py, &linalg::matmul::MATMUL, &other, &self.tensor)?;
        run(py, crate::run::MUCH, || other.matmul(&self.tensor)).map(PyTensor::from)
    }

    fn __neg__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        run(py, self.work(), || (&self.tensor).neg()).map(PyTensor::from)
    }

    fn __pos__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __abs__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        run(py, self.work(), || (&self.tensor).abs()).map(PyTensor::from)
    }

    fn __invert__(&self, py: Python<'_>) -> PyResult<PyTensor> {
        let made = run(py, self.work(), || match self.tensor.dtype() {
            DType::Bool => (&self.tensor).logical_not(),
            _ => (&self.tensor).bitwise_not(),
        });
        made.map(PyTensor::from)
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        how: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let op = match how {
            CompareOp::Lt => &math::comparison::LESS,
            CompareOp::Le => &math::comparison::LESS_EQUAL,
            CompareOp::Gt => &math::comparison::GREATER,
            CompareOp::Ge => &math::comparison::GREATER_EQUAL,
            CompareOp::Eq => &math::comparison::EQUAL,
            CompareOp::Ne => &math::comparison::NOT_EQUAL,
        };
        if !matches!(how, CompareOp::Eq | CompareOp::Ne) {
            return self.with(py, op, other, false);
        }
        // What cannot be compared is unequal. Of open shapes nobody knows yet: they fit, or it is an error.
        let unequal =
            || Ok((matches!(how, CompareOp::Ne)).into_pyobject(py)?.to_owned().into_any().unbind());
        let text = other.is_instance_of::<pyo3::types::PyString>();
        let Ok(Some((right, _))) = side(other, self.tensor.dtype()) else { return unequal() };
        let (own, others) = (self.tensor.shape(), right.shape());
        let known = own.sizes().is_some() && others.sizes().is_some();
        if text || known && own.broadcast(&others, op.name).is_err() {
            return unequal();
        }
        let made = binary(py, op, &self.tensor, &right)?;
        Ok(Py::new(py, PyTensor::from(made))?.into_any())
    }

    fn __hash__(&self) -> PyResult<isize> {
        match self.tensor.is_symbolic() {
            true => Ok(bind::identity(&self.tensor) as isize),
            false => Err(PyTypeError::new_err(
                "Tensor is unhashable. Instead, use tensor.ref() as the key.",
            )),
        }
    }

    /// Elements, rows, slices, masks: as in TensorFlow.
    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyTensor> {
        index::get(py, self, key)
    }

    /// Its dtype.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<dtype::PyDType>> {
        dtype::object(py, self.tensor.dtype())
    }

    /// Its shape.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(sugar(py, "TensorShape")?.call1((lengths(&self.tensor),))?.unbind())
    }

    /// Its lengths, `None` where one is open.
    #[getter]
    fn lengths(&self) -> Vec<Option<usize>> {
        lengths(&self.tensor)
    }

    /// The device that its values lie on, as TensorFlow calls it; what lies nowhere yet says the CPU.
    #[getter]
    fn device(&self) -> String {
        self.tensor.device().full_name()
    }

    /// How many axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.tensor.rank()
    }

    /// Whether it takes no bytes: a description that is computed as it is read.
    #[getter]
    fn is_recipe(&self) -> bool {
        self.tensor.is_recipe()
    }

    /// Whether it stands for values to come.
    #[getter]
    fn is_symbolic(&self) -> bool {
        self.tensor.is_symbolic()
    }

    /// Its identity: the same for handles of the same value.
    #[getter]
    fn identity(&self) -> u64 {
        bind::identity(&self.tensor)
    }

    /// Its shape as text, with the names of open dims.
    #[getter]
    fn type_text(&self) -> String {
        self.tensor.ty().to_string()
    }

    /// Its values as text, laid out as NumPy lays out its arrays; reads no more than is shown.
    fn text(&self, py: Python<'_>) -> PyResult<String> {
        let text = run_attached(py, || Ok(self.tensor.to_string()))?;
        Ok(match self.tensor.dtype() {
            DType::Bool => text.replace("true", "True").replace("false", "False"),
            _ => text,
        })
    }

    /// The number everywhere, if it is one number everywhere.
    fn fill_value(&self, py: Python<'_>) -> PyResult<Option<Py<PyAny>>> {
        let Ok(array) = bind::array(&self.tensor, "fill") else { return Ok(None) };
        let Some(recipe) = array.as_recipe() else { return Ok(None) };
        recipe.uniform().map(|value| number_object(py, value)).transpose()
    }

    /// Its bytes where they lie, for NumPy.
    fn export(&self, py: Python<'_>) -> PyResult<PyExport> {
        PyExport::new(py, &self.tensor)
    }

    /// Its only element as a Python number.
    fn item(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        number_object(py, self.number(py)?)
    }

    /// Lengths that it is known to hold, if it holds lengths.
    #[getter]
    pub fn known_lengths(&self) -> Option<Vec<Option<usize>>> {
        self.dims.as_ref().map(|dims| dims.iter().map(Dim::known).collect())
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.tensor.shape().count().is_some_and(|n| n != 1) {
            return Err(PyValueError::new_err(format!(
                "the truth value of a tensor of more or fewer than one element is ambiguous: {}; use tf.reduce_any or \
                 tf.reduce_all",
                self.tensor.ty()
            )));
        }
        Ok(self.number(py)?.to_f64() != 0.0)
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        Ok(args::scalar_of(py, &self.or_known())?.to_i128().into_pyobject(py)?)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFloat>> {
        Ok(PyFloat::new(py, self.number(py)?.to_f64()))
    }

    fn __index__(&self, py: Python<'_>) -> PyResult<i64> {
        if !self.tensor.dtype().is_integer() || self.tensor.rank() > 0 {
            let text = "only integer scalar tensors can be converted to a scalar index";
            return Err(PyTypeError::new_err(text));
        }
        values(py, &self.or_known())?.first().copied().ok_or_else(|| PyValueError::new_err("empty"))
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.tensor.shape().first().map(Dim::known) {
            Some(Some(n)) => Ok(n),
            Some(None) => Err(PyTypeError::new_err(
                "len is not well defined for a symbolic Tensor. Please call `x.shape` or `tf.shape(x)`.",
            )),
            None => Err(PyTypeError::new_err("Scalar tensor has no `len()`")),
        }
    }
}

/// A number as Python's.
pub fn number_object(py: Python<'_>, value: Scalar) -> PyResult<Py<PyAny>> {
    Ok(match value {
        Scalar::Float(x) => PyFloat::new(py, x).into_any().unbind(),
        Scalar::Int(x) => x.into_pyobject(py)?.into_any().unbind(),
        Scalar::Bool(x) => x.into_pyobject(py)?.to_owned().into_any().unbind(),
    })
}

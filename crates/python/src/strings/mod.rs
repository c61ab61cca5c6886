//! Tensors of strings as Python sees them, and ops that take numbers or strings.
//!
//! A tensor of strings is no [`PyTensor`] here, so that no op takes its parts for numbers; to Python it is a `tf.Tensor`, since its `__class__` says so.
//! `convert` is what users pass, `flat` are values as the tensors that functions take, `text` the ops of the crate `tonnage-formats`.
//!
//! Decision: `docs/decisions/strings-are-three-tensors.md`.

mod convert;
mod flat;
pub mod text;

pub use convert::{is_text, is_written, no_number, object, strings, value};
pub use flat::{FlatValues, ValueKind, next};

use pyo3::basic::CompareOp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyFloat, PyInt};
use tonnage::strings::{Strings, Value};
use tonnage::{Dim, Elementwise, PadMode, Shape, Tensor, bind};

use crate::args::{FillArg, ScalarArg};
use crate::dtype::{self, ElementType};
use crate::errors;
use crate::run::{run, run_attached};
use crate::tensor::{PyTensor, sugar};

/// A tensor of strings.
#[pyclass(frozen, weakref, dict, name = "StringTensor", module = "tonnage")]
pub struct PyStrings(pub Strings);

/// Numbers or strings, for Python.
pub enum PyValue {
    /// Numbers.
    Numbers(PyTensor),
    /// Strings.
    Strings(PyStrings),
}

impl From<Value> for PyValue {
    fn from(value: Value) -> PyValue {
        match value {
            Value::Numbers(tensor) => PyValue::Numbers(tensor.into()),
            Value::Strings(strings) => PyValue::Strings(PyStrings(strings)),
        }
    }
}

impl<'py> IntoPyObject<'py> for PyValue {
    type Target = PyAny;
    type Output = Bound<'py, PyAny>;
    type Error = PyErr;
    fn into_pyobject(self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(match self {
            PyValue::Numbers(tensor) => Bound::new(py, tensor)?.into_any(),
            PyValue::Strings(strings) => Bound::new(py, strings)?.into_any(),
        })
    }
}

impl PyStrings {
    /// The only string.
    fn only<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let mut all = self.bytes(py)?;
        match (all.pop(), all.is_empty()) {
            (Some(only), true) => Ok(only),
            _ => {
                let text = "only a tensor of one element can become a Python value";
                Err(PyTypeError::new_err(text))
            }
        }
    }

    fn bytes<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        let mut all = Vec::new();
        run_attached(py, || self.0.visit(&mut |text| all.push(PyBytes::new(py, text))))?;
        Ok(all)
    }

    fn sum(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        reflected: bool,
    ) -> PyResult<PyStrings> {
        if !is_text(other) {
            let shown = other.repr()?;
            let text = format!("cannot add {shown} to a string: both must be strings");
            return Err(errors::of_class(py, "InvalidArgumentError", text));
        }
        let other = strings(other)?;
        let (left, right) = if reflected { (&other, &self.0) } else { (&self.0, &other) };
        text::undecided(py, run(py, 0, || Ok(text::sum(left, right))))?.map(PyStrings)
    }
}

#[pymethods]
impl PyStrings {
    /// A tensor, as `isinstance` asks.
    #[getter]
    fn __class__(&self, py: Python<'_>) -> Py<PyAny> {
        py.get_type::<PyTensor>().into_any().unbind()
    }

    fn __getitem__(&self, py: Python<'_>, key: &Bound<'_, PyAny>) -> PyResult<PyStrings> {
        let part = crate::index::Picked::new(py, &self.0.shape(), key)?;
        run(py, crate::run::MUCH, || self.0.each(|own| part.of(own))).map(PyStrings)
    }

    fn __richcmp__(
        &self,
        py: Python<'_>,
        other: &Bound<'_, PyAny>,
        how: CompareOp,
    ) -> PyResult<Py<PyAny>> {
        let is_equal = match how {
            CompareOp::Eq => true,
            CompareOp::Ne => false,
            _ => {
                let text = "strings have no order here: compare numbers";
                return Err(errors::of_class(py, "InvalidArgumentError", text.into()));
            }
        };
        let unequal = || Ok((!is_equal).into_pyobject(py)?.to_owned().into_any().unbind());
        if other.is_none() {
            return unequal();
        }
        if !is_text(other) {
            return Err(PyTypeError::new_err(no_string(other)?));
        }
        let other = strings(other)?;
        let (own, others) = (self.0.shape(), other.shape());
        let known = own.sizes().is_some() && others.sizes().is_some();
        if known && own.broadcast(&others, "equal").is_err() {
            // What cannot be compared is unequal.
            return unequal();
        }
        let made = compared(py, &self.0, &other, is_equal)?;
        Ok(Py::new(py, PyTensor::from(made))?.into_any())
    }

    fn __add__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyStrings> {
        self.sum(py, other, false)
    }

    fn __radd__(&self, py: Python<'_>, other: &Bound<'_, PyAny>) -> PyResult<PyStrings> {
        self.sum(py, other, true)
    }

    fn __hash__(&self) -> PyResult<isize> {
        match self.0.is_symbolic() {
            true => Ok(self.identity() as isize),
            false => Err(PyTypeError::new_err(
                "Tensor is unhashable. Instead, use tensor.ref() as the key.",
            )),
        }
    }

    fn __len__(&self) -> PyResult<usize> {
        match self.0.shape().first().map(Dim::known) {
            Some(Some(n)) => Ok(n),
            Some(None) => Err(PyTypeError::new_err(
                "len is not well defined for a symbolic Tensor. Please call `x.shape` or `tf.shape(x)`.",
            )),
            None => Err(PyTypeError::new_err("Scalar tensor has no `len()`")),
        }
    }

    fn __bool__(&self, py: Python<'_>) -> PyResult<bool> {
        if self.0.shape().count().is_some_and(|n| n != 1) {
            let text = "the truth value of a tensor of more or fewer than one element is ambiguous";
            return Err(PyValueError::new_err(text));
        }
        Ok(!self.only(py)?.as_bytes().is_empty())
    }

    fn __int__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyInt>> {
        Ok(py.get_type::<PyInt>().call1((self.only(py)?,))?.cast_into()?)
    }

    fn __float__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyFloat>> {
        Ok(py.get_type::<PyFloat>().call1((self.only(py)?,))?.cast_into()?)
    }

    /// `tf.string`.
    #[getter]
    fn dtype(&self, py: Python<'_>) -> PyResult<Py<dtype::PyDType>> {
        ElementType::String.object(py)
    }

    /// Its shape.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        Ok(sugar(py, "TensorShape")?.call1((self.lengths(),))?.unbind())
    }

    /// Its lengths, `None` where one is open.
    #[getter]
    fn lengths(&self) -> Vec<Option<usize>> {
        self.0.shape().iter().map(Dim::known).collect()
    }

    /// The device that its values lie on: always the CPU's memory.
    #[getter]
    fn device(&self) -> String {
        tonnage_core::Device::CPU.full_name()
    }

    /// How many axes.
    #[getter]
    fn ndim(&self) -> usize {
        self.0.rank()
    }

    /// Whether it takes no bytes: strings have some.
    #[getter]
    fn is_recipe(&self) -> bool {
        false
    }

    /// Whether it stands for values to come.
    #[getter]
    fn is_symbolic(&self) -> bool {
        self.0.is_symbolic()
    }

    /// Its identity.
    #[getter]
    fn identity(&self) -> u64 {
        bind::identity(self.0.sizes())
    }

    /// No lengths.
    #[getter]
    fn known_lengths(&self) -> Option<Vec<Option<usize>>> {
        None
    }

    /// Its type as text.
    #[getter]
    fn type_text(&self) -> String {
        Value::Strings(self.0.clone()).type_text()
    }

    /// Its parts: where the bytes of each element begin, how many they are, and the bytes of all.
    #[getter]
    fn parts(&self) -> (PyTensor, PyTensor, PyTensor) {
        let (offsets, sizes, bytes) = self.0.parts();
        (offsets.clone().into(), sizes.clone().into(), bytes.clone().into())
    }

    /// Its elements in order.
    fn elements<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        self.bytes(py)
    }

    /// Its only element.
    fn item<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        self.only(py)
    }
}

/// What is no string, in TensorFlow's words.
pub fn no_string(given: &Bound<'_, PyAny>) -> PyResult<String> {
    Ok(format!("Cannot convert {} to EagerTensor of dtype string", given.repr()?))
}

/// Where strings are the same, or where they are not.
pub fn compared(
    py: Python<'_>,
    left: &Strings,
    right: &Strings,
    is_equal: bool,
) -> PyResult<Tensor> {
    let work = left.shape().count().unwrap_or(0).max(right.shape().count().unwrap_or(0));
    run(py, work, || {
        let equal = left.equal(right)?;
        if is_equal { Ok(equal) } else { equal.logical_not() }
    })
}

/// How many bytes strings have, or the numbers.
pub fn sizes_or_numbers(value: Value) -> Tensor {
    match value {
        Value::Numbers(tensor) => tensor,
        Value::Strings(strings) => strings.sizes().clone(),
    }
}

/// Numbers in another dtype. Strings are not converted.
pub fn cast(value: Value, to: ElementType) -> tonnage::Result<Tensor> {
    let from = match (value, to) {
        (Value::Numbers(tensor), ElementType::Number(to)) => return tensor.cast(to),
        (Value::Numbers(tensor), ElementType::String) => dtype::name(tensor.dtype()),
        (Value::Strings(_), _) => "string",
    };
    let to = to.name();
    let help = "use tf.strings.as_string, or tf.strings.to_number";
    let text = format!("Cast {from} to {to} is not supported; {help}");
    Err(Python::attach(|py| errors::carry(errors::of_class(py, "UnimplementedError", text))))
}

/// One of two, element by element.
pub fn chosen(condition: &Tensor, yes: Value, no: Value) -> tonnage::Result<Value> {
    over(&[yes, no], |parts| condition.where_(parts[0], parts[1]))
}

/// What moves elements between several of one kind.
pub fn over(
    values: &[Value],
    op: impl Fn(&[&Tensor]) -> tonnage::Result<Tensor>,
) -> tonnage::Result<Value> {
    Value::over(values, "where", op)
}

/// A shape filled with a number or a string.
pub fn fill(shape: Shape, value: FillArg, dtype: ElementType) -> tonnage::Result<Value> {
    let text = match (value, dtype) {
        (FillArg::Number(number), ElementType::Number(dtype)) => {
            return tonnage::full(number.0, dtype, shape).map(Value::Numbers);
        }
        (FillArg::String(text), ElementType::String) => text,
        // Zeros of strings are empty.
        (FillArg::Number(ScalarArg(number)), ElementType::String) if number.to_f64() == 0.0 => {
            Strings::scalar("")?
        }
        (FillArg::Number(ScalarArg(number)), ElementType::String) => {
            let text = format!("Cannot convert {number} to EagerTensor of dtype string");
            return Err(errors::carry(PyTypeError::new_err(text)));
        }
        (FillArg::String(_), ElementType::Number(dtype)) => {
            let text =
                format!("Cannot convert a string to EagerTensor of dtype {}", dtype::name(dtype));
            return Err(errors::carry(PyTypeError::new_err(text)));
        }
    };
    text.each(|part| part.broadcast_to(shape.clone())).map(Value::Strings)
}

/// Elements around others.
pub fn pad(value: Value, widths: &[[usize; 2]], fill: FillArg) -> tonnage::Result<Value> {
    let (own, fill) = match (value, fill) {
        (Value::Numbers(tensor), FillArg::Number(number)) => {
            return tensor.pad(widths, PadMode::Constant(number.0)).map(Value::Numbers);
        }
        (Value::Numbers(_), FillArg::String(_)) => {
            return Err(errors::carry(PyTypeError::new_err(
                "a string cannot stand around numbers",
            )));
        }
        (Value::Strings(strings), fill) => (strings, fill),
    };
    let empty = PadMode::Constant(0i64.into());
    let padded = own.each(|part| part.pad(widths, empty))?;
    let FillArg::String(fill) = fill else { return Ok(Value::Strings(padded)) };
    let inside = own.sizes().ones_like()?.pad(widths, empty)?.cast(tonnage::DType::Bool)?;
    padded.or_where(&inside, &fill).map(Value::Strings)
}

/// The values that occur, in the order of their first, which each element is, and how often each occurs.
pub fn unique(value: Value) -> tonnage::Result<(Value, Tensor, Tensor)> {
    match value {
        Value::Numbers(tensor) => {
            let (values, places, counts) = tensor.unique_with_counts()?;
            Ok((Value::Numbers(values), places, counts))
        }
        Value::Strings(strings) => {
            let (firsts, places, counts) = strings.firsts()?.unique_with_counts()?;
            let values = strings.each(|part| part.gather(&firsts, 0))?;
            Ok((Value::Strings(values), places, counts))
        }
    }
}

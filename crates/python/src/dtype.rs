//! Dtypes under TensorFlow's names.

use pyo3::exceptions::{PyAttributeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyString, PyType};
use tonnage::{DType, Scalar};
use tonnage_core::dtype::Class;

/// What elements are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ElementType {
    /// Numbers or truth values of a dtype.
    Number(DType),
    /// Strings of bytes.
    String,
}

/// A dtype: `tf.float32`, `tf.string` and the others.
#[pyclass(frozen, name = "DType", module = "tonnage")]
pub struct PyDType(pub ElementType);

static ALL: PyOnceLock<Vec<Py<PyDType>>> = PyOnceLock::new();
static STRING: PyOnceLock<Py<PyDType>> = PyOnceLock::new();

impl ElementType {
    /// TensorFlow's name.
    pub fn name(self) -> &'static str {
        match self {
            ElementType::Number(dtype) => name(dtype),
            ElementType::String => "string",
        }
    }

    /// The dtype of numbers; strings are none.
    pub fn number(self) -> PyResult<DType> {
        match self {
            ElementType::Number(dtype) => Ok(dtype),
            ElementType::String => Err(PyTypeError::new_err(
                "tf.string where a dtype of numbers is needed; tf.strings.as_string and tf.strings.to_number lead from one to the other",
            )),
        }
    }

    /// The one object for it.
    pub fn object(self, py: Python<'_>) -> PyResult<Py<PyDType>> {
        match self {
            ElementType::Number(dtype) => object(py, dtype),
            ElementType::String => {
                let made = STRING.get_or_try_init(py, || Py::new(py, PyDType(self)))?;
                Ok(made.clone_ref(py))
            }
        }
    }
}

/// TensorFlow's name, which is NumPy's too.
pub fn name(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "float64",
        DType::F32 => "float32",
        DType::F16 => "float16",
        DType::BF16 => "bfloat16",
        DType::I64 => "int64",
        DType::I32 => "int32",
        DType::I16 => "int16",
        DType::I8 => "int8",
        DType::U64 => "uint64",
        DType::U32 => "uint32",
        DType::U16 => "uint16",
        DType::U8 => "uint8",
        DType::Bool => "bool",
    }
}

/// The dtype of that name, of TensorFlow, NumPy or Tonnage.
pub fn from_name(text: &str) -> Option<DType> {
    let text = text.strip_prefix("<dtype: '").map_or(text, |rest| rest.trim_end_matches("'>"));
    DType::ALL.into_iter().find(|d| name(*d) == text || d.name() == text).or(match text {
        "half" => Some(DType::F16),
        "float" => Some(DType::F32),
        "double" => Some(DType::F64),
        "int" => Some(DType::I32),
        _ => None,
    })
}

/// The one object for a dtype.
pub fn object(py: Python<'_>, dtype: DType) -> PyResult<Py<PyDType>> {
    let all = ALL.get_or_try_init(py, || {
        let make = |d| Py::new(py, PyDType(ElementType::Number(d)));
        DType::ALL.into_iter().map(make).collect::<PyResult<Vec<_>>>()
    })?;
    let at = DType::ALL.iter().position(|d| *d == dtype).unwrap_or(0);
    Ok(all[at].clone_ref(py))
}

/// A dtype of numbers as users write it: `tf.float32`, `"float32"`, `np.float32`, `float`.
pub fn of(given: &Bound<'_, PyAny>) -> PyResult<DType> {
    element(given)?.number()
}

/// A dtype as users write it, of strings too: `tf.string`, `"string"`, `np.str_`.
pub fn element(given: &Bound<'_, PyAny>) -> PyResult<ElementType> {
    if let Ok(dtype) = given.cast::<PyDType>() {
        return Ok(dtype.get().0);
    }
    let py = given.py();
    let text: Option<String> = if let Ok(text) = given.cast::<PyString>() {
        Some(text.to_string())
    } else if let Ok(class) = given.cast::<PyType>() {
        let name = class.name()?.to_string();
        Some(if name == "bool_" { "bool".into() } else { name })
    } else if let Ok(name) = given.getattr(pyo3::intern!(py, "name")) {
        name.extract().ok()
    } else {
        None
    };
    let is_written = given.is_instance_of::<PyString>();
    if let Some(text) = &text
        && names_strings(text, is_written)
    {
        return Ok(ElementType::String);
    }
    text.as_deref().and_then(from_name).map(ElementType::Number).ok_or_else(|| {
        let shown = given.repr().map(|r| r.to_string()).unwrap_or_default();
        let all: Vec<&str> = DType::ALL.into_iter().map(name).chain(["string"]).collect();
        let text = format!("Cannot convert {shown} to a dtype; use one of {}", all.join(", "));
        PyTypeError::new_err(text)
    })
}

/// Whether a name is that of strings: TensorFlow's; and NumPy's, where a class or a dtype of it is given, whose names have the length.
fn names_strings(text: &str, is_written: bool) -> bool {
    let of_numpy = || {
        let rest = text.strip_prefix("str").or_else(|| text.strip_prefix("bytes"));
        matches!(text, "object" | "object_")
            || rest.is_some_and(|rest| {
                rest == "_" || !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit())
            })
    };
    matches!(text, "string" | "<dtype: 'string'>") || !is_written && of_numpy()
}

/// A dtype of numbers, or none.
pub fn maybe(given: Option<&Bound<'_, PyAny>>) -> PyResult<Option<DType>> {
    given.filter(|g| !g.is_none()).map(of).transpose()
}

#[pymethods]
impl PyDType {
    #[new]
    fn new(given: &Bound<'_, PyAny>) -> PyResult<PyDType> {
        element(given).map(PyDType)
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &'static str {
        self.0.name()
    }

    /// Bytes of one element; strings have as many as they have, and say 0.
    #[getter]
    fn size(&self) -> usize {
        self.is(|dtype| dtype.size()).unwrap_or(0)
    }

    /// Whether it is a float.
    #[getter]
    fn is_floating(&self) -> bool {
        self.is(DType::is_float).unwrap_or(false)
    }

    /// Whether it is a number: a float or an integer.
    #[getter]
    fn is_numeric(&self) -> bool {
        self.is(|dtype| dtype.is_float() || dtype.is_integer()).unwrap_or(false)
    }

    /// Whether it is an integer.
    #[getter]
    fn is_integer(&self) -> bool {
        self.is(DType::is_integer).unwrap_or(false)
    }

    /// Whether it is an integer without a sign.
    #[getter]
    fn is_unsigned(&self) -> bool {
        self.is(|dtype| dtype.class() == Class::Unsigned).unwrap_or(false)
    }

    /// Whether it is boolean.
    #[getter]
    fn is_bool(&self) -> bool {
        self.0 == ElementType::Number(DType::Bool)
    }

    /// There are no complex numbers.
    #[getter]
    fn is_complex(&self) -> bool {
        false
    }

    /// Itself.
    #[getter]
    fn base_dtype(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// Itself: there are no complex numbers.
    #[getter]
    fn real_dtype(slf: Py<Self>) -> Py<Self> {
        slf
    }

    /// The NumPy type.
    #[getter]
    fn as_numpy_dtype(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let ElementType::Number(dtype) = self.0 else {
            return Ok(py.import("builtins")?.getattr("object")?.unbind());
        };
        if dtype == DType::BF16 {
            let types = py.import("ml_dtypes").map_err(|_| {
                PyAttributeError::new_err("NumPy has no bfloat16; install `ml_dtypes` for it")
            })?;
            return Ok(types.getattr("bfloat16")?.unbind());
        }
        let name = if dtype == DType::Bool { "bool_" } else { name(dtype) };
        Ok(py.import("numpy")?.getattr(name)?.unbind())
    }

    /// The largest number.
    #[getter]
    fn max(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        limit(py, self.0.number()?, true)
    }

    /// The smallest number.
    #[getter]
    fn min(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        limit(py, self.0.number()?, false)
    }

    /// Whether a value of the other can be assigned: the dtypes are the same.
    fn is_compatible_with(&self, other: &Bound<'_, PyAny>) -> bool {
        element(other).is_ok_and(|d| d == self.0)
    }

    fn __eq__(&self, other: &Bound<'_, PyAny>) -> bool {
        element(other).is_ok_and(|d| d == self.0)
    }

    fn __hash__(&self) -> u64 {
        self.is(|dtype| dtype as u64).unwrap_or(u64::MAX)
    }

    fn __repr__(&self) -> String {
        format!("tf.{}", self.0.name())
    }

    fn __str__(&self) -> String {
        format!("<dtype: '{}'>", self.0.name())
    }

    fn __reduce__(slf: &Bound<'_, Self>) -> PyResult<(Py<PyAny>, (String,))> {
        Ok((slf.get_type().into_any().unbind(), (slf.get().0.name().to_string(),)))
    }
}

impl PyDType {
    /// What a dtype of numbers is.
    fn is<R>(&self, of: impl FnOnce(DType) -> R) -> Option<R> {
        match self.0 {
            ElementType::Number(dtype) => Some(of(dtype)),
            ElementType::String => None,
        }
    }
}

fn limit(py: Python<'_>, dtype: DType, largest: bool) -> PyResult<Py<PyAny>> {
    let float = match dtype {
        DType::F64 => Some(f64::MAX),
        DType::F32 => Some(f64::from(f32::MAX)),
        DType::F16 => Some(65504.0),
        DType::BF16 => Some(f64::from(tonnage::bf16::MAX)),
        _ => None,
    };
    if let Some(most) = float {
        return Ok((if largest { most } else { -most }).into_pyobject(py)?.into_any().unbind());
    }
    if dtype == DType::Bool {
        return Ok(largest.into_pyobject(py)?.to_owned().into_any().unbind());
    }
    let bits = 8 * dtype.size() as u32;
    let signed = dtype.class() == Class::Signed;
    let most = (1i128 << if signed { bits - 1 } else { bits }) - 1;
    let least = if signed { -most - 1 } else { 0 };
    Ok((if largest { most } else { least }).into_pyobject(py)?.into_any().unbind())
}

/// A Python number; none for anything else. A boolean is asked first: it is an integer to Python.
pub fn number(given: &Bound<'_, PyAny>) -> Option<Scalar> {
    use pyo3::types::{PyBool, PyFloat, PyInt};
    if let Ok(flag) = given.cast::<PyBool>() {
        return Some(Scalar::Bool(flag.is_true()));
    }
    if let Ok(float) = given.cast::<PyFloat>() {
        return Some(Scalar::Float(float.value()));
    }
    match given.cast::<PyInt>() {
        Ok(int) => int.extract::<i128>().ok().map(Scalar::Int),
        Err(_) => None,
    }
}

/// The dtype of a number that says none: TensorFlow's.
pub fn of_number(number: Scalar) -> DType {
    match number {
        Scalar::Bool(_) => DType::Bool,
        Scalar::Float(_) => DType::F32,
        Scalar::Int(_) if number.fits(DType::I32) => DType::I32,
        Scalar::Int(_) if number.fits(DType::I64) => DType::I64,
        Scalar::Int(_) => DType::U64,
    }
}

/// The one object for a dtype, as users write it.
#[pyfunction]
#[pyo3(name = "dtype")]
pub fn the_dtype(given: &Bound<'_, PyAny>) -> PyResult<Py<PyDType>> {
    element(given)?.object(given.py())
}

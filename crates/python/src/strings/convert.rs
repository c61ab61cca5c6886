//! What users pass as strings: text, bytes, nested lists of those, arrays of NumPy.

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList, PyString, PyTuple};
use tonnage::strings::{Strings, Value};
use tonnage::{DType, Shape};
use tonnage_core::Mark;

use super::{PyStrings, PyValue, no_string};
use crate::convert::{self, Want, mark};
use crate::dtype;
use crate::errors::raise;
use crate::run::run;
use crate::tensor::PyTensor;

/// How deep lists are looked into.
const DEPTH: usize = 64;

/// Numbers or strings, whichever it is.
pub fn value(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Value> {
    if let Ok(tensor) = given.cast::<PyTensor>() {
        let tensor = &tensor.get().tensor;
        if want.wanted.is_none_or(|wanted| wanted == tensor.dtype()) {
            return Ok(Value::Numbers(tensor.clone()));
        }
    }
    if is_written(given) {
        return strings(given).map(Value::Strings);
    }
    // What is asked of arrays takes longer than to bring in those of numbers.
    match convert::maybe(given, want) {
        Ok(Some(tensor)) => Ok(Value::Numbers(tensor)),
        _ if first_is(given, true, DEPTH) => strings(given).map(Value::Strings),
        Ok(None) => convert::tensor(given, want).map(Value::Numbers),
        Err(error) => Err(error),
    }
}

/// Whether it is strings: text, bytes, a tensor or an array of them, or lists in which such a thing comes first.
pub fn is_text(given: &Bound<'_, PyAny>) -> bool {
    first_is(given, true, DEPTH)
}

/// The same without a look at arrays.
pub fn is_written(given: &Bound<'_, PyAny>) -> bool {
    first_is(given, false, DEPTH)
}

fn first_is(given: &Bound<'_, PyAny>, arrays: bool, depth: usize) -> bool {
    if given.is_instance_of::<PyString>()
        || given.is_instance_of::<PyBytes>()
        || given.is_instance_of::<PyStrings>()
    {
        return true;
    }
    let first = if let Ok(list) = given.cast::<PyList>() {
        list.get_item(0).ok()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.get_item(0).ok()
    } else {
        return arrays && is_array(given);
    };
    depth > 0 && first.is_some_and(|first| first_is(&first, arrays, depth - 1))
}

/// Whether it is an array of NumPy's that holds text, bytes or objects.
fn is_array(given: &Bound<'_, PyAny>) -> bool {
    let py = given.py();
    if given.is_instance_of::<PyTensor>() || dtype::number(given).is_some() {
        return false;
    }
    let dtype = given.getattr(pyo3::intern!(py, "dtype"));
    let kind = dtype.and_then(|d| d.getattr(pyo3::intern!(py, "kind")));
    kind.and_then(|k| k.extract::<String>())
        .is_ok_and(|k| matches!(k.as_str(), "S" | "U" | "O" | "T"))
}

/// It as strings, for Python; itself where it is a tensor of them.
pub fn object(given: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if given.is_instance_of::<PyStrings>() {
        return Ok(given.clone().unbind());
    }
    let made = PyValue::Strings(PyStrings(strings(given)?));
    Ok(made.into_pyobject(given.py())?.unbind())
}

/// Why text is no number.
pub fn no_number(given: &Bound<'_, PyAny>, dtype: Option<DType>) -> PyResult<String> {
    let dtype = dtype.map_or("float32", dtype::name);
    Ok(format!("Cannot convert {} to EagerTensor of dtype {dtype}", given.repr()?))
}

/// Anything that is strings, as a tensor of them.
pub fn strings(given: &Bound<'_, PyAny>) -> PyResult<Strings> {
    let py = given.py();
    if let Ok(strings) = given.cast::<PyStrings>() {
        return Ok(strings.get().0.clone());
    }
    let mut all = Collected::default();
    if let Some(text) = Text::of(given) {
        return made(py, &[text], Shape::scalar());
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return match all.list(given, 0)? {
            true => made(py, &all.texts, all.sizes.into()),
            false => stacked(given),
        };
    }
    if given.hasattr(pyo3::intern!(py, "__array__"))? && !given.is_instance_of::<PyTensor>() {
        return array(given);
    }
    if given.hasattr("__iter__")?
        && given.hasattr("__len__")?
        && !given.is_instance_of::<PyTensor>()
    {
        let list = PyList::new(py, given.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
        return strings(list.as_any());
    }
    Err(pyo3::exceptions::PyTypeError::new_err(no_string(given)?))
}

fn made(py: Python<'_>, texts: &[Text<'_>], shape: Shape) -> PyResult<Strings> {
    let mark: Mark = mark(py);
    Strings::marked(texts, shape, mark).map_err(|e| raise(py, e))
}

/// Text or bytes of Python.
enum Text<'py> {
    Text(String),
    Bytes(Bound<'py, PyBytes>),
}

impl<'py> Text<'py> {
    fn of(given: &Bound<'py, PyAny>) -> Option<Text<'py>> {
        if let Ok(bytes) = given.cast::<PyBytes>() {
            return Some(Text::Bytes(bytes.clone()));
        }
        let text = given.cast::<PyString>().ok()?;
        Some(Text::Text(text.to_string_lossy().into_owned()))
    }
}

impl AsRef<[u8]> for Text<'_> {
    fn as_ref(&self) -> &[u8] {
        match self {
            Text::Text(text) => text.as_bytes(),
            Text::Bytes(bytes) => bytes.as_bytes(),
        }
    }
}

/// The texts of nested lists, in order, and the lengths.
#[derive(Default)]
struct Collected<'py> {
    texts: Vec<Text<'py>>,
    sizes: Vec<usize>,
}

impl<'py> Collected<'py> {
    /// Collects what is in lists; false where there is something else than text among it that may be a tensor.
    fn list(&mut self, given: &Bound<'py, PyAny>, depth: usize) -> PyResult<bool> {
        let ragged =
            || PyValueError::new_err("Can't convert non-rectangular Python sequence to Tensor.");
        if let Some(text) = Text::of(given) {
            if depth < self.sizes.len() {
                return Err(ragged());
            }
            self.texts.push(text);
            return Ok(true);
        }
        if dtype::number(given).is_some() {
            return Err(match self.texts.is_empty() {
                true => pyo3::exceptions::PyTypeError::new_err(no_string(given)?),
                false => PyValueError::new_err(
                    "Can't convert Python sequence with mixed types to Tensor.",
                ),
            });
        }
        let items: Vec<Bound<'py, PyAny>> = if let Ok(list) = given.cast::<PyList>() {
            list.iter().collect()
        } else if let Ok(tuple) = given.cast::<PyTuple>() {
            tuple.iter().collect()
        } else {
            return Ok(false);
        };
        if depth == DEPTH {
            let text = "lists are nested too deep, or contain themselves";
            return Err(PyValueError::new_err(text));
        }
        match self.sizes.get(depth) {
            Some(size) if *size != items.len() => return Err(ragged()),
            Some(_) => {}
            None if !self.texts.is_empty() => return Err(ragged()),
            None => self.sizes.push(items.len()),
        }
        for item in &items {
            if !self.list(item, depth + 1)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// A list of things that are strings.
fn stacked(given: &Bound<'_, PyAny>) -> PyResult<Strings> {
    let items = given.try_iter()?.map(|item| strings(&item?).map(Value::Strings));
    let items: Vec<Value> = items.collect::<PyResult<_>>()?;
    run(given.py(), 0, || Value::stack(&items, 0)?.strings())
}

/// An array of NumPy's, or what NumPy makes of something.
fn array(given: &Bound<'_, PyAny>) -> PyResult<Strings> {
    let py = given.py();
    let array = py.import("numpy")?.call_method1("asarray", (given,))?;
    let sizes: Vec<usize> = array.getattr("shape")?.extract()?;
    let flat = array.call_method1("reshape", (-1,))?.call_method0("tolist")?;
    let mut texts = Vec::new();
    for item in flat.try_iter()? {
        let item = item?;
        texts.push(Text::of(&item).ok_or_else(|| {
            let class = item.get_type().name().map(|name| name.to_string()).unwrap_or_default();
            PyValueError::new_err(format!(
                "Failed to convert a NumPy array to a Tensor (Unsupported object type {class})."
            ))
        })?);
    }
    made(py, &texts, sizes.into())
}

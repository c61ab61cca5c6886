//! What users pass, as tensors: numbers, nested lists, NumPy arrays, variables.
//!
//! Dtypes are TensorFlow's: a Python float is float32, an integer int32 where it fits. A `wanted` dtype is had or it is
//! an error; a `hint`, the dtype of the other side of an op, is taken where the data can be of it.

use pyo3::buffer::PyBuffer;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyList, PyTuple};
use tonnage::{Bytes, DType, Kind, Scalar, Shape, Source, Tensor, TensorType, bind};
use tonnage_core::dtype::Class;
use tonnage_core::{FromScalar, Layout, Mark, with_element};
use tonnage_runtime::placement::in_scope;
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

use crate::run::run;
use crate::tensor::PyTensor;
use crate::variable::PyVariable;
use crate::{array, dtype};

/// Which dtype a tensor should have.
#[derive(Clone, Copy, Default)]
pub struct Want {
    /// It, or an error.
    pub wanted: Option<DType>,
    /// It, where the data can be.
    pub hint: Option<DType>,
}

impl Want {
    /// That dtype and no other.
    pub fn just(wanted: Option<DType>) -> Want {
        Want { wanted, hint: None }
    }

    /// That dtype if possible.
    pub fn rather(hint: DType) -> Want {
        Want { wanted: None, hint: Some(hint) }
    }
}

/// Anything that can be a tensor, as one.
pub fn tensor(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Tensor> {
    match maybe(given, want)? {
        Some(tensor) => Ok(tensor),
        None => Err(unconvertible(given)),
    }
}

/// Refuses what cannot be a tensor.
fn unconvertible(given: &Bound<'_, PyAny>) -> PyErr {
    let shown = given.repr().map(|r| r.to_string()).unwrap_or_default();
    let shown: String = shown.chars().take(80).collect();
    if crate::strings::is_text(given) {
        let text = format!(
            "strings where numbers are needed: {shown}; tf.strings.to_number reads numbers that strings say"
        );
        return crate::errors::of_class(given.py(), "InvalidArgumentError", text);
    }
    if given.is_none() {
        return PyValueError::new_err("Attempt to convert a value (None) to a Tensor.");
    }
    let class = given.get_type();
    PyValueError::new_err(format!(
        "Attempt to convert a value ({shown}) with an unsupported type ({class}) to a Tensor."
    ))
}

/// Anything that can be a tensor, as one; none for anything else.
pub fn maybe(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Option<Tensor>> {
    let py = given.py();
    if let Ok(tensor) = given.cast::<PyTensor>() {
        return checked(tensor.get().tensor.clone(), want).map(Some);
    }
    if let Ok(variable) = given.cast::<PyVariable>() {
        return checked(variable.get().read(py)?, want).map(Some);
    }
    if given.is_instance_of::<crate::strings::PyStrings>() {
        return Err(unconvertible(given));
    }
    if let Some(number) = dtype::number(given) {
        // NumPy's float64 is a Python float with a dtype of its own.
        let free = want.wanted.is_none() && want.hint.is_none();
        let derived = given.is_instance_of::<PyFloat>() && !given.is_exact_instance_of::<PyFloat>();
        if free && derived && given.hasattr(pyo3::intern!(py, "dtype"))? {
            return from_numpy(given, want).map(Some);
        }
        return scalar(py, number, want).map(Some);
    }
    if given.is_instance_of::<PyList>() || given.is_instance_of::<PyTuple>() {
        return nested(given, want).map(Some);
    }
    if let Some(made) = array::plain(given, want)? {
        return Ok(Some(made));
    }
    if let Ok(convert) = given.getattr(pyo3::intern!(py, "__tf_tensor__")) {
        let made = convert.call0()?;
        return maybe(&made, want);
    }
    if given.hasattr(pyo3::intern!(py, "__array__"))? {
        return from_numpy(given, want).map(Some);
    }
    match given.hasattr(pyo3::intern!(py, "__iter__"))? && given.hasattr("__len__")? {
        true if !given.is_instance_of::<pyo3::types::PyString>()
            && !given.is_instance_of::<pyo3::types::PyBytes>()
            && !given.is_instance_of::<pyo3::types::PyDict>() =>
        {
            let list = PyList::new(py, given.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
            nested(list.as_any(), want).map(Some)
        }
        _ => Ok(None),
    }
}

fn checked(tensor: Tensor, want: Want) -> PyResult<Tensor> {
    match want.wanted {
        Some(wanted) if wanted != tensor.dtype() => Err(PyValueError::new_err(format!(
            "Tensor conversion requested dtype {} for Tensor with dtype {}; use `tf.cast`",
            dtype::name(wanted),
            dtype::name(tensor.dtype())
        ))),
        _ => Ok(tensor),
    }
}

/// A number as a tensor without axes.
pub fn scalar(py: Python<'_>, number: Scalar, want: Want) -> PyResult<Tensor> {
    let dtype = chosen(number, want)?;
    run(py, 0, || tonnage::full(number, dtype, Shape::scalar()))
}

/// The dtype that a number takes.
pub fn chosen(number: Scalar, want: Want) -> PyResult<DType> {
    let own = dtype::of_number(number);
    match (want.wanted, want.hint) {
        (Some(wanted), _) if fits(number, wanted) => Ok(wanted),
        (Some(wanted), _) => Err(PyTypeError::new_err(format!(
            "Cannot convert {number} to EagerTensor of dtype {}",
            dtype::name(wanted)
        ))),
        (None, Some(hint)) if fits(number, hint) => Ok(hint),
        _ => Ok(own),
    }
}

/// Whether a Python number may become that dtype: as `Scalar::fits`, but a boolean is no number to TensorFlow, nor an
/// integer a boolean.
fn fits(number: Scalar, dtype: DType) -> bool {
    match (number, dtype.class()) {
        (Scalar::Bool(_), class) => class == Class::Bool,
        (_, Class::Bool) => false,
        _ => number.fits(dtype),
    }
}

/// The elements of nested lists, in order, and the lengths.
#[derive(Default)]
struct NestedElements {
    values: Vec<Scalar>,
    sizes: Vec<usize>,
}

/// Nested lists: of numbers, or of tensors, which are stacked.
fn nested(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Tensor> {
    let mut all = NestedElements::default();
    if !gather(given, 0, &mut all)? {
        return stacked(given, want);
    }
    let own = all.values.iter().fold(None, |class: Option<DType>, value| {
        let dtype = dtype::of_number(*value);
        Some(match class {
            None => dtype,
            Some(DType::F32) if dtype != DType::Bool => DType::F32,
            Some(before) if dtype == DType::F32 && before != DType::Bool => DType::F32,
            Some(DType::I32) if dtype.is_integer() => dtype,
            Some(before) => before,
        })
    });
    let own = own.unwrap_or(DType::F32);
    let mixed = all.values.iter().any(|v| matches!(v, Scalar::Bool(_)) != (own == DType::Bool));
    if mixed {
        let text = "Can't convert Python sequence with mixed types to Tensor.";
        return Err(PyValueError::new_err(text));
    }
    let to = match (want.wanted, want.hint) {
        (Some(wanted), _) => {
            if let Some(bad) = all.values.iter().find(|v| !fits(**v, wanted)) {
                return chosen(*bad, want).map(|_| unreachable_tensor())?;
            }
            wanted
        }
        (None, Some(hint)) if all.values.iter().all(|v| fits(*v, hint)) => hint,
        _ => own,
    };
    let mark = mark(given.py());
    let array = with_element!(to, T => {
        let values: Vec<T> = all.values.iter().map(|v| T::from_scalar(*v)).collect();
        Array::from_slice(&values, &all.sizes, mark, "constant")
    });
    let py = given.py();
    run(py, 0, || Ok(bind::tensor(array?)))
}

/// What `chosen` refused never comes here.
fn unreachable_tensor() -> PyResult<Tensor> {
    Err(PyTypeError::new_err("a number does not fit the dtype"))
}

/// Collects the numbers; false where there is something else among them.
fn gather(given: &Bound<'_, PyAny>, depth: usize, all: &mut NestedElements) -> PyResult<bool> {
    if let Some(number) = dtype::number(given) {
        if depth < all.sizes.len() {
            return Err(ragged());
        }
        all.values.push(number);
        return Ok(true);
    }
    let items: Vec<Bound<'_, PyAny>> = if let Ok(list) = given.cast::<PyList>() {
        list.iter().collect()
    } else if let Ok(tuple) = given.cast::<PyTuple>() {
        tuple.iter().collect()
    } else {
        return Ok(false);
    };
    if depth == 64 {
        return Err(PyValueError::new_err("lists are nested too deep, or contain themselves"));
    }
    match all.sizes.get(depth) {
        Some(size) if *size != items.len() => return Err(ragged()),
        Some(_) => {}
        None if !all.values.is_empty() => return Err(ragged()),
        None => all.sizes.push(items.len()),
    }
    for item in &items {
        if !gather(item, depth + 1, all)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn ragged() -> PyErr {
    PyValueError::new_err("Can't convert non-rectangular Python sequence to Tensor.")
}

/// A list of things that are tensors, or can be.
fn stacked(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Tensor> {
    let py = given.py();
    let items: Vec<Bound<'_, PyAny>> = given.try_iter()?.collect::<PyResult<_>>()?;
    // What has a dtype of its own says what the numbers beside it are.
    let mut own = want.wanted.or(want.hint);
    if want.wanted.is_none() {
        for item in &items {
            if let Ok(tensor) = item.cast::<PyTensor>() {
                own = Some(tensor.get().tensor.dtype());
            }
        }
    }
    let want = Want { wanted: want.wanted, hint: own };
    let parts = items.iter().map(|item| tensor(item, want)).collect::<PyResult<Vec<_>>>()?;
    let parts: Vec<&Tensor> = parts.iter().collect();
    run(py, 0, || tonnage::stack(&parts, 0))
}

/// What a constant is to the ledger, made by the user's line.
pub fn mark(py: Python<'_>) -> Mark {
    let source = crate::line::here(py).unwrap_or_else(Source::here);
    Mark { source, kind: Kind::Constant }
}

/// A NumPy array, or what NumPy makes of something: its bytes copied into the ledger's.
fn from_numpy(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Tensor> {
    let py = given.py();
    let numpy = py.import("numpy")?;
    let mut array = numpy.call_method1("asarray", (given,))?;
    let named = |array: &Bound<'_, PyAny>| -> PyResult<Option<DType>> {
        Ok(dtype::from_name(&array.getattr("dtype")?.getattr("name")?.extract::<String>()?))
    };
    let Some(own) = named(&array)? else {
        let dtype = array.getattr("dtype")?.str()?;
        let text = format!(
            "Failed to convert a NumPy array to a Tensor (Unsupported object type {dtype})."
        );
        return Err(PyValueError::new_err(text));
    };
    let is_plain = |to: DType| !own.is_float() || to.is_float();
    let to = match (want.wanted, want.hint) {
        (Some(wanted), _) => wanted,
        (None, Some(hint)) if is_plain(hint) && (own == DType::Bool) == (hint == DType::Bool) => {
            hint
        }
        _ => own,
    };
    let direct = to == own || to == DType::BF16 || own == DType::BF16;
    if !direct {
        array = array.call_method1("astype", (dtype::name(to),))?;
    }
    let held = if direct { own } else { to };
    let sizes: Vec<usize> = array.getattr("shape")?.extract()?;
    let native = array.getattr("dtype")?.call_method0("newbyteorder").is_ok();
    if native && !array.getattr("dtype")?.getattr("isnative")?.extract::<bool>()? {
        let swapped = array.getattr("dtype")?.call_method1("newbyteorder", ("=",))?;
        array = array.call_method1("astype", (swapped,))?;
    }
    let flat = numpy.call_method1("ascontiguousarray", (array,))?;
    let flat = flat.call_method1("reshape", (-1,))?.call_method1("view", ("u1",))?;
    let bytes = TensorType::new(held, &sizes[..]).bytes("constant");
    let bytes: Bytes = bytes.map_err(|e| crate::errors::raise(py, e))?;
    let mark = mark(py);
    let owner = Owner { kind: mark.kind, what: "constant", name: None, source: mark.source };
    let mut buffer = Buffer::obtain(&host_ledger(), bytes, owner)
        .map_err(|e| crate::errors::raise(py, e.at(mark.source)))?;
    let view = PyBuffer::<u8>::get(&flat)?;
    let count = view.item_count();
    let to_write = buffer.bytes_mut().map_err(|e| crate::errors::raise(py, e))?;
    view.copy_to_slice(py, &mut to_write[..count])?;
    let array = Array::from_buffer(buffer, held, Layout::contiguous(&sizes[..]));
    let made = bind::tensor(in_scope(array).map_err(|e| crate::errors::raise(py, e))?);
    if held == to {
        return Ok(made);
    }
    use tonnage::Elementwise;
    run(py, count, || made.cast(to))
}

//! NumPy arrays as tensors by what their memory says of itself: nothing is asked of them by name, which takes longer than to copy some
//! thousand elements.

use pyo3::buffer::{Element, PyUntypedBuffer};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use tonnage::{DType, Tensor, TensorType, bind};
use tonnage_core::Layout;
use tonnage_runtime::placement::in_scope;
use tonnage_runtime::{Array, Buffer, Owner, host_ledger};

use crate::convert::{Want, mark};
use crate::errors::raise;

/// NumPy's class of arrays.
static NDARRAY: PyOnceLock<Py<PyAny>> = PyOnceLock::new();

/// The dtype of elements in the order of bytes of this machine, by their code; none for what has no code, or another one elsewhere.
fn of_format(buffer: &PyUntypedBuffer) -> Option<DType> {
    let found = match buffer.format().to_bytes() {
        b"d" => DType::F64,
        b"f" => DType::F32,
        b"q" | b"l" => DType::I64,
        b"i" => DType::I32,
        b"h" => DType::I16,
        b"b" => DType::I8,
        b"Q" | b"L" => DType::U64,
        b"I" => DType::U32,
        b"H" => DType::U16,
        b"B" => DType::U8,
        _ => return None,
    };
    // A `long` has 4 bytes on some systems.
    (buffer.item_size() == found.size()).then_some(found)
}

/// A copy of an array of NumPy's own class whose elements lie one after the other and are of the dtype that is wanted; none for anything else.
pub fn plain(given: &Bound<'_, PyAny>, want: Want) -> PyResult<Option<Tensor>> {
    let py = given.py();
    let find = || py.import("numpy")?.getattr("ndarray").map(Bound::unbind);
    if given.get_type().as_ptr() != NDARRAY.get_or_try_init(py, find)?.as_ptr() {
        return Ok(None);
    }
    // What has no axes says nothing of its memory: it is looked at as a row of one.
    let is_scalar = given.getattr(pyo3::intern!(py, "ndim"))?.extract::<usize>()? == 0;
    let row = match is_scalar {
        true => given.call_method1(pyo3::intern!(py, "reshape"), (1,))?,
        false => given.clone(),
    };
    let Ok(buffer) = PyUntypedBuffer::get(&row) else { return Ok(None) };
    let sizes = if is_scalar { &[] } else { buffer.shape() };
    let Some(dtype) = of_format(&buffer) else { return Ok(None) };
    let is_it = |other: Option<DType>| other.is_none_or(|other| other == dtype);
    let is_even = buffer.buf_ptr().cast::<u8>().align_offset(dtype.size()) == 0;
    if !buffer.is_c_contiguous() || !is_even || !is_it(want.wanted) || !is_it(want.hint) {
        return Ok(None);
    }
    let bytes = TensorType::new(dtype, sizes).bytes("constant");
    let mark = mark(py);
    let owner = Owner { kind: mark.kind, what: "constant", name: None, source: mark.source };
    let made = bytes.and_then(|bytes| Buffer::obtain(&host_ledger(), bytes, owner));
    let mut made = made.map_err(|e| raise(py, e.at(mark.source)))?;
    match dtype {
        DType::F64 => copy::<f64>(py, &buffer, &mut made),
        DType::F32 => copy::<f32>(py, &buffer, &mut made),
        DType::I64 => copy::<i64>(py, &buffer, &mut made),
        DType::I32 => copy::<i32>(py, &buffer, &mut made),
        DType::I16 => copy::<i16>(py, &buffer, &mut made),
        DType::I8 => copy::<i8>(py, &buffer, &mut made),
        DType::U64 => copy::<u64>(py, &buffer, &mut made),
        DType::U32 => copy::<u32>(py, &buffer, &mut made),
        DType::U16 => copy::<u16>(py, &buffer, &mut made),
        _ => copy::<u8>(py, &buffer, &mut made),
    }?;
    let array = Array::from_buffer(made, dtype, Layout::contiguous(sizes));
    in_scope(array).map(|array| Some(bind::tensor(array))).map_err(|e| raise(py, e))
}

fn copy<T: Element + bytemuck::Pod>(
    py: Python<'_>,
    from: &PyUntypedBuffer,
    to: &mut Buffer,
) -> PyResult<()> {
    let to = to.bytes_mut().map_err(|e| raise(py, e))?;
    let to = &mut to[..from.len_bytes()];
    from.as_typed::<T>()?.copy_to_slice(py, bytemuck::cast_slice_mut(to))
}

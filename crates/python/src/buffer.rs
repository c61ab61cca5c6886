//! The buffer protocol: `memoryview(tensor)` is that of the tensor's NumPy array, which is a view of its bytes.
//!
//! Python 3.12 and newer find a class's `__buffer__`; 3.11 asks the checkpoint of the type alone, which is filled in here.

#![allow(
    unsafe_code,
    reason = "the slot is a function over raw pointers, which PyO3 has no safe form of"
)]

use std::ffi::c_int;

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// Fills a view of the array of `of` in.
///
/// # Safety
/// `view` is null, or points at a view that nobody else uses.
pub unsafe fn fill(of: &Bound<'_, PyAny>, view: *mut ffi::Py_buffer, flags: c_int) -> PyResult<()> {
    if view.is_null() {
        return Err(PyBufferError::new_err("no view to fill in"));
    }
    // SAFETY: the caller's. A view of nothing is what Python wants to see beside an error.
    unsafe { (*view).obj = std::ptr::null_mut() };
    let array = of.call_method0("__array__")?;
    // SAFETY: the array is alive, the view is the caller's to fill in. The view holds the array from here on, so its
    // release is the array's.
    match unsafe { ffi::PyObject_GetBuffer(array.as_ptr(), view, flags) } {
        0 => Ok(()),
        _ => Err(PyErr::fetch(of.py())),
    }
}

//! Tensors for NumPy, without a copy: an object with NumPy's array interface that keeps the bytes where they are. Those of a device are
//! copied to the host.
//!
//! The array is read-only. While it lives its tensor is never written in place, nor sent away (see `runtime`'s `ExportedArray`).

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tonnage::device::Device;
use tonnage::{DType, Source, Tensor, bind};
use tonnage_runtime::{ExportedArray, host_ledger};

use crate::run::run;

/// A tensor's bytes where they lie.
#[pyclass(frozen, name = "Export", module = "tonnage")]
pub struct PyExport(ExportedArray);

impl PyExport {
    pub fn new(py: Python<'_>, tensor: &Tensor) -> PyResult<PyExport> {
        let work = tensor.shape().count().unwrap_or(0);
        run(py, work, || {
            let array = bind::array(tensor, "reading the values")?;
            // NumPy reads host memory: of a device's values it gets a copy, which lives as long as its array.
            let copy = match array.device() {
                None | Some(Device::CPU) => None,
                Some(_) => Some(array.copied_to(&host_ledger(), "numpy")?),
            };
            let array = copy.as_ref().unwrap_or(array);
            ExportedArray::new(array, "numpy", Source::here()).map(PyExport)
        })
    }
}

/// NumPy's code for elements; bfloat16, which it does not know, is two bytes.
fn code(dtype: DType) -> &'static str {
    match dtype {
        DType::F64 => "<f8",
        DType::F32 => "<f4",
        DType::F16 => "<f2",
        DType::BF16 => "<u2",
        DType::I64 => "<i8",
        DType::I32 => "<i4",
        DType::I16 => "<i2",
        DType::I8 => "|i1",
        DType::U64 => "<u8",
        DType::U32 => "<u4",
        DType::U16 => "<u2",
        DType::U8 => "|u1",
        DType::Bool => "|b1",
    }
}

#[pymethods]
impl PyExport {
    #[getter]
    fn __array_interface__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let array = self.0.array();
        let (layout, size) = (array.layout(), array.dtype().size() as isize);
        let made = PyDict::new(py);
        made.set_item("version", 3)?;
        made.set_item("typestr", code(array.dtype()))?;
        made.set_item("shape", PyTuple::new(py, layout.sizes.iter())?)?;
        let strides: Vec<isize> = layout.strides.iter().map(|s| *s * size).collect();
        made.set_item("strides", PyTuple::new(py, strides)?)?;
        made.set_item("data", (self.0.address(), true))?;
        Ok(made)
    }
}

//! Devices: scopes that a `with` opens and ends, names in every usual form, copies from one device to another.

use std::cell::RefCell;

use pyo3::prelude::*;
use tonnage::device::{self, Device, DeviceScope};
use tonnage::{Result, Tensor, bind};
use tonnage_runtime::placement::in_scope;

use crate::errors::raise;
use crate::run::{MUCH, run, run_attached};
use crate::tensor::PyTensor;

thread_local! {
    /// The scopes of this thread that `with` opened, the innermost last.
    static SCOPES: RefCell<Vec<DeviceScope>> = const { RefCell::new(Vec::new()) };
}

/// Lets new tensors and variables of this thread go to that device, or without one wherever they would without a scope, until
/// [`leave_device`].
#[pyfunction]
#[pyo3(signature = (name))]
pub fn enter_device(py: Python<'_>, name: Option<&str>) -> PyResult<()> {
    let scope = match name {
        Some(name) => run_attached(py, || device::scope(name))?,
        None => DeviceScope::none(),
    };
    SCOPES.with_borrow_mut(|scopes| scopes.push(scope));
    Ok(())
}

/// As it was before the last [`enter_device`].
#[pyfunction]
pub fn leave_device() {
    drop(SCOPES.with_borrow_mut(Vec::pop));
}

/// Whether this thread is in the scope of a device, where any but the CPU was ever used.
#[pyfunction]
pub fn in_device_scope() -> bool {
    DeviceScope::current().is_some()
}

/// A device of any name: its short name, its kind as TensorFlow calls it, and which of them it is.
#[pyfunction]
pub fn parse_device(py: Python<'_>, name: &str) -> PyResult<(String, String, u16)> {
    let device: Device = name.parse().map_err(|e| raise(py, e))?;
    let full = device.tensorflow_name();
    let kind = full.trim_start_matches("/device:").split(':').next().unwrap_or_default();
    Ok((device.to_string(), kind.into(), device.index))
}

/// The short names of the devices of this machine.
#[pyfunction]
pub fn devices() -> Vec<String> {
    device::list()
}

/// Lets inputs on different devices be copied to one, with a notice, or be an error.
#[pyfunction]
pub fn set_soft_placement(on: bool) {
    device::set_soft_placement(on);
}

/// Whether inputs on different devices are copied to one.
#[pyfunction]
pub fn soft_placement() -> bool {
    device::is_placement_soft()
}

/// The tensor on that device: itself where it lies there.
#[pyfunction]
pub fn copied_to(py: Python<'_>, x: &Bound<'_, PyTensor>, name: &str) -> PyResult<PyTensor> {
    let tensor = &x.get().tensor;
    run(py, MUCH, || tensor.to(name)).map(PyTensor::from)
}

/// The tensor on the device of the scope that the thread is in: itself where there is none, or where it lies there. Strings stay in host memory.
#[pyfunction]
pub fn to_scope<'py>(py: Python<'py>, x: Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
    let Ok(numbers) = x.cast::<PyTensor>() else { return Ok(x) };
    let tensor = &numbers.get().tensor;
    if scope_of(tensor).is_none() {
        return Ok(x);
    }
    let moved = run(py, MUCH, || in_scope(bind::array(tensor, "to")?.clone()).map(bind::tensor))?;
    Ok(Bound::new(py, PyTensor::from(moved))?.into_any())
}

/// The same values in bytes of their own; on the device of the scope that the thread is in.
pub fn identity(x: &Tensor) -> Result<Tensor> {
    match scope_of(x) {
        Some(device) => x.to(&device.to_string()),
        None => x.identity(),
    }
}

/// The device of the scope, where a tensor with values lies on another.
fn scope_of(x: &Tensor) -> Option<Device> {
    let device = DeviceScope::current().filter(|_| !x.is_symbolic())?;
    // A description says that it lies in host memory: it is written out where it is asked for elsewhere.
    (x.device() != device).then_some(device)
}

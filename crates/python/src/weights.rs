//! Named tensors in files (safetensors): what weights and checkpoints are kept in. Neither saving nor loading takes memory
//! besides that of the variables.

use pyo3::prelude::*;
use tonnage::io::{SafeTensors, save_safetensors};
use tonnage::{Elementwise, Tensor, Variable};

use crate::convert::{self, Want};
use crate::dtype;
use crate::run::{MUCH, run};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;

/// Saves named tensors, variables and texts; the file appears whole or not at all.
#[pyfunction]
pub fn save_tensors(
    py: Python<'_>,
    path: String,
    tensors: Vec<(String, Bound<'_, PyAny>)>,
    notes: Vec<(String, String)>,
) -> PyResult<()> {
    let named = tensors
        .iter()
        .map(|(name, value)| Ok((name.clone(), convert::tensor(value, Want::default())?)))
        .collect::<PyResult<Vec<(String, Tensor)>>>()?;
    let notes: Vec<(&str, &str)> = notes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    run(py, MUCH, || {
        save_safetensors(&path, named.iter().map(|(name, value)| (name.as_str(), value)), &notes)
    })
}

/// Named tensors in a file: opening reads the header, each tensor is read when it is asked for.
#[pyclass(frozen, name = "TensorFile", module = "tonnage")]
pub struct PyTensorFile(SafeTensors);

#[pymethods]
impl PyTensorFile {
    #[new]
    fn new(py: Python<'_>, path: String) -> PyResult<PyTensorFile> {
        run(py, 0, || SafeTensors::open(&path)).map(PyTensorFile)
    }

    /// The names, sorted.
    fn names(&self) -> Vec<String> {
        self.0.names().map(str::to_string).collect()
    }

    /// The lengths of a tensor.
    fn lengths(&self, py: Python<'_>, name: &str) -> PyResult<Vec<Option<usize>>> {
        let ty = run(py, 0, || self.0.ty(name))?;
        Ok(ty.shape.iter().map(|dim| dim.known()).collect())
    }

    /// The dtype of a tensor.
    fn dtype(&self, py: Python<'_>, name: &str) -> PyResult<Py<dtype::PyDType>> {
        let ty = run(py, 0, || self.0.ty(name))?;
        dtype::object(py, ty.dtype)
    }

    /// A text that was saved beside the tensors.
    fn note(&self, key: &str) -> Option<String> {
        self.0.note(key).map(str::to_string)
    }

    /// Reads a tensor.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<PyTensor> {
        run(py, MUCH, || self.0.read(name)).map(PyTensor::from)
    }

    /// Gives a variable the value of a name.
    fn load(&self, py: Python<'_>, name: &str, variable: PyRef<'_, PyVariable>) -> PyResult<()> {
        let variable: Variable = variable.variable.clone();
        run(py, MUCH, || {
            // From the file straight into the variable's bytes: a tensor between them would take as much again.
            let value = self.0.tensor(name)?.lazy().cast(variable.ty().dtype)?;
            variable.assign(&value)
        })
    }
}

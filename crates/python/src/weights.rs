//! Named tensors in files (safetensors): what weights and checkpoints are stored in. Neither saving nor loading takes memory
//! besides that of the variables. And what folders of checkpoints need besides: texts that appear whole, and locks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use tonnage::io::{SafeTensors, save_safetensors};
use tonnage::{Elementwise, Tensor, Variable};
use tonnage_runtime::FolderLock;

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

/// Saves a text; the file appears whole or not at all.
#[pyfunction]
pub fn save_text(py: Python<'_>, path: String, text: String) -> PyResult<()> {
    run(py, MUCH, || tonnage::io::save_text(&path, &text))
}

/// A folder that this process alone writes to, while this lives.
#[pyclass(frozen, name = "FolderLock", module = "tonnage")]
pub struct PyFolderLock(Arc<FolderLock>);

#[pymethods]
impl PyFolderLock {
    #[new]
    fn new(py: Python<'_>, folder: String) -> PyResult<PyFolderLock> {
        run(py, 0, || FolderLock::take(Path::new(&folder))).map(PyFolderLock)
    }

    /// Raises in a fork of the process that took it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        run(py, 0, || self.0.turn().map(drop))
    }
}

/// Named tensors in a file: opening reads the header, each tensor is read when it is asked for.
#[pyclass(frozen, name = "TensorFile", module = "tonnage")]
pub struct PyTensorFile {
    file: SafeTensors,
    /// Set when all of it was found as it was saved.
    checked: OnceLock<()>,
}

#[pymethods]
impl PyTensorFile {
    #[new]
    fn new(py: Python<'_>, path: String) -> PyResult<PyTensorFile> {
        let file = run(py, 0, || SafeTensors::open(&path))?;
        Ok(PyTensorFile { file, checked: OnceLock::new() })
    }

    /// The names, sorted.
    fn names(&self) -> Vec<String> {
        self.file.names().map(str::to_string).collect()
    }

    /// The lengths of a tensor.
    fn lengths(&self, py: Python<'_>, name: &str) -> PyResult<Vec<Option<usize>>> {
        let ty = run(py, 0, || self.file.ty(name))?;
        Ok(ty.shape.iter().map(|dim| dim.known()).collect())
    }

    /// The dtype of a tensor.
    fn dtype(&self, py: Python<'_>, name: &str) -> PyResult<Py<dtype::PyDType>> {
        let ty = run(py, 0, || self.file.ty(name))?;
        dtype::object(py, ty.dtype)
    }

    /// A text that was saved beside the tensors.
    fn note(&self, key: &str) -> Option<String> {
        self.file.note(key).map(str::to_string)
    }

    /// Reads a tensor.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<PyTensor> {
        run(py, MUCH, || self.file.read(name)).map(PyTensor::from)
    }

    /// Gives a variable the value of a name. All of the file is compared with its checksums before the first one.
    fn load(&self, py: Python<'_>, name: &str, variable: PyRef<'_, PyVariable>) -> PyResult<()> {
        let variable: Variable = variable.variable.clone();
        run(py, MUCH, || {
            if self.checked.get().is_none() {
                self.file.check()?;
                let _ = self.checked.set(());
            }
            // From the file straight into the variable's bytes: a tensor between them would take as much again.
            let value = self.file.tensor(name)?.lazy().cast(variable.ty().dtype)?;
            variable.assign(&value)
        })
    }
}

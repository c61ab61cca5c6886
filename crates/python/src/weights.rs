//! Named tensors in files (safetensors): what weights and checkpoints are stored in. Neither saving nor loading takes memory
//! besides that of the variables. And what folders of checkpoints need besides: texts that appear whole, and locks.

use std::path::Path;
use std::sync::{Arc, OnceLock};

use pyo3::prelude::*;
use tonnage::io::{RangedTensors, SafeTensors, save_safetensors};
use tonnage::{Elementwise, Result, Tensor, TensorType, Variable, train};
use tonnage_runtime::FolderLock;

use crate::convert::{self, Want};
use crate::dtype;
use crate::run::{MUCH, run};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;
use crate::world::PyWorld;

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

/// Saves named variables and texts, on all ranks at once: of what they hold in blocks each rank writes its own. `path` is the index, which comes last.
#[pyfunction]
pub fn save_across(
    py: Python<'_>,
    world: PyRef<'_, PyWorld>,
    path: String,
    variables: Vec<(String, PyRef<'_, PyVariable>)>,
    notes: Vec<(String, String)>,
) -> PyResult<()> {
    let named: Vec<(String, Variable)> =
        variables.iter().map(|(name, value)| (name.clone(), value.variable.clone())).collect();
    let notes: Vec<(&str, &str)> = notes.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
    let world = world.0.clone();
    run(py, MUCH, || train::save_across(&world, &path, &named, &notes))
}

/// Removes what ranks have saved under the name of an index.
#[pyfunction]
pub fn remove_saved(py: Python<'_>, path: String) -> PyResult<()> {
    run(py, MUCH, || train::remove_saved(&path))
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

/// Named tensors in a file, or in those of an index of ranges: opening reads the header, each tensor is read when it is asked for.
#[pyclass(frozen, name = "TensorFile", module = "tonnage")]
pub struct PyTensorFile {
    file: Named,
    /// Set when all of it was found as it was saved.
    checked: OnceLock<()>,
}

/// What holds named tensors.
enum Named {
    File(SafeTensors),
    Ranges(RangedTensors),
}

impl Named {
    fn ty(&self, name: &str) -> Result<TensorType> {
        match self {
            Named::File(file) => file.ty(name),
            Named::Ranges(file) => file.ty(name),
        }
    }

    fn read(&self, name: &str) -> Result<Tensor> {
        match self {
            Named::File(file) => file.read(name),
            Named::Ranges(file) => {
                let shape = file.ty(name)?.shape;
                file.read_range(name, 0..shape.elements().known().unwrap_or(0))?.reshape(shape)
            }
        }
    }
}

#[pymethods]
impl PyTensorFile {
    #[new]
    fn new(py: Python<'_>, path: String) -> PyResult<PyTensorFile> {
        let open = || match path.ends_with(".json") {
            true => RangedTensors::open(&path).map(Named::Ranges),
            false => SafeTensors::open(&path).map(Named::File),
        };
        let file = run(py, 0, open)?;
        Ok(PyTensorFile { file, checked: OnceLock::new() })
    }

    /// The names, sorted.
    fn names(&self) -> Vec<String> {
        match &self.file {
            Named::File(file) => file.names().map(str::to_string).collect(),
            Named::Ranges(file) => file.names().map(str::to_string).collect(),
        }
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
        let text = match &self.file {
            Named::File(file) => file.note(key),
            Named::Ranges(file) => file.note(key),
        };
        text.map(str::to_string)
    }

    /// Reads a tensor.
    fn read(&self, py: Python<'_>, name: &str) -> PyResult<PyTensor> {
        run(py, MUCH, || self.file.read(name)).map(PyTensor::from)
    }

    /// Gives a variable the value of a name. All of the file is compared with its checksums before the first one.
    fn load(&self, py: Python<'_>, name: &str, variable: PyRef<'_, PyVariable>) -> PyResult<()> {
        let variable: Variable = variable.variable.clone();
        run(py, MUCH, || {
            let file = match &self.file {
                // Each rank reads what it holds: all of it would be read by each.
                Named::Ranges(file) => return file.load(name, &variable),
                Named::File(file) => file,
            };
            if self.checked.get().is_none() {
                file.check()?;
                let _ = self.checked.set(());
            }
            // From the file straight into the variable's bytes: a tensor between them would take as much again.
            let value = file.tensor(name)?.lazy().cast(variable.ty().dtype)?;
            variable.assign(&value)
        })
    }
}

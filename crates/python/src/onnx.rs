//! ONNX models: loaded, planned and called.

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use tonnage::Tensor;
use tonnage_onnx::{Model, Value};

use crate::convert::{self, Want};
use crate::function::{budget_of, bytes};
use crate::memory::{PyPlan, ran};
use crate::run::{MUCH, run};
use crate::tensor::PyTensor;
use crate::variable::PyVariable;

/// A model of a file.
#[pyclass(frozen, name = "OnnxModel", module = "tonnage")]
pub struct PyOnnxModel(Model);

/// What a model is given: a tensor, a list of tensors, or nothing.
fn value(given: &Bound<'_, PyAny>) -> PyResult<Value> {
    if given.is_none() {
        return Ok(Value::Absent);
    }
    if let Ok(list) = given.cast::<PyList>() {
        let all = list.iter().map(|one| convert::tensor(&one, Want::default()));
        return Ok(Value::Sequence(all.collect::<PyResult<Vec<_>>>()?));
    }
    Ok(Value::Tensor(convert::tensor(given, Want::default())?))
}

fn object(py: Python<'_>, value: Value) -> PyResult<Py<PyAny>> {
    let tensor = |tensor: Tensor| Ok(Py::new(py, PyTensor::from(tensor))?.into_any());
    match value {
        Value::Absent => Ok(py.None()),
        Value::Tensor(one) => tensor(one),
        Value::Sequence(all) => {
            let all = all.into_iter().map(tensor).collect::<PyResult<Vec<_>>>()?;
            Ok(PyList::new(py, all)?.into_any().unbind())
        }
    }
}

#[pymethods]
impl PyOnnxModel {
    #[new]
    fn new(
        py: Python<'_>,
        path: String,
        budget: Option<&Bound<'_, PyAny>>,
        trainable: bool,
    ) -> PyResult<PyOnnxModel> {
        let budget = budget.map(budget_of).transpose()?;
        let model = run(py, MUCH, || {
            let model = tonnage_onnx::load(&path)?;
            model.check()?;
            let model = if trainable { model.trainable() } else { model };
            match budget {
                Some(budget) => model.budget(budget),
                None => Ok(model),
            }
        })?;
        Ok(PyOnnxModel(model))
    }

    /// Names and types of the inputs.
    fn inputs(&self) -> Vec<(String, String)> {
        self.0.inputs().iter().map(|port| (port.name.clone(), port.to_string())).collect()
    }

    /// Names and types of the outputs.
    fn outputs(&self) -> Vec<(String, String)> {
        self.0.outputs().iter().map(|port| (port.name.clone(), port.to_string())).collect()
    }

    /// The weights that are trained.
    fn variables(&self, py: Python<'_>) -> PyResult<Vec<PyVariable>> {
        let all = run(py, 0, || self.0.variables())?;
        Ok(all.into_iter().map(|variable| PyVariable { variable }).collect())
    }

    /// Runs it.
    fn call(&self, py: Python<'_>, inputs: Vec<Bound<'_, PyAny>>) -> PyResult<Vec<Py<PyAny>>> {
        let inputs = inputs.iter().map(value).collect::<PyResult<Vec<Value>>>()?;
        let made = run(py, MUCH, || self.0.call(inputs))?;
        made.into_iter().map(|value| object(py, value)).collect()
    }

    /// What the planned segments of the last call took.
    fn last_run<'py>(&self, py: Python<'py>) -> PyResult<Vec<Bound<'py, PyDict>>> {
        self.0.last_run().iter().map(|one| ran(py, one)).collect()
    }

    /// What a call with open lengths of these numbers would take.
    fn plan(&self, py: Python<'_>, lengths: Vec<(String, usize)>) -> PyResult<PyPlan> {
        let lengths: Vec<(&str, usize)> =
            lengths.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        run(py, MUCH, || self.0.plan(&self.0.specs(&lengths)?)).map(PyPlan)
    }

    /// The plan of each segment, with numbers that are only known when it runs taken from bounds.
    fn plans(
        &self,
        py: Python<'_>,
        lengths: Vec<(String, usize)>,
        bounds: Vec<(String, usize)>,
    ) -> PyResult<Vec<PyPlan>> {
        let plans = run(py, MUCH, || {
            let lengths: Vec<(&str, usize)> =
                lengths.iter().map(|(name, n)| (name.as_str(), *n)).collect();
            let bounds: Vec<(&str, usize)> =
                bounds.iter().map(|(name, n)| (name.as_str(), *n)).collect();
            self.0.plans(&self.0.specs(&lengths)?, &bounds)
        })?;
        Ok(plans.into_iter().map(PyPlan).collect())
    }

    /// The largest length of a name with which a call fits.
    fn max_batch(
        &self,
        py: Python<'_>,
        name: &str,
        lengths: Vec<(String, usize)>,
        budget: &Bound<'_, PyAny>,
    ) -> PyResult<usize> {
        let lengths: Vec<(&str, usize)> =
            lengths.iter().map(|(name, n)| (name.as_str(), *n)).collect();
        let budget = bytes(budget)?;
        run(py, MUCH, || self.0.max_batch(name, &lengths, budget))
    }
}

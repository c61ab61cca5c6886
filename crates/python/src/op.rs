//! Ops of the table as callables: elementwise ones, which take tensors and nothing else.

use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tonnage::{Tensor, bind};
use tonnage_core::OpDef;
use tonnage_core::attrs::Attrs;
use tonnage_ops::math;

use crate::convert::{self, Want};
use crate::run::run;
use crate::strings::{self, PyStrings, PyValue, text};
use crate::tensor::PyTensor;

/// An op that takes tensors of one dtype, under a name of TensorFlow's.
#[pyclass(frozen, dict, name = "Op", module = "tonnage")]
pub struct Op {
    row: &'static OpDef,
    name: String,
    /// What its arguments are called.
    parameters: Vec<String>,
}

#[pymethods]
impl Op {
    #[new]
    fn new(row: &str, name: String, parameters: Vec<String>) -> PyResult<Op> {
        match tonnage_ops::find(row) {
            Some(row) => Ok(Op { row, name, parameters }),
            None => Err(PyValueError::new_err(format!("the table has no op `{row}`"))),
        }
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__(
        &self,
        py: Python<'_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<PyValue> {
        let count = self.parameters.len();
        let mut given: Vec<Bound<'_, PyAny>> = args.iter().take(count).collect();
        if args.len() > count + 1 {
            return Err(self.wrong(&format!("{} arguments were given", args.len())));
        }
        if let Some(kwargs) = kwargs {
            for name in &self.parameters[given.len().min(count)..] {
                if let Some(value) = kwargs.get_item(name)? {
                    given.push(value);
                }
            }
            for key in kwargs.keys() {
                let key = key.to_string();
                if key != "name" && !self.parameters.contains(&key) {
                    return Err(self.wrong(&format!("there is no argument `{key}`")));
                }
            }
        }
        if given.len() != count {
            return Err(self.wrong(&format!("{} of {count} arguments were given", given.len())));
        }
        let tensors = match together(&given) {
            Ok(tensors) => tensors,
            Err(error) => return self.of_strings(py, &given).unwrap_or(Err(error)),
        };
        let inputs: Vec<&Tensor> = tensors.iter().collect();
        let work = inputs.iter().map(|t| t.shape().count().unwrap_or(0)).max().unwrap_or(0);
        let made =
            run(py, work, || Ok(bind::apply(self.row, &inputs, Attrs::None)?.swap_remove(0)));
        made.map(|tensor| PyValue::Numbers(tensor.into()))
    }

    #[getter]
    fn __name__(&self) -> &str {
        &self.name
    }

    /// What `inspect.signature` gives: the tensors, and the name that TensorFlow's ops take. Made when it is asked
    /// for, so that importing the package does not import `inspect`.
    #[getter]
    fn __signature__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let inspect = py.import("inspect")?;
        let class = inspect.getattr("Parameter")?;
        let kind = class.getattr("POSITIONAL_OR_KEYWORD")?;
        let mut parameters = Vec::with_capacity(self.parameters.len() + 1);
        for name in &self.parameters {
            parameters.push(class.call1((name, &kind))?);
        }
        let default = PyDict::new(py);
        default.set_item("default", py.None())?;
        parameters.push(class.call(("name", &kind), Some(&default))?);
        inspect.getattr("Signature")?.call1((parameters,))
    }

    /// What it takes and does, in words.
    #[getter]
    fn doc(&self) -> String {
        format!("{}({}, name=None)\n\n{}", self.name, self.parameters.join(", "), self.row.doc)
    }

    fn __repr__(&self) -> String {
        format!("<function {}({})>", self.name, self.parameters.join(", "))
    }
}

impl Op {
    /// The op of strings, where it is one that strings have and one side is strings.
    fn of_strings(&self, py: Python<'_>, given: &[Bound<'_, PyAny>]) -> Option<PyResult<PyValue>> {
        let [left, right] = given else { return None };
        if !strings::is_text(left) && !strings::is_text(right) {
            return None;
        }
        let is_sum = *self.row == math::add::ADD;
        let is_equal = *self.row == math::comparison::EQUAL;
        if !is_sum && !is_equal && *self.row != math::comparison::NOT_EQUAL {
            return None;
        }
        let sides = || Ok((strings::strings(left)?, strings::strings(right)?));
        Some(sides().and_then(|(left, right)| match is_sum {
            true => {
                let made = run(py, 0, || Ok(text::sum(&left, &right)));
                text::undecided(py, made)?.map(|sum| PyValue::Strings(PyStrings(sum)))
            }
            false => {
                let made = strings::compared(py, &left, &right, is_equal)?;
                Ok(PyValue::Numbers(made.into()))
            }
        }))
    }

    fn wrong(&self, what: &str) -> PyErr {
        let takes = self.parameters.join(", ");
        PyTypeError::new_err(format!("{}({takes}, name=None): {what}", self.name))
    }
}

/// Several arguments as tensors of one dtype: that of the first that has one of its own.
fn together(given: &[Bound<'_, PyAny>]) -> PyResult<Vec<Tensor>> {
    let mut hint = None;
    for item in given {
        if let Ok(tensor) = item.cast::<PyTensor>() {
            hint = hint.or(Some(tensor.get().tensor.dtype()));
        } else if let Ok(variable) = item.cast::<crate::variable::PyVariable>() {
            hint = hint.or(Some(variable.get().variable.ty().dtype));
        }
    }
    if let ([first, ..], None) = (given, hint) {
        // Numbers and lists alone: the first says what the others are.
        let first = convert::tensor(first, Want::default())?;
        let hint = Want::rather(first.dtype());
        let rest = given[1..].iter().map(|item| convert::tensor(item, hint));
        return std::iter::once(Ok(first)).chain(rest).collect();
    }
    let want = Want { wanted: None, hint };
    let made =
        given.iter().map(|item| convert::tensor(item, want)).collect::<PyResult<Vec<_>>>()?;
    if let [first, rest @ ..] = &made[..]
        && let Some(other) = rest.iter().find(|t| t.dtype() != first.dtype())
        && first.dtype() != tonnage::DType::Bool
    {
        let (a, b) = (crate::dtype::name(first.dtype()), crate::dtype::name(other.dtype()));
        let kind = tonnage::ErrorKind::BadArgument {
            op: "op",
            what: format!("cannot compute with inputs of dtypes {a} and {b}"),
            help: "convert one with `tf.cast`".into(),
        };
        let py = given[0].py();
        return Err(crate::errors::raise(py, kind.into()));
    }
    Ok(made)
}

/// Every op of the table: its name and what it says of itself.
#[pyfunction]
pub fn table() -> Vec<(&'static str, &'static str)> {
    tonnage_ops::TABLE.iter().map(|row| (row.name, row.doc)).collect()
}

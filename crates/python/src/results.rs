//! What ops make, as Python gets it.

use tonnage::Tensor;
use tonnage::strings::{Strings, Value};

use crate::strings::{PyStrings, PyValue};
use crate::tensor::PyTensor;

/// What an op makes, for Python.
pub trait IntoObject: Send {
    type Object;
    fn out(self) -> Self::Object;
}

impl IntoObject for Tensor {
    type Object = PyTensor;
    fn out(self) -> PyTensor {
        self.into()
    }
}

impl IntoObject for Value {
    type Object = PyValue;
    fn out(self) -> PyValue {
        self.into()
    }
}

impl IntoObject for Strings {
    type Object = PyStrings;
    fn out(self) -> PyStrings {
        PyStrings(self)
    }
}

impl IntoObject for Vec<Value> {
    type Object = Vec<PyValue>;
    fn out(self) -> Vec<PyValue> {
        self.into_iter().map(Into::into).collect()
    }
}

impl IntoObject for (Value, Tensor) {
    type Object = (PyValue, PyTensor);
    fn out(self) -> (PyValue, PyTensor) {
        (self.0.into(), self.1.into())
    }
}

impl IntoObject for (Value, Tensor, Tensor) {
    type Object = (PyValue, PyTensor, PyTensor);
    fn out(self) -> (PyValue, PyTensor, PyTensor) {
        (self.0.into(), self.1.into(), self.2.into())
    }
}

impl IntoObject for Vec<Tensor> {
    type Object = Vec<PyTensor>;
    fn out(self) -> Vec<PyTensor> {
        self.into_iter().map(Into::into).collect()
    }
}

impl IntoObject for (Tensor, Tensor) {
    type Object = (PyTensor, PyTensor);
    fn out(self) -> (PyTensor, PyTensor) {
        (self.0.into(), self.1.into())
    }
}

impl IntoObject for (Tensor, Tensor, Tensor) {
    type Object = (PyTensor, PyTensor, PyTensor);
    fn out(self) -> (PyTensor, PyTensor, PyTensor) {
        (self.0.into(), self.1.into(), self.2.into())
    }
}

impl IntoObject for (Strings, Tensor) {
    type Object = (PyStrings, PyTensor);
    fn out(self) -> Self::Object {
        (PyStrings(self.0), self.1.into())
    }
}

impl IntoObject for (Strings, Tensor, Tensor) {
    type Object = (PyStrings, PyTensor, PyTensor);
    fn out(self) -> Self::Object {
        (PyStrings(self.0), self.1.into(), self.2.into())
    }
}

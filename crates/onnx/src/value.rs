//! What flows between nodes.

use tonnage::{Result, Tensor};
use tonnage_core::error::bad_argument;

/// What a node reads or makes, and what a model takes and gives.
#[derive(Debug, Clone)]
pub enum Value {
    /// Left out.
    Absent,
    /// A tensor.
    Tensor(Tensor),
    /// Tensors one after the other, whose shapes may differ.
    Sequence(Vec<Tensor>),
}

impl Value {
    /// The tensor that it is.
    ///
    /// # Errors
    /// Where it is none.
    pub fn tensor(self) -> Result<Tensor> {
        match self {
            Value::Tensor(tensor) => Ok(tensor),
            Value::Absent => {
                Err(bad_argument("onnx", "a value that is left out", "ask for a tensor"))
            }
            Value::Sequence(_) => Err(bad_argument("onnx", "a sequence", "ask for a tensor")),
        }
    }

    /// Its tensors.
    pub fn tensors(&self) -> &[Tensor] {
        match self {
            Value::Absent => &[],
            Value::Tensor(tensor) => std::slice::from_ref(tensor),
            Value::Sequence(tensors) => tensors,
        }
    }

    /// Whether all of it has values already.
    pub(crate) fn is_known(&self) -> bool {
        self.tensors().iter().all(|tensor| !tensor.is_symbolic())
    }
}

impl From<Tensor> for Value {
    fn from(tensor: Tensor) -> Value {
        Value::Tensor(tensor)
    }
}

impl From<&Tensor> for Value {
    fn from(tensor: &Tensor) -> Value {
        Value::Tensor(tensor.clone())
    }
}

impl From<Vec<Tensor>> for Value {
    fn from(tensors: Vec<Tensor>) -> Value {
        Value::Sequence(tensors)
    }
}

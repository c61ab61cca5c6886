//! A tensor of either kind, numbers or strings: what moves elements does not care which.

use tonnage_core::error::bad_argument;
use tonnage_core::{Result, Shape};

use super::Strings;
use crate::tensor::Tensor;

/// Numbers or strings.
#[derive(Clone)]
pub enum Value {
    /// A tensor of numbers or truth values.
    Numbers(Tensor),
    /// One of strings.
    Strings(Strings),
}

impl Value {
    /// Applies an op that moves elements and computes nothing.
    ///
    /// # Errors
    /// Those of the op.
    pub fn each(&self, op: impl Fn(&Tensor) -> Result<Tensor>) -> Result<Value> {
        match self {
            Value::Numbers(tensor) => op(tensor).map(Value::Numbers),
            Value::Strings(strings) => strings.each(op).map(Value::Strings),
        }
    }

    /// The same of an op with several results.
    ///
    /// # Errors
    /// Those of the op.
    pub fn each_of_several(
        &self,
        op: impl Fn(&Tensor) -> Result<Vec<Tensor>>,
    ) -> Result<Vec<Value>> {
        match self {
            Value::Numbers(tensor) => Ok(op(tensor)?.into_iter().map(Value::Numbers).collect()),
            Value::Strings(strings) => {
                let parts = op(&strings.offsets)?.into_iter().zip(op(&strings.sizes)?);
                parts.map(|(at, sizes)| strings.spans(at, sizes).map(Value::Strings)).collect()
            }
        }
    }

    /// Its shape.
    pub fn shape(&self) -> Shape {
        match self {
            Value::Numbers(tensor) => tensor.shape(),
            Value::Strings(strings) => strings.shape(),
        }
    }

    /// Dtype and shape, for people.
    pub fn type_text(&self) -> String {
        match self {
            Value::Numbers(tensor) => tensor.ty().to_string(),
            Value::Strings(strings) => format!("string{}", strings.shape()),
        }
    }

    /// The strings.
    ///
    /// # Errors
    /// Where it is numbers.
    pub fn strings(self) -> Result<Strings> {
        match self {
            Value::Strings(strings) => Ok(strings),
            Value::Numbers(tensor) => {
                Err(bad_argument("strings", tensor.ty().to_string(), "give strings"))
            }
        }
    }

    /// The numbers.
    ///
    /// # Errors
    /// Where it is strings.
    pub fn numbers(self) -> Result<Tensor> {
        match self {
            Value::Numbers(tensor) => Ok(tensor),
            Value::Strings(_) => {
                Err(bad_argument("tensor", "strings among numbers", "give numbers"))
            }
        }
    }

    /// Several of one kind along an axis.
    ///
    /// # Errors
    /// Where kinds, dtypes or shapes do not agree.
    pub fn concat(values: &[Value], axis: i64) -> Result<Value> {
        Value::over(values, "concat", |parts| crate::concat(parts, axis))
    }

    /// Several of one kind beside each other along a new axis.
    ///
    /// # Errors
    /// Where kinds, dtypes or shapes do not agree.
    pub fn stack(values: &[Value], axis: i64) -> Result<Value> {
        Value::over(values, "stack", |parts| crate::stack(parts, axis))
    }

    /// Applies an op that moves elements between several of one kind; it is named in errors.
    ///
    /// # Errors
    /// Where kinds do not agree, and those of the op.
    pub fn over(
        values: &[Value],
        op: &'static str,
        join: impl Fn(&[&Tensor]) -> Result<Tensor>,
    ) -> Result<Value> {
        let (mut numbers, mut strings) = (Vec::new(), Vec::new());
        for value in values {
            match value {
                Value::Numbers(tensor) => numbers.push(tensor),
                Value::Strings(one) => strings.push(one),
            }
        }
        match (numbers.is_empty(), strings.is_empty()) {
            (_, true) => join(&numbers).map(Value::Numbers),
            (true, false) => super::join::joined(&strings, join).map(Value::Strings),
            (false, false) => {
                let what = "strings beside numbers";
                Err(bad_argument(op, what, "give one kind: `as_string` makes strings of numbers"))
            }
        }
    }
}

//! What stands behind the tensor's operators: the other side as a tensor, dtypes that agree, lengths that come of lengths.

use std::sync::Arc;

use pyo3::prelude::*;
use tonnage::{DType, Dim, Elementwise, ErrorKind, Tensor, bind};
use tonnage_core::OpDef;
use tonnage_ops::math;

use crate::args::Dims;
use crate::convert::{self, Want};
use crate::errors;
use crate::run::run;
use crate::tensor::PyTensor;

/// Something that can be the other side of an op; none is Python's `NotImplemented`.
pub fn side(given: &Bound<'_, PyAny>, dtype: DType) -> PyResult<Option<(Tensor, Dims)>> {
    if let Ok(tensor) = given.cast::<PyTensor>() {
        let tensor = tensor.get();
        return Ok(Some((tensor.tensor.clone(), tensor.dims.clone())));
    }
    let dims = given.extract::<usize>().ok().map(|n| Arc::from([Dim::Known(n)]));
    Ok(convert::maybe(given, Want::rather(dtype))?.map(|tensor| (tensor, dims)))
}

/// Applies an op of two sides of one dtype.
pub fn binary(py: Python<'_>, op: &'static OpDef, a: &Tensor, b: &Tensor) -> PyResult<Tensor> {
    same_dtype(py, op, a, b)?;
    let work = a.shape().count().unwrap_or(0).max(b.shape().count().unwrap_or(0));
    run(py, work, || Ok(bind::apply(op, &[a, b], tonnage_core::attrs::Attrs::None)?.swap_remove(0)))
}

/// TensorFlow converts nothing by itself, and nor do programs that are written for it expect that.
pub fn same_dtype(py: Python<'_>, op: &'static OpDef, a: &Tensor, b: &Tensor) -> PyResult<()> {
    if a.dtype() == b.dtype() {
        return Ok(());
    }
    let help = "convert one side with `tf.cast`".to_string();
    let kind = ErrorKind::DTypeMismatch { op: op.name, left: a.dtype(), right: b.dtype(), help };
    Err(errors::raise(py, kind.into()))
}

/// What `&`, `|` and `^` stand for: one op for truths, another for bits.
#[derive(Clone, Copy)]
pub struct Gate {
    of_truths: &'static OpDef,
    of_bits: &'static OpDef,
}

pub const AND: Gate =
    Gate { of_truths: &math::logical::LOGICAL_AND, of_bits: &math::bitwise::BITWISE_AND };
pub const OR: Gate =
    Gate { of_truths: &math::logical::LOGICAL_OR, of_bits: &math::bitwise::BITWISE_OR };
pub const XOR: Gate =
    Gate { of_truths: &math::logical::LOGICAL_XOR, of_bits: &math::bitwise::BITWISE_XOR };

/// Quotients of integers are floats, as Python's are.
fn divisible(py: Python<'_>, tensor: Tensor) -> PyResult<Tensor> {
    if tensor.dtype().is_float() {
        return Ok(tensor);
    }
    let to = if tensor.dtype().size() <= 2 { DType::F32 } else { DType::F64 };
    run(py, 0, || tensor.cast(to))
}

impl PyTensor {
    pub fn gated(
        &self,
        py: Python<'_>,
        gate: Gate,
        other: &Bound<'_, PyAny>,
        reflected: bool,
    ) -> PyResult<Py<PyAny>> {
        let op = if self.tensor.dtype() == DType::Bool { gate.of_truths } else { gate.of_bits };
        self.with(py, op, other, reflected)
    }

    pub fn with(
        &self,
        py: Python<'_>,
        op: &'static OpDef,
        other: &Bound<'_, PyAny>,
        reflected: bool,
    ) -> PyResult<Py<PyAny>> {
        let Some((other, dims)) = side(other, self.tensor.dtype())? else {
            return Ok(py.NotImplemented());
        };
        let dims = match reflected {
            false => combined(op, &self.dims, &dims),
            true => combined(op, &dims, &self.dims),
        };
        let (a, b) = if reflected { (&other, &self.tensor) } else { (&self.tensor, &other) };
        let tensor = match *op == math::div::DIV && !a.dtype().is_float() {
            true => {
                same_dtype(py, op, a, b)?;
                let (a, b) = (divisible(py, a.clone())?, divisible(py, b.clone())?);
                binary(py, op, &a, &b)?
            }
            false => binary(py, op, a, b)?,
        };
        Ok(Py::new(py, PyTensor { tensor, dims })?.into_any())
    }
}

/// Lengths that come of lengths.
fn combined(op: &'static OpDef, a: &Dims, b: &Dims) -> Dims {
    let (a, b) = (a.as_ref()?, b.as_ref()?);
    let count = a.len().max(b.len());
    if [a.len(), b.len()].iter().any(|n| *n != count && *n != 1) {
        return None;
    }
    let of = |dims: &Arc<[Dim]>, i: usize| dims[if dims.len() == 1 { 0 } else { i }].clone();
    let one = |i: usize| {
        let (a, b) = (of(a, i), of(b, i));
        match op.name {
            "add" => Some(a.plus(&b)),
            "sub" => Some(a.minus(&b)),
            "mul" => Some(a.times(&b)),
            "floor_div" if !b.is(0) => Some(a.divided_by(&b)),
            _ => None,
        }
    };
    (0..count).map(one).collect()
}

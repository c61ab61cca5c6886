//! Updates of variables: in place, always; and values that wait in a file.

pub mod assign;
pub mod assign_add;
pub mod assign_add_rows;
pub mod assign_rows;
pub mod assign_sub;
pub mod spill;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::grad::JvpCall;
use tonnage_core::row::{Call, Cost, Sample, Types};
use tonnage_core::{DType, OpDef, TensorType};

use crate::{emit, rules};

/// The op that gives what an update would leave, and writes nothing; an update that is one already, or
/// has none (`assign` gives its value, broadcast), as it is.
pub fn pure(update: &'static OpDef) -> &'static OpDef {
    match update {
        op if *op == assign_add::ASSIGN_ADD => &crate::math::add::ADD,
        op if *op == assign_sub::ASSIGN_SUB => &crate::math::sub::SUB,
        op if *op == assign_rows::ASSIGN_ROWS => &crate::index::scatter_update::SCATTER_UPDATE,
        op if *op == assign_add_rows::ASSIGN_ADD_ROWS => &crate::index::scatter_add::SCATTER_ADD,
        other => other,
    }
}

/// A variable and a value of its dtype that broadcasts to its shape; the variable's type comes out.
fn infer(call: &Call) -> Result<Types> {
    rules::infer::count(call, 2)?;
    let (variable, value) = (&call.inputs[0], &call.inputs[1]);
    if variable.dtype != value.dtype {
        let (left, right) = (variable.dtype, value.dtype);
        let help = "cast the value to the variable's dtype".into();
        return Err(ErrorKind::DTypeMismatch { op: call.op, left, right, help }.into());
    }
    match value.shape.broadcast(&variable.shape, call.op) {
        Ok(shape) if shape == variable.shape => Ok(smallvec![variable.clone()]),
        _ => {
            let (left, right) = (variable.shape.clone(), value.shape.clone());
            let help = "the value must have the variable's shape, or broadcast to it".into();
            Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into())
        }
    }
}

/// The same of numbers.
fn infer_numbers(call: &Call) -> Result<Types> {
    let made = infer(call)?;
    rules::infer::number(call, &call.inputs[0])?;
    Ok(made)
}

/// One operation an element.
fn cost(call: &Call) -> Cost {
    rules::cost::elementwise(call, &call.inputs[..1], 1)
}

/// The tangents of the variable and of the value, which is broadcast to its shape.
fn tangents(e: &mut dyn Emit, call: &JvpCall) -> Result<(Option<Value>, Option<Value>)> {
    let wide = match call.tangents[1].clone() {
        Some(t) => Some(emit::broadcast_to(e, t, &call.outputs[0].ty().shape)?),
        None => None,
    };
    Ok((call.tangents[0].clone(), wide))
}

fn samples() -> Vec<Sample> {
    let of = |dtype, variable: &[usize], value: &[usize]| {
        Sample::of(&[TensorType::new(dtype, variable), TensorType::new(dtype, value)], Attrs::None)
    };
    let mut all: Vec<Sample> = DType::ALL
        .into_iter()
        .filter(|d| *d != DType::Bool)
        .map(|dtype| of(dtype, &[2, 3], &[2, 3]))
        .collect();
    all.extend([
        of(DType::F32, &[], &[]),
        of(DType::F32, &[2, 3], &[]),
        of(DType::F32, &[0, 3], &[0, 3]),
        of(DType::F32, &[1025], &[1025]),
        of(DType::F32, &[4, 3], &[4, 1]),
    ]);
    all
}

/// Variables by rows, of every kind.
fn row_samples() -> Vec<Sample> {
    let along_first = |sample: &Sample| matches!(sample.attrs, Attrs::None);
    let mut all = crate::index::scatter_add::samples();
    all.retain(along_first);
    all
}

//! A gradient on its way back: dense, or rows of a table and their indices.

use crate::attrs::Attrs;
use crate::emit::{Emit, Value};
use crate::error::Result;
use crate::row::OpDef;
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// The ops that the walker itself uses; core knows no concrete op.
#[derive(Debug)]
pub struct GradOps {
    /// `(a, b) -> a + b`
    pub add: &'static OpDef,
    /// `() -> ` a value everywhere
    pub fill: &'static OpDef,
    /// `(table, indices, rows) -> ` the table with rows added along axis 0
    pub scatter_add: &'static OpDef,
}

/// Rows of a table's gradient: row `indices[i]` has the gradient `values[i]`. Indices may repeat:
/// their rows add up.
#[derive(Debug, Clone)]
pub struct Rows {
    /// Which rows; an integer tensor of any shape.
    pub indices: Value,
    /// Their gradients: the shape of `indices`, then that of a row.
    pub values: Value,
}

/// A gradient on its way back.
#[derive(Debug, Clone)]
pub enum Cotangent {
    /// Every element.
    Dense(Value),
    /// Some rows along axis 0; all others are zero.
    Sparse {
        /// The type of the whole.
        of: TensorType,
        /// Pieces that add up.
        parts: Vec<Rows>,
    },
}

impl Cotangent {
    /// As one tensor; rows are added into zeros.
    pub fn dense(self, emit: &mut dyn Emit, ops: &GradOps) -> Result<Value> {
        match self {
            Cotangent::Dense(value) => Ok(value),
            Cotangent::Sparse { of, parts } => {
                let attrs = Attrs::Fill { value: Scalar::Int(0), dtype: of.dtype, shape: of.shape };
                let zeros = emit.apply(ops.fill, Vec::new(), attrs)?;
                add_rows(zeros, parts, emit, ops)
            }
        }
    }

    /// The sum; stays rows where both are.
    pub fn plus(self, other: Cotangent, emit: &mut dyn Emit, ops: &GradOps) -> Result<Cotangent> {
        use Cotangent::{Dense, Sparse};
        Ok(match (self, other) {
            (Dense(a), Dense(b)) => Dense(emit.apply(ops.add, vec![a, b], Attrs::None)?),
            (Sparse { of, mut parts }, Sparse { parts: more, .. }) => {
                parts.extend(more);
                Sparse { of, parts }
            }
            (Dense(a), Sparse { parts, .. }) | (Sparse { parts, .. }, Dense(a)) => {
                Dense(add_rows(a, parts, emit, ops)?)
            }
        })
    }
}

fn add_rows(
    mut into: Value,
    parts: Vec<Rows>,
    emit: &mut dyn Emit,
    ops: &GradOps,
) -> Result<Value> {
    for Rows { indices, values } in parts {
        into = emit.apply(ops.scatter_add, vec![into, indices, values], Attrs::None)?;
    }
    Ok(into)
}

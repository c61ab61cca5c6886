//! A gradient in the backward pass: dense, or rows of a table and their indices.

use crate::attrs::Attrs;
use crate::emit::{Emit, Value};
use crate::error::Result;
use crate::row::OpDef;
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
    /// `(indices, rows) -> ` zeros of a shape with rows added along axis 0
    pub rows_to_dense: &'static OpDef,
    /// `(table, indices) -> ` rows along an axis
    pub gather: &'static OpDef,
    /// The same elements under another shape
    pub reshape: &'static OpDef,
}

/// Rows of a table's gradient: row `indices[i]` has the gradient `values[i]`. Indices may repeat:
/// their rows add up.
#[derive(Debug, Clone)]
pub struct SparseRows {
    /// Which rows; an integer tensor of any shape.
    pub indices: Value,
    /// Their gradients: the shape of `indices`, then that of a row.
    pub values: Value,
}

/// A gradient in the backward pass.
#[derive(Debug, Clone)]
pub enum Cotangent {
    /// Every element.
    Dense(Value),
    /// Some rows along axis 0; all others are zero.
    Sparse {
        /// The type of the whole.
        of: TensorType,
        /// Pieces that add up.
        parts: Vec<SparseRows>,
    },
}

impl Cotangent {
    /// As one tensor; rows are added into zeros, by an op whose name says so wherever ops are listed.
    pub fn dense(self, emit: &mut dyn Emit, ops: &GradOps) -> Result<Value> {
        match self {
            Cotangent::Dense(value) => Ok(value),
            Cotangent::Sparse { of, parts } => {
                let mut parts = parts.into_iter();
                let whole = match parts.next() {
                    Some(SparseRows { indices, values }) => {
                        let attrs = Attrs::Shape(of.shape);
                        emit.apply(ops.rows_to_dense, vec![indices, values], attrs)?
                    }
                    None => super::forward::zeros(emit, &of, ops)?,
                };
                add_rows(whole, parts, emit, ops)
            }
        }
    }

    /// The sum; stays rows where both are. Rows of the same indices are added to each other: where a value is read twice on its
    /// way, and twice again, the number of parts would double each time.
    pub fn plus(self, other: Cotangent, emit: &mut dyn Emit, ops: &GradOps) -> Result<Cotangent> {
        use Cotangent::{Dense, Sparse};
        Ok(match (self, other) {
            (Dense(a), Dense(b)) => Dense(emit.apply(ops.add, vec![a, b], Attrs::None)?),
            (Sparse { of, mut parts }, Sparse { parts: more, .. }) => {
                for rows in more {
                    let same = |known: &&mut SparseRows| {
                        known.indices.is_same(&rows.indices)
                            && known.values.ty() == rows.values.ty()
                    };
                    match parts.iter_mut().find(same) {
                        Some(known) => {
                            let both = vec![known.values.clone(), rows.values];
                            known.values = emit.apply(ops.add, both, Attrs::None)?;
                        }
                        None => parts.push(rows),
                    }
                }
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
    parts: impl IntoIterator<Item = SparseRows>,
    emit: &mut dyn Emit,
    ops: &GradOps,
) -> Result<Value> {
    for SparseRows { indices, values } in parts {
        into = emit.apply(ops.scatter_add, vec![into, indices, values], Attrs::None)?;
    }
    Ok(into)
}

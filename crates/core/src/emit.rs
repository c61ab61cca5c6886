//! One way to apply an op to values, for rules that serve traced graphs and eager mode alike.
//!
//! A gradient rule or a composite is written once against [`Emit`]. The graph builder implements it by
//! adding nodes, eager mode by running kernels.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use crate::attrs::Attrs;
use crate::error::Result;
use crate::graph::{Graph, ValueId};
use crate::kind::Kind;
use crate::row::OpDef;
use crate::shape::TensorType;
use crate::source::Source;

/// A value of whoever emits. Cloning shares it; moving it into [`Emit::emit`] gives it up, so that
/// eager mode may work in place.
#[derive(Clone)]
pub struct Value {
    ty: TensorType,
    repr: ValueRepr,
}

#[derive(Clone)]
enum ValueRepr {
    Node(ValueId),
    Held(Arc<dyn Any + Send + Sync>),
}

impl Value {
    /// A value of a graph.
    pub fn node(ty: TensorType, id: ValueId) -> Value {
        Value { ty, repr: ValueRepr::Node(id) }
    }

    /// A value that eager mode holds.
    pub fn held(ty: TensorType, handle: Arc<dyn Any + Send + Sync>) -> Value {
        Value { ty, repr: ValueRepr::Held(handle) }
    }

    /// Its type.
    pub fn ty(&self) -> &TensorType {
        &self.ty
    }

    /// Its number in the graph, if it is a graph's.
    pub fn id(&self) -> Option<ValueId> {
        match self.repr {
            ValueRepr::Node(id) => Some(id),
            ValueRepr::Held(_) => None,
        }
    }

    /// Whether both are one value, as clones are.
    pub fn is_same(&self, other: &Value) -> bool {
        match (&self.repr, &other.repr) {
            (ValueRepr::Node(a), ValueRepr::Node(b)) => a == b,
            (ValueRepr::Held(a), ValueRepr::Held(b)) => Arc::ptr_eq(a, b),
            _ => false,
        }
    }

    /// What eager mode holds, given up; `None` if it is a graph's.
    pub fn into_held(self) -> Option<Arc<dyn Any + Send + Sync>> {
        match self.repr {
            ValueRepr::Node(_) => None,
            ValueRepr::Held(handle) => Some(handle),
        }
    }
}

impl fmt::Debug for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.repr {
            ValueRepr::Node(id) => write!(f, "%{}: {}", id.index(), self.ty),
            ValueRepr::Held(_) => write!(f, "{}", self.ty),
        }
    }
}

/// Someone who can apply ops to values.
pub trait Emit {
    /// Applies an op. Inputs that are moved in may be overwritten. With `aux`, the row's extra outputs
    /// follow the others.
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>>;

    /// Says whose line the next ops belong to and what their results are; returns what was said last.
    fn mark(&mut self, mark: Mark) -> Mark;

    /// Applies an op that has one output and no regions.
    fn apply(&mut self, op: &'static OpDef, inputs: Vec<Value>, attrs: Attrs) -> Result<Value> {
        let mut outputs = self.emit(op, inputs, attrs, Vec::new(), false)?;
        debug_assert_eq!(outputs.len(), 1, "{}", op.name);
        Ok(outputs.swap_remove(0))
    }
}

/// Whose line an op belongs to, and what its results are to the ledger.
#[derive(Debug, Clone, Copy)]
pub struct Mark {
    /// The user's line.
    pub source: Source,
    /// What the results are.
    pub kind: Kind,
}

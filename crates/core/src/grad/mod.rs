//! Differentiation: what a rule is given, and the walker that strings the rules together.
//!
//! The walker knows no op and no memory. A tape hands it records of eager calls, a trace records of
//! graph nodes; it goes through them backwards, gives each rule what its row declares and nothing
//! else, and drops each record as it has passed it.

mod backward;
mod cotangent;
mod forward;
mod region;
pub(crate) mod returned;
mod rows;
mod saves;
mod split;

pub use backward::{Record, backward};
pub use cotangent::{Cotangent, GradOps, SparseRows};
pub use forward::{Dual, push_forward};
pub use region::{Recorder, VjpGraph, jvp_graph, reached, vjp_graph, vjp_parts};
pub use returned::Returned;
pub use saves::{choose, decide};
pub use split::{Split, assemble, split};

use std::sync::Arc;

use crate::attrs::Attrs;
use crate::emit::Value;
use crate::error::{ErrorKind, Result};
use crate::graph::Graph;
use crate::row::{Call, OpDef, Save};
use crate::shape::TensorType;

/// What a backward rule is given.
pub struct GradCall<'a> {
    /// The op.
    pub op: &'static OpDef,
    /// Types of its inputs.
    pub inputs: &'a [TensorType],
    /// Types of its outputs, aux ones not included.
    pub outputs: &'a [TensorType],
    /// What it was told besides.
    pub attrs: &'a Attrs,
    /// Its bodies and branches.
    pub regions: &'a [Arc<Graph>],
    /// Gradients of its outputs; `None` is zero. At least one is there.
    pub grads: &'a [Option<Value>],
    /// Which inputs' gradients anyone asked for.
    pub needs: &'a [bool],
    /// The ops that the walker itself uses.
    pub ops: &'static GradOps,
    saved: &'a [(Save, Value)],
}

impl GradCall<'_> {
    /// The call as types know it.
    pub fn call(&self) -> Call<'_> {
        Call { op: self.op.name, inputs: self.inputs, attrs: self.attrs, regions: self.regions }
    }

    /// The gradient of the only output.
    pub fn grad(&self) -> Result<Value> {
        match self.grads.first() {
            Some(Some(grad)) => Ok(grad.clone()),
            _ => Err(self.not_declared("the gradient of an output that has none".into())),
        }
    }

    /// An input's value, if the row saves it.
    pub fn input(&self, i: usize) -> Result<Value> {
        self.saved(Save::Input(i))
    }

    /// An output's value, if the row saves it.
    pub fn output(&self, i: usize) -> Result<Value> {
        self.saved(Save::Output(i))
    }

    /// An aux output's value, if the row saves it.
    pub fn aux(&self, i: usize) -> Result<Value> {
        self.saved(Save::Aux(i))
    }

    /// Whether that is what was saved, for rows that have alternatives.
    pub fn saves(&self, save: Save) -> bool {
        self.saved.iter().any(|(k, _)| *k == save)
    }

    fn saved(&self, save: Save) -> Result<Value> {
        match self.saved.iter().find(|(k, _)| *k == save) {
            Some((_, value)) => Ok(value.clone()),
            None => Err(self.not_declared(format!("{save:?}"))),
        }
    }

    fn not_declared(&self, what: String) -> crate::Error {
        ErrorKind::NotDeclared { op: self.op.name, what }.into()
    }
}

/// What a forward rule is given.
pub struct JvpCall<'a> {
    /// The op.
    pub op: &'static OpDef,
    /// Values of its inputs.
    pub inputs: &'a [Value],
    /// Values of its outputs, aux ones at the end where they were made; none for a rule that makes them.
    pub outputs: &'a [Value],
    /// What it was told besides.
    pub attrs: &'a Attrs,
    /// Its bodies and branches.
    pub regions: &'a [Arc<Graph>],
    /// Tangents of its inputs; `None` is zero. At least one is there.
    pub tangents: &'a [Option<Value>],
    /// The ops that the walker itself uses.
    pub ops: &'static GradOps,
}

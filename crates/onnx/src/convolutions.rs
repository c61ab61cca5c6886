//! Convolutions that a batch normalization may go into: where it alone reads one, its factor is a part of the filters, and its shift of the bias.
//! Both are computed once, where weights are in memory, so that nothing is left of it in a call.
//!
//! The importer remembers what made each convolution. The one without the factor is read by nobody then, and is no part of the plan.
//!
//! Decision: `docs/decisions/onnx-weights-are-variables.md`.

use std::cell::RefCell;
use std::collections::HashMap;

use tonnage::{Result, Tensor, bind};

use crate::call::Call;
use crate::import::{Attributes, Opsets};
use crate::message::NodeMessage;
use crate::value::Value;

/// What made images, by the identity of the image.
#[derive(Default)]
pub struct Convolutions<'m>(RefCell<HashMap<u64, Convolution<'m>>>);

/// A node that made an image.
#[derive(Clone)]
struct Convolution<'m> {
    node: &'m NodeMessage,
    attributes: Attributes<'m>,
    version: i64,
    opsets: &'m Opsets,
    inputs: Vec<Value>,
}

impl<'m> Convolutions<'m> {
    /// Remembers what a node made.
    pub fn note(&self, call: &Call<'_, 'm>, image: &Tensor) {
        let Call { node, version, opsets, .. } = *call;
        let (attributes, inputs) = (call.attributes.clone(), call.inputs.clone());
        let how = Convolution { node, attributes, version, opsets, inputs };
        self.0.borrow_mut().insert(bind::identity(image), how);
    }

    /// The convolution whose result a node alone reads, as its rule saw it.
    pub fn alone<'c>(&self, call: &Call<'c, 'm>) -> Result<Option<Call<'c, 'm>>> {
        let model = call.importer.model;
        let is_graph = std::ptr::eq(call.opsets, model.message.opsets.as_slice());
        if !is_graph || model.readers(&call.node.inputs[0]) != 1 {
            return Ok(None);
        }
        let found = self.0.borrow().get(&bind::identity(&call.raw(0)?)).cloned();
        Ok(found.map(|how| {
            let Convolution { node, attributes, version, opsets, inputs } = how;
            Call { node, inputs, attributes, version, opsets, ..*call }
        }))
    }
}

//! What is known while a function is traced: the value of what is computed from constants alone, such as a size or an axis.
//!
//! Decision: `docs/decisions/data-decided-sizes-in-python.md`.

use std::collections::HashMap;

use tonnage_core::TensorType;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Node, ValueId};

use super::Trace;
use crate::bind;
use crate::tensor::{Tensor, TensorRepr};

/// Elements of a value that is looked at: sizes, axes and paddings are few numbers.
const ELEMENTS: usize = 256;

/// Ops that are looked at for one value.
const OPS: usize = 64;

/// The value of a tensor that has one, or that few ops make of few constants; none where it depends on an argument, on a variable, on random
/// numbers, or on what has an effect.
pub(crate) fn known(tensor: &Tensor) -> Option<Tensor> {
    super::outside(|| Known { left: OPS, found: HashMap::new() }.tensor(tensor))
}

struct Known {
    left: usize,
    found: HashMap<(u64, ValueId), Tensor>,
}

impl Known {
    fn tensor(&mut self, tensor: &Tensor) -> Option<Tensor> {
        match tensor.repr() {
            TensorRepr::Array(_) => is_small(&tensor.ty()).then(|| tensor.clone()),
            TensorRepr::Symbolic(symbol) => self.value(&symbol.trace, symbol.value.id()?),
            TensorRepr::Spec(_) => None,
        }
    }

    fn value(&mut self, trace: &Trace, id: ValueId) -> Option<Tensor> {
        let key = (trace.number(), id);
        if let Some(found) = self.found.get(&key) {
            return Some(found.clone());
        }
        let Some(node) = maker(trace, id) else {
            let captured = trace.state().captured().find(|(_, v)| v.id() == Some(id))?.0.clone();
            return self.tensor(&captured);
        };
        self.left = self.left.checked_sub(1)?;
        let inputs = node
            .inputs
            .iter()
            .map(|input| self.value(trace, *input))
            .collect::<Option<Vec<_>>>()?;
        let inputs: Vec<&Tensor> = inputs.iter().collect();
        // What fails now fails as it runs, too.
        let made = bind::apply(node.op, &inputs, node.attrs).ok()?;
        let at = node.outputs.iter().position(|output| *output == id)?;
        let found = made.get(at)?.clone();
        self.found.insert(key, found.clone());
        Some(found)
    }
}

/// The node that makes a value, where it is one that can be looked at.
fn maker(trace: &Trace, id: ValueId) -> Option<Node> {
    let state = trace.state();
    let graph = state.builder.graph();
    let node = graph.nodes.get(state.builder.maker(id)?)?;
    let open = matches!(&node.attrs, Attrs::Lengths { of, .. } if of.sizes().is_none());
    let random = matches!(node.attrs, Attrs::Random { .. } | Attrs::Seeded { .. });
    let apart = node.has_effect() || node.calls_host() || !node.regions.is_empty();
    let small = node.outputs.iter().all(|output| is_small(graph.ty(*output)));
    (small && !open && !random && !apart).then(|| node.clone())
}

fn is_small(ty: &TensorType) -> bool {
    ty.shape.count().is_some_and(|count| count <= ELEMENTS)
}

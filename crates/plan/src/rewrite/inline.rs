//! Composite ops with regions written out: a call of a body becomes the body's nodes.
//!
//! This comes after common subexpressions were merged. A body that is called again for a gradient recomputes
//! what it computed before, so that it need not be saved; merged with the first call it would be saved
//! after all. So nodes that come out of a region are never merged with nodes outside of it.
//!
//! Decision: `docs/decisions/cse-before-inlining.md`.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::Result;
use tonnage_core::graph::{Builder, Graph, Node, replay};
use tonnage_core::row::{Call, Lower, OpDef};

use super::checked;

/// The graph with such ops written out; regions of branches and loops are not looked into.
pub(crate) fn inline(graph: Graph) -> Result<Graph> {
    let composite = |node: &Node| matches!(node.op.lower, Lower::Composite(_));
    if !graph.nodes.iter().any(composite) {
        return Ok(graph);
    }
    let mut builder = Builder::new();
    let mut inputs = Vec::new();
    for id in &graph.inputs {
        let info = graph.value(*id);
        inputs.push(builder.input(info.ty.clone(), info.kind, info.name.clone()));
    }
    let outputs = replay(&graph, inputs, &mut Inline { builder: &mut builder })?;
    let mut made = builder.finish(&outputs)?;
    for (new, old) in made.inputs.clone().into_iter().zip(&graph.inputs) {
        made.value_mut(new).source = graph.value(*old).source;
    }
    made.prune();
    checked(made)
}

struct Inline<'a> {
    builder: &'a mut Builder,
}

impl Emit for Inline<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        if let Lower::Composite(expand) = op.lower {
            let types: Vec<_> = inputs.iter().map(|v| v.ty().clone()).collect();
            let call = Call { op: op.name, inputs: &types, attrs: &attrs, regions: &regions };
            return expand(self, &call, inputs);
        }
        self.builder.emit(op, inputs, attrs, regions, aux)
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        self.builder.mark(mark)
    }
}

//! The walk through composites, branches and loops: what is written out on the way, and regions, which are
//! walked alone.

use std::sync::Arc;

use tonnage_core::Scalar;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo, replay};
use tonnage_core::looping::Loop;
use tonnage_core::recipe::Key;
use tonnage_core::row::{Call, Lower, OpDef};
use tonnage_core::shape::TensorType;

use super::cse::{draws, graph_digest};
use super::rewriter::{Ids, Rewriter, rewrite_graph};

/// A region that was walked: as it was (so that its address stays its own), as it is, and its digest.
pub(super) struct RewrittenRegion {
    _was: Arc<Graph>,
    now: Arc<Graph>,
    pub digest: u64,
}

impl Rewriter<'_> {
    /// A node of the graph that is walked.
    pub(super) fn original(
        &mut self,
        graph: &Graph,
        node: &Node,
        inputs: Vec<ValueId>,
    ) -> Result<Ids> {
        if let Lower::Composite(expand) = node.op.lower
            && node.regions.is_empty()
        {
            let inputs = inputs.into_iter().map(|id| self.value(id)).collect::<Vec<_>>();
            let types: Vec<TensorType> = inputs.iter().map(|v| v.ty().clone()).collect();
            let call = Call { op: node.op.name, inputs: &types, attrs: &node.attrs, regions: &[] };
            self.strict = true;
            return ids(&expand(self, &call, inputs)?);
        }
        if let Some(branch) = self.taken(node, &inputs) {
            let inputs = inputs[1..].iter().map(|id| self.value(*id)).collect();
            self.strict = true;
            return ids(&replay(&branch, inputs, self)?);
        }
        let regions = node.regions.iter().map(|g| self.region(g)).collect::<Result<Vec<_>>>()?;
        let attrs = keyless(&node.attrs, &regions);
        let infos = node.outputs.iter().map(|id| graph.value(*id).clone()).collect();
        self.node(node.op, inputs, attrs, regions, node.aux, infos)
    }

    /// The branch that a condition or an index chooses that is known. One that draws random numbers of its own,
    /// apart from those around it, stays where it is.
    fn taken(&self, node: &Node, inputs: &[ValueId]) -> Option<Arc<Graph>> {
        let Attrs::Branch { key, updates } = &node.attrs else { return None };
        let last = node.regions.len().checked_sub(1)?;
        let chosen = match self.constant(*inputs.first()?) {
            _ if last == 0 => 0,
            Some(Scalar::Bool(yes)) => usize::from(!yes),
            Some(Scalar::Int(n)) => usize::try_from(n).unwrap_or(last).min(last),
            _ => return None,
        };
        let branch = &node.regions[chosen];
        let apart = key.is_some() && draws(branch);
        (!apart && updates.is_empty()).then(|| branch.clone())
    }

    /// A region, walked alone and once: a loop and its gradient hold the same body.
    fn region(&mut self, region: &Arc<Graph>) -> Result<Arc<Graph>> {
        if let Some(walked) = self.regions.get(&Arc::as_ptr(region)) {
            return Ok(walked.now.clone());
        }
        let now = Arc::new(rewrite_graph(region, self.rules, self.merge, self.target)?);
        let digest = graph_digest(&now);
        for was in [region, &now] {
            let walked = RewrittenRegion { _was: was.clone(), now: now.clone(), digest };
            self.regions.insert(Arc::as_ptr(was), walked);
        }
        Ok(now)
    }
}

/// The attributes without the key that random numbers in these regions are made of, where there are none: so
/// two branches or loops that do the same are the same.
fn keyless(attrs: &Attrs, regions: &[Arc<Graph>]) -> Attrs {
    match attrs {
        Attrs::Branch { key: Some(_), updates } if !regions.iter().any(|g| draws(g)) => {
            Attrs::Branch { key: None, updates: updates.clone() }
        }
        Attrs::Loop(spec) if !regions.iter().any(|g| draws(g)) => {
            Attrs::Loop(Box::new(Loop { key: Key::Fixed([0, 0]), ..(**spec).clone() }))
        }
        other => other.clone(),
    }
}

/// What composites are written out by.
impl Emit for Rewriter<'_> {
    fn emit(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<Value>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
    ) -> Result<Vec<Value>> {
        let types: Vec<TensorType> = inputs.iter().map(|v| v.ty().clone()).collect();
        let call = Call { op: op.name, inputs: &types, attrs: &attrs, regions: &regions };
        if let (Lower::Composite(expand), true) = (op.lower, regions.is_empty()) {
            return expand(self, &call, inputs);
        }
        let mut made = (op.infer)(&call)?;
        if aux {
            made.extend((op.saves.aux)(&call)?);
        }
        let Mark { source, kind } = self.mark;
        let infos = made.into_iter().map(|ty| ValueInfo { ty, kind, name: None, source }).collect();
        let regions = regions.iter().map(|g| self.region(g)).collect::<Result<Vec<_>>>()?;
        let ids = self.node(op, ids(&inputs)?.into_vec(), attrs, regions, aux, infos)?;
        Ok(ids.into_iter().map(|id| self.value(id)).collect())
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        std::mem::replace(&mut self.mark, mark)
    }
}

fn ids(values: &[Value]) -> Result<Ids> {
    let id = |value: &Value| value.id().ok_or_else(|| ErrorKind::Escaped { op: "rewrite" }.into());
    values.iter().map(id).collect()
}

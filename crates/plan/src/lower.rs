//! A graph as it runs: composites written out, every copy explicit, nothing that nobody reads.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Mark, Value};
use tonnage_core::error::Result;
use tonnage_core::graph::{Builder, Graph, Node, ValueId, ValueInfo, replay};
use tonnage_core::row::{Call, Lower, Mem, OpDef};
use tonnage_ops::math::identity::IDENTITY;

use crate::fuse::fuse;

/// The graph with composites written out, here and in its regions, reads protected from updates, and
/// elementwise chains joined.
pub fn lower(graph: &Graph) -> Result<Graph> {
    let mut builder = Builder::new();
    let inputs: Vec<Value> = graph
        .inputs
        .iter()
        .map(|id| {
            let info = graph.value(*id);
            builder.input(info.ty.clone(), info.kind, info.name.clone())
        })
        .collect();
    let mut expand = Expand { builder: &mut builder };
    let outputs = replay(graph, inputs, &mut expand)?;
    let mut made = builder.finish(&outputs)?;
    for (new, old) in made.inputs.clone().into_iter().zip(&graph.inputs) {
        made.value_mut(new).source = graph.value(*old).source;
    }
    made.prune();
    updates_wait(&mut made);
    protect_reads(&mut made);
    fuse(&made)
}

/// Writes composites out as it goes, and lowers regions.
struct Expand<'a> {
    builder: &'a mut Builder,
}

impl Emit for Expand<'_> {
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
        let regions =
            regions.iter().map(|g| Ok(Arc::new(lower(g)?))).collect::<Result<Vec<_>>>()?;
        self.builder.emit(op, inputs, attrs, regions, aux)
    }

    fn mark(&mut self, mark: Mark) -> Mark {
        self.builder.mark(mark)
    }
}

/// Moves updates of variables, and what depends on them, behind the last node that can fail without
/// depending on one: a call that fails leaves variables as they were. Updates behind that node stay
/// where they are, so that a gradient need not wait for all others.
fn updates_wait(graph: &mut Graph) {
    let mut after: HashSet<ValueId> = HashSet::new();
    let waits: Vec<bool> = graph
        .nodes
        .iter()
        .map(|node| {
            let waits = matches!(node.op.mem, Mem::Update(_))
                || node.inputs.iter().any(|id| after.contains(id));
            if waits {
                after.extend(node.outputs.iter().copied());
            }
            waits
        })
        .collect();
    let last = graph.nodes.iter().zip(&waits).rposition(|(node, waits)| !waits && node.can_fail());
    let Some(last) = last else { return };
    let nodes = std::mem::take(&mut graph.nodes);
    let (mut first, mut waiting, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for (at, (node, waits)) in nodes.into_iter().zip(waits).enumerate() {
        match (at <= last, waits) {
            (true, false) => first.push(node),
            (true, true) => waiting.push(node),
            (false, _) => rest.push(node),
        }
    }
    graph.nodes = first.into_iter().chain(waiting).chain(rest).collect();
}

/// Gives a value that is read after its bytes are updated a copy that is made before.
///
/// Program order may read a variable's old value after an update: in SSA that is the value before, whose
/// bytes the update overwrites.
fn protect_reads(graph: &mut Graph) {
    let mut at = 0;
    while at < graph.nodes.len() {
        if let Mem::Update(input) = graph.nodes[at].op.mem {
            let target = graph.nodes[at].inputs[input];
            let sharing = same_bytes(graph, target, at);
            for old in sharing {
                if read_after(graph, old, at) {
                    copy_before(graph, old, at);
                    at += 1;
                }
            }
        }
        at += 1;
    }
}

/// Values before node `end` that lie in the bytes of `value`: itself, what it is a view of, and views.
fn same_bytes(graph: &Graph, value: ValueId, end: usize) -> Vec<ValueId> {
    let mut root: HashMap<ValueId, ValueId> = HashMap::new();
    let find = |root: &HashMap<ValueId, ValueId>, id: ValueId| root.get(&id).copied().unwrap_or(id);
    for node in &graph.nodes[..end] {
        if let Mem::View(input) | Mem::Update(input) = node.op.mem {
            let base = find(&root, node.inputs[input]);
            root.extend(node.outputs.first().map(|out| (*out, base)));
        }
    }
    let base = find(&root, value);
    let views = root.iter().filter(|(_, b)| **b == base).map(|(v, _)| *v);
    let mut all: Vec<ValueId> = views.chain([base]).collect();
    all.sort();
    all
}

fn read_after(graph: &Graph, value: ValueId, at: usize) -> bool {
    graph.nodes[at + 1..].iter().any(|n| n.inputs.contains(&value))
        || graph.outputs.contains(&value)
}

fn copy_before(graph: &mut Graph, old: ValueId, at: usize) {
    let info: ValueInfo = graph.value(old).clone();
    let source = graph.nodes[at].source;
    let copy = graph.add_value(ValueInfo { kind: tonnage_core::Kind::Activation, ..info });
    for node in &mut graph.nodes[at + 1..] {
        for id in &mut node.inputs {
            if *id == old {
                *id = copy;
            }
        }
    }
    for id in &mut graph.outputs {
        if *id == old {
            *id = copy;
        }
    }
    let node = Node {
        op: &IDENTITY,
        attrs: Attrs::None,
        inputs: vec![old],
        outputs: vec![copy],
        aux: false,
        regions: Vec::new(),
        source,
    };
    graph.nodes.insert(at, node);
}

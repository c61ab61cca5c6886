//! The rewriter: every node of a graph, in order, onto a new graph, with rules applied on the way.
//!
//! A rule is asked whether a node's result is a value that is there already or can be had in another way;
//! what it makes instead goes through the rules again. A node that no rule knows is looked up among those
//! that came before (common subexpressions), and added if it is new. Operands come first, so one pass sees
//! everything in its last form, and takes time in proportion to the number of nodes.
//!
//! The invariants: a rule's value has the type and the bits of the result that it stands for; nodes with an
//! effect stay, in their order, and no rule sees them.

use std::collections::HashMap;
use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Mark, Value};
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::graph::{Graph, Node, ValueId, ValueInfo};
use tonnage_core::row::{Call, Lower, Mem, OpDef};
use tonnage_core::shape::TensorType;
use tonnage_core::tile::TileProgram;
use tonnage_core::{DType, Kind, Scalar, Source};
use tonnage_ops::shape::fill::FILL;

use super::cse::{digest, draws, part, same_regions};
use super::regions::RewrittenRegion;
use crate::target::Target;

/// A rule: the value that a node's only result is, if the rule knows one.
pub(crate) type RewriteRule = fn(&mut Rewriter, &PendingNode) -> Result<Option<ValueId>>;

/// A node that is about to be added: one result, no effect, no regions.
pub(crate) struct PendingNode<'a> {
    pub op: &'static OpDef,
    pub attrs: &'a Attrs,
    pub inputs: &'a [ValueId],
    /// Of the result.
    pub ty: &'a TensorType,
    /// Of an elementwise op or a reduction.
    pub program: Option<&'a TileProgram>,
}

pub(crate) type Ids = SmallVec<[ValueId; 2]>;

/// A graph in the making.
pub(crate) struct Rewriter<'r> {
    pub graph: Graph,
    pub(super) rules: &'r [RewriteRule],
    pub(super) merge: bool,
    /// Whose kernels say what is folded.
    pub(super) target: &'r dyn Target,
    /// For each value, the node that makes it.
    makers: Vec<Option<u32>>,
    /// For each value, what it is made of, and over how many nodes.
    digests: Vec<(u64, u32)>,
    /// Nodes by their digest.
    table: HashMap<u64, SmallVec<[u32; 1]>>,
    pub(super) regions: HashMap<*const Graph, RewrittenRegion>,
    effects: u64,
    pub(super) mark: Mark,
    /// Whether the result that is being made is read by a kernel, to which strides may matter.
    pub strict: bool,
}

/// Walks a graph with these rules, and through its regions.
pub(super) fn rewrite_graph(
    graph: &Graph,
    rules: &[RewriteRule],
    merge: bool,
    target: &dyn Target,
) -> Result<Graph> {
    let mut rewriter = Rewriter::new(graph, rules, merge, target);
    let mut map: Vec<Option<ValueId>> = vec![None; graph.value_count()];
    for (i, id) in graph.inputs.iter().enumerate() {
        let new = rewriter.define(graph.value(*id).clone(), None, (part(1, i + 1), 0));
        rewriter.graph.inputs.push(new);
        map[id.index()] = Some(new);
    }
    let strict = read_by_kernels(graph);
    let find = |map: &[Option<ValueId>], id: &ValueId| map[id.index()].ok_or_else(|| unmade(*id));
    for node in &graph.nodes {
        let inputs =
            node.inputs.iter().map(|id| find(&map, id)).collect::<Result<Vec<ValueId>>>()?;
        let kind = node.outputs.first().map_or(Kind::Activation, |id| graph.value(*id).kind);
        rewriter.mark = Mark { source: node.source, kind };
        rewriter.strict = node.outputs.iter().any(|id| strict[id.index()]);
        let made = rewriter.original(graph, node, inputs)?;
        for (old, new) in node.outputs.iter().zip(made) {
            map[old.index()] = Some(new);
        }
    }
    rewriter.graph.outputs =
        graph.outputs.iter().map(|id| find(&map, id)).collect::<Result<Vec<ValueId>>>()?;
    rewriter.graph.prune();
    Ok(rewriter.graph)
}

/// Values that a kernel over slices, or a region, reads as they lie.
fn read_by_kernels(graph: &Graph) -> Vec<bool> {
    let mut strict = vec![false; graph.value_count()];
    for node in graph.nodes.iter().rev() {
        let reads = match node.op.lower {
            // Rows that a variable is updated by are read once, each from its start to its end, wherever they lie.
            _ if matches!(node.op.mem, Mem::Update(_)) => false,
            Lower::Tile(_) | Lower::Recipe(_) => false,
            Lower::View(_) => node.outputs.iter().any(|id| strict[id.index()]),
            Lower::Kernel | Lower::Composite(_) | Lower::Region(_) | Lower::Transfer(_) => true,
        };
        for id in node.inputs.iter().filter(|_| reads) {
            strict[id.index()] = true;
        }
    }
    strict
}

impl<'r> Rewriter<'r> {
    fn new(
        graph: &Graph,
        rules: &'r [RewriteRule],
        merge: bool,
        target: &'r dyn Target,
    ) -> Rewriter<'r> {
        let (values, nodes) = (graph.value_count(), graph.nodes.len());
        let mut made = Graph::default();
        made.nodes.reserve(nodes);
        Rewriter {
            graph: made,
            rules,
            merge,
            target,
            makers: Vec::with_capacity(values),
            digests: Vec::with_capacity(values),
            table: HashMap::with_capacity(nodes),
            regions: HashMap::new(),
            effects: 0,
            mark: Mark { source: Source::here(), kind: Kind::Activation },
            strict: false,
        }
    }

    fn define(&mut self, info: ValueInfo, maker: Option<u32>, digest: (u64, u32)) -> ValueId {
        self.makers.push(maker);
        self.digests.push(digest);
        self.graph.add_value(info)
    }

    /// Applies an op whose only result has that type.
    pub fn apply(
        &mut self,
        op: &'static OpDef,
        inputs: &[ValueId],
        attrs: Attrs,
        ty: TensorType,
    ) -> Result<ValueId> {
        let info = ValueInfo { ty, kind: self.mark.kind, name: None, source: self.mark.source };
        let infos = SmallVec::from_iter([info]);
        let made = self.node(op, inputs.to_vec(), attrs, Vec::new(), false, infos)?;
        made.first().copied().ok_or_else(|| nothing(op))
    }

    /// One value everywhere.
    pub fn fill(&mut self, value: Scalar, ty: &TensorType) -> Result<ValueId> {
        let attrs = Attrs::Fill { value, dtype: ty.dtype, shape: ty.shape.clone() };
        self.apply(&FILL, &[], attrs, ty.clone())
    }

    /// Adds a node with results like these, unless rules or earlier nodes know better.
    pub(super) fn node(
        &mut self,
        op: &'static OpDef,
        inputs: Vec<ValueId>,
        attrs: Attrs,
        regions: Vec<Arc<Graph>>,
        aux: bool,
        infos: SmallVec<[ValueInfo; 1]>,
    ) -> Result<Ids> {
        let mut node =
            Node { op, attrs, inputs, outputs: Vec::new(), aux, regions, source: self.mark.source };
        let pure = !node.has_effect();
        if let (true, true, false, [info]) = (pure, node.regions.is_empty(), aux, infos.as_slice())
            && let Some(known) = self.by_rules(&node, &info.ty)?
        {
            return Ok(SmallVec::from_iter([known]));
        }
        let digest_of = |g: &Arc<Graph>| self.regions.get(&Arc::as_ptr(g)).map_or(0, |r| r.digest);
        let regions: SmallVec<[u64; 3]> = node.regions.iter().map(digest_of).collect();
        let inputs: SmallVec<[u64; 4]> =
            node.inputs.iter().map(|id| self.digests[id.index()].0).collect();
        let mut key = digest(op, &node.attrs, &inputs, &regions);
        let alone = !pure || node.regions.iter().any(|g| draws(g));
        if alone {
            // Nothing is the same as this: a number of its own.
            self.effects += 1;
            key = part(key, self.effects as usize);
        } else if self.merge
            && let Some(known) = self.known(key, &node, &infos)
        {
            return Ok(known);
        }
        let at = self.graph.nodes.len() as u32;
        let depth = node.inputs.iter().map(|id| self.digests[id.index()].1).max().unwrap_or(0);
        for (k, info) in infos.into_iter().enumerate() {
            let id = self.define(info, Some(at), (part(key, k), depth.saturating_add(1)));
            node.outputs.push(id);
        }
        let made = node.outputs.iter().copied().collect();
        self.graph.nodes.push(node);
        if !alone {
            self.table.entry(key).or_default().push(at);
        }
        Ok(made)
    }

    fn by_rules(&mut self, node: &Node, ty: &TensorType) -> Result<Option<ValueId>> {
        if self.rules.is_empty() {
            return Ok(None);
        }
        let program = match node.op.lower {
            Lower::Tile(make) => Some(self.with_types(node, |call| make(call, false))?),
            _ => None,
        };
        let given = PendingNode {
            op: node.op,
            attrs: &node.attrs,
            inputs: &node.inputs,
            ty,
            program: program.as_ref(),
        };
        let rules = self.rules;
        for rule in rules {
            if let Some(known) = rule(self, &given)? {
                debug_assert!(self.graph.ty(known) == ty, "{} became another type", node.op.name);
                return Ok(Some(known));
            }
        }
        Ok(None)
    }

    fn with_types<R>(&self, node: &Node, call: impl FnOnce(&Call) -> R) -> R {
        let types: SmallVec<[TensorType; 3]> =
            node.inputs.iter().map(|id| self.graph.ty(*id).clone()).collect();
        call(&Call { op: node.op.name, inputs: &types, attrs: &node.attrs, regions: &node.regions })
    }

    /// The results of a node that was added before and is the same.
    fn known(&mut self, key: u64, node: &Node, infos: &[ValueInfo]) -> Option<Ids> {
        let found = self.table.get(&key)?.iter().copied().find(|at| {
            let other = &self.graph.nodes[*at as usize];
            other.op == node.op
                && other.inputs == node.inputs
                && other.attrs == node.attrs
                && same_regions(other, node)
        })?;
        let other = &self.graph.nodes[found as usize];
        // Sizes that different values decide are different, whatever else is the same.
        if other.outputs.iter().zip(infos).any(|(id, info)| *self.graph.ty(*id) != info.ty) {
            return None;
        }
        if node.aux && !other.aux {
            // What only the gradient asks for is made by the first of the two from now on.
            for info in &infos[other.outputs.len()..] {
                let k = self.graph.nodes[found as usize].outputs.len();
                let first = self.graph.nodes[found as usize].outputs[0];
                let depth = self.digests[first.index()].1;
                let id = self.define(info.clone(), Some(found), (part(key, k), depth));
                self.graph.nodes[found as usize].outputs.push(id);
            }
            self.graph.nodes[found as usize].aux = true;
        }
        let made = &self.graph.nodes[found as usize].outputs;
        Some(made[..infos.len()].iter().copied().collect())
    }

    /// The node that makes a value; none for inputs.
    pub fn maker(&self, id: ValueId) -> Option<&Node> {
        self.makers[id.index()].map(|at| &self.graph.nodes[at as usize])
    }

    /// The node that makes a value, if it is of that op.
    pub fn made_by(&self, id: ValueId, op: &OpDef) -> Option<&Node> {
        self.maker(id).filter(|node| node.op == op)
    }

    /// The value that a tensor has everywhere, as an element of its dtype.
    pub fn constant(&self, id: ValueId) -> Option<Scalar> {
        match self.made_by(id, &FILL)?.attrs {
            Attrs::Fill { value, dtype, .. } => Some(tonnage_ops::tile::element(value, dtype)),
            _ => None,
        }
    }

    pub fn ty(&self, id: ValueId) -> &TensorType {
        self.graph.ty(id)
    }

    pub fn dtype(&self, id: ValueId) -> DType {
        self.graph.ty(id).dtype
    }

    /// Where a value stands among operands that may change places: the deepest first, constants last.
    pub fn rank(&self, id: ValueId) -> (bool, std::cmp::Reverse<u32>, u64, ValueId) {
        let (digest, depth) = self.digests[id.index()];
        (self.constant(id).is_some(), std::cmp::Reverse(depth), digest, id)
    }

    pub fn value(&self, id: ValueId) -> Value {
        Value::node(self.graph.ty(id).clone(), id)
    }
}

#[cold]
fn unmade(id: ValueId) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("%{} is used before it is made", id.index()) }.into()
}

#[cold]
fn nothing(op: &OpDef) -> tonnage_core::Error {
    ErrorKind::BadGraph { what: format!("{} has no result", op.name) }.into()
}

//! Fusion: an elementwise op becomes part of the tile programs that read it, so that what lies between them
//! never exists. A chain may end in a reduction, in the update of a variable or in a file.
//!
//! Nodes are looked at from the last to the first, so the readers of a value have their last form by then. A
//! value is written into *all* its readers or into none: it is fused into its consumers, or it stays as it is. Where there are
//! several, it is computed several times; `recompute_cone` says what that costs and what it would keep alive.
//!
//! The bits stay those of the single ops: each does what it did, in the same order, and a value of 16
//! bits is rounded as if it lay in memory.
//!
//! Decision: `docs/decisions/fuse-into-all-consumers.md`.

mod emit;
mod group;
mod kernel_end;
mod recompute_cone;
mod views;

use smallvec::SmallVec;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::{Lower, Mem};
use tonnage_core::scalar::Scalar;
use tonnage_core::tile::Form;
use tonnage_ops::shape::fill::FILL;
use tonnage_ops::tile::TileLimits;

use crate::rewrite::roots;
use crate::target::Target;
use group::FusionGroup;
use recompute_cone::RecomputeCones;
pub(crate) use views::see_through;

/// Instructions and loads beyond which a chain is cut: longer ones gain nothing more.
const LONGEST: usize = 64;
const WIDEST: usize = 12;
/// Readers that a value is written into at most.
const MOST_READERS: usize = 8;

/// The graph with chains of elementwise ops joined.
pub fn fuse(graph: Graph, target: &dyn Target) -> Result<Graph> {
    let mut fusing = Fusing::new(&graph, target)?;
    for at in (0..graph.nodes.len()).rev() {
        let readers = fusing.readers_of(at);
        if readers.as_ref().is_some_and(|readers| readers.len() > 1) && fusing.ends_a_kernel(at) {
            fusing.ends_kernel[at] = true;
            fusing.stays(at);
            continue;
        }
        match readers.filter(|readers| fusing.may_fuse_into_consumers(at, readers)) {
            Some(readers) => fusing.fuse_into_consumers(at, &readers),
            None => fusing.stays(at),
        }
    }
    let (groups, alive) = (fusing.groups, fusing.alive);
    emit::emit(graph, groups, &alive)
}

/// Nodes that read a value.
type Readers = SmallVec<[u32; 4]>;

struct Fusing<'g> {
    graph: &'g Graph,
    target: &'g dyn Target,
    limits: TileLimits,
    groups: Vec<Option<FusionGroup>>,
    alive: Vec<bool>,
    /// For each node, the next one behind it that stays.
    next: Vec<u32>,
    /// The first node that stays, of those that were looked at.
    front: u32,
    is_output: Vec<bool>,
    /// For each value, the node that makes it.
    makers: Vec<u32>,
    /// For each node, whether the kernel before it does it: then it takes nothing in.
    ends_kernel: Vec<bool>,
    /// For each value, the nodes that read it, in order.
    readers: Vec<Readers>,
    /// For each value, the one whose bytes it lies in, through views and updates.
    roots: Vec<ValueId>,
    /// For each such value, the last node that reads its bytes.
    last_read: Vec<u32>,
    /// For each such value, the nodes that update its bytes, in order.
    updates: std::collections::HashMap<ValueId, Vec<u32>>,
    cones: RecomputeCones,
}

impl<'g> Fusing<'g> {
    fn new(graph: &'g Graph, target: &'g dyn Target) -> Result<Fusing<'g>> {
        let (values, nodes) = (graph.value_count(), graph.nodes.len());
        let roots = roots(values, &graph.nodes);
        let mut fusing = Fusing {
            graph,
            target,
            limits: target.tile_limits(),
            groups: Vec::with_capacity(nodes),
            alive: vec![true; nodes],
            next: vec![u32::MAX; nodes],
            front: u32::MAX,
            is_output: vec![false; values],
            makers: vec![u32::MAX; values],
            ends_kernel: vec![false; nodes],
            readers: vec![Readers::new(); values],
            last_read: vec![0; values],
            updates: std::collections::HashMap::new(),
            cones: RecomputeCones::default(),
            roots,
        };
        for (at, node) in graph.nodes.iter().enumerate() {
            let at = at as u32;
            for id in &node.inputs {
                fusing.reads(at, *id);
            }
            for (input, _) in node.updates() {
                let root = fusing.roots[node.inputs[input].index()];
                fusing.updates.entry(root).or_default().push(at);
            }
            node.outputs.iter().for_each(|id| fusing.makers[id.index()] = at);
            fusing.groups.push(group(graph, node)?);
        }
        for id in &graph.outputs {
            fusing.is_output[id.index()] = true;
            fusing.last_read[fusing.roots[id.index()].index()] = u32::MAX;
        }
        fusing.cones = fusing.cones();
        Ok(fusing)
    }

    fn reads(&mut self, at: u32, id: ValueId) {
        let readers = &mut self.readers[id.index()];
        if !readers.contains(&at) {
            readers.push(at);
        }
        let last = &mut self.last_read[self.roots[id.index()].index()];
        *last = (*last).max(at);
    }

    /// The consumers that the result of a node would have to be fused into, where that is possible at all.
    fn readers_of(&self, at: usize) -> Option<Readers> {
        let value = self.fused_into_consumers(at)?;
        let alive = |r: &&u32| self.alive[**r as usize];
        let readers: Readers = self.readers[value.index()].iter().filter(alive).copied().collect();
        (!readers.is_empty() && readers.len() <= MOST_READERS).then_some(readers)
    }

    /// The result of a node that may become part of others: the only one, as elements, of an elementwise op.
    fn fused_into_consumers(&self, at: usize) -> Option<ValueId> {
        let group = self.groups[at].as_ref()?;
        let [value] = self.graph.nodes[at].outputs.as_slice() else { return None };
        let kept = self.is_output[value.index()] || !group.can_fuse_into_consumers();
        (!kept && self.graph.ty(*value).shape == group.domain).then_some(*value)
    }

    /// Whether a node could take in a value: it reads elements over the same domain.
    fn could_take(&self, reader: u32, value: ValueId) -> bool {
        let group = self.groups[reader as usize].as_ref();
        group.filter(|_| !self.ends_kernel[reader as usize]).is_some_and(|group| {
            group.domain == self.graph.ty(value).shape
                && group.loads().all(|(id, form)| id != value || form != Form::Bits)
        })
    }

    fn may_fuse_into_consumers(&self, at: usize, readers: &[u32]) -> bool {
        let (Some(inner), Some(value)) = (&self.groups[at], self.graph.nodes[at].outputs.first())
        else {
            return false;
        };
        readers.iter().all(|reader| {
            self.could_take(*reader, *value)
                && self.may_be_cut(*reader, inner)
                && self.still_there(at as u32, *reader, inner)
                && self.has_room(*reader, *value, inner)
        }) && self.is_worth_it(at, *value, readers)
    }

    /// What the inner op reads must be there still when the outer one runs, and as it was.
    fn still_there(&self, at: u32, reader: u32, inner: &FusionGroup) -> bool {
        let target = match self.graph.nodes[reader as usize].op.mem {
            Mem::Update(input) => Some(self.graph.nodes[reader as usize].inputs[input]),
            _ => None,
        };
        inner.loads().all(|(id, _)| {
            let root = self.roots[id.index()];
            let overwritten = self.updates.get(&root).is_some_and(|updates| {
                let first = updates.partition_point(|u| *u <= at);
                updates.get(first).is_some_and(|u| *u < reader)
            });
            // An update may read its own target as it lies, and in no other way.
            let crossed = target.is_some_and(|t| id != t && self.roots[t.index()] == root);
            !overwritten && !crossed
        })
    }

    /// What goes to a file is made in pieces, and bits stand eight to a byte: they have no pieces.
    fn may_be_cut(&self, reader: u32, inner: &FusionGroup) -> bool {
        let to_file = self.graph.nodes[reader as usize].op.mem == Mem::File;
        !to_file || inner.loads().all(|(_, form)| form != Form::Bits)
    }

    fn has_room(&self, reader: u32, value: ValueId, inner: &FusionGroup) -> bool {
        let Some(outer) = &self.groups[reader as usize] else { return false };
        let code = outer.len() + inner.len() + 1;
        let mut loads: SmallVec<[ValueId; 16]> = SmallVec::new();
        for (id, _) in outer.loads().chain(inner.loads()) {
            if id != value && !loads.contains(&id) && self.constant(id).is_none() {
                loads.push(id);
            }
        }
        if code > LONGEST || loads.len() > WIDEST {
            return false;
        }
        // Whatever the order of instructions.
        if code + loads.len() <= self.limits.live.min(self.limits.registers) {
            return true;
        }
        let mut joined = outer.clone();
        joined.absorb(value, inner);
        let (program, _) =
            joined.finish(&|id| self.constant(id), &|id| self.graph.ty(id).shape.clone());
        self.limits.fit(&program)
    }

    fn constant(&self, id: ValueId) -> Option<Scalar> {
        self.cones.constant(id)
    }

    /// Writes a node into all its readers.
    fn fuse_into_consumers(&mut self, at: usize, readers: &[u32]) {
        let (Some(inner), Some(value)) =
            (self.groups[at].take(), self.graph.nodes[at].outputs.first())
        else {
            return;
        };
        self.alive[at] = false;
        for reader in readers {
            if let Some(outer) = &mut self.groups[*reader as usize] {
                outer.absorb(*value, &inner);
            }
            for (id, _) in inner.loads() {
                self.reads(*reader, id);
            }
        }
    }

    fn stays(&mut self, at: usize) {
        self.next[at] = self.front;
        self.front = at as u32;
    }
}

/// A tile op as a fusion group, with the target of an update as its first load.
fn group(graph: &Graph, node: &Node) -> Result<Option<FusionGroup>> {
    let Lower::Tile(make) = node.op.lower else { return Ok(None) };
    let (program, domain) = graph.with_call(node, |call| {
        let program = make(call, node.aux)?;
        let domain = tonnage_ops::tile::domain(call, &program)?;
        Result::Ok((program, domain))
    })?;
    let first = match node.op.mem {
        Mem::Update(input) => Some(node.inputs[input]),
        _ => None,
    };
    Ok(Some(FusionGroup::new(&program, &node.inputs, domain, first)))
}

/// The number that a value is everywhere.
fn constant(node: &Node) -> Option<Scalar> {
    match node.attrs {
        tonnage_core::attrs::Attrs::Fill { value, dtype, .. } if node.op == &FILL => {
            Some(tonnage_ops::tile::element(value, dtype))
        }
        _ => None,
    }
}

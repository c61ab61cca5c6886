//! What it costs to recompute a value, and what that keeps alive: its recompute cone, from the value up to what
//! exists anyway.
//!
//! The rules, for a value that several nodes read:
//!
//! * Cheap cones (at most [`CHEAP`] flops an element more, in all: sums, products, a quotient) are
//!   recomputed freely: a pass over memory costs more.
//! * More expensive ones (an exponential) up to [`EXPENSIVE`] are recomputed only if bytes that matter are saved:
//!   the value has at least [`MATTERS`] bytes, and it would live across a step that needs memory of its own, or
//!   no result could take over its bytes at the end.
//! * Updates of variables run one after the other, and [join](crate::joined) what they share: a value that they alone read is
//!   recomputed too.
//!
//! And for any value: what is read later because of it must not be more than the value itself was, where a
//! step between needs memory. Two large inputs that would have died to leave one result stay two otherwise.

use smallvec::SmallVec;
use tonnage_core::graph::ValueId;
use tonnage_core::row::{Lower, Mem};
use tonnage_core::scalar::Scalar;
use tonnage_core::shape::TensorType;
use tonnage_core::tile::Close;

use super::{Fusing, constant};

/// Flops an element that are spent freely to save a pass over memory.
const CHEAP: u64 = 8;
/// Flops an element that are spent at most to save bytes.
const EXPENSIVE: u64 = 64;
/// Bytes that matter.
const MATTERS: u64 = 64 * 1024;
/// Steps that are looked at to find one that needs memory; beyond, one is taken for granted.
const LOOK: usize = 32;
/// Nodes and leaves of a cone that are followed: beyond, a chain is cut anyway.
const DEEPEST: usize = super::LONGEST;
const MOST_LEAVES: usize = super::WIDEST;
/// What an open dim is taken for where sizes are compared.
const OPEN: usize = 64;

/// What a value is computed from.
#[derive(Debug, Clone, Default)]
pub(super) struct RecomputeCone {
    /// Flops an element, all the way up.
    work: u64,
    /// Nodes in it.
    nodes: usize,
    /// Whose bytes are read at the top. Inputs of the graph are there anyway, and recipes nowhere.
    leaves: SmallVec<[ValueId; 4]>,
}

/// The cone of every value that may be fused into its consumers.
#[derive(Debug, Default)]
pub(super) struct RecomputeCones {
    cones: Vec<Option<RecomputeCone>>,
    constants: Vec<Option<Scalar>>,
}

impl RecomputeCones {
    pub fn constant(&self, id: ValueId) -> Option<Scalar> {
        self.constants[id.index()]
    }
}

/// About how many bytes a tensor has.
pub(super) fn weight(ty: &TensorType) -> u64 {
    let dims = ty.shape.iter().map(|d| d.most().unwrap_or(OPEN) as u64);
    dims.fold(ty.dtype.size() as u64, u64::saturating_mul)
}

/// Whether `work` more flops an element may be spent so that a value of this type need not exist.
pub(super) fn may_repeat(work: u64, ty: &TensorType) -> bool {
    work <= CHEAP || (work <= EXPENSIVE && weight(ty) >= MATTERS)
}

impl Fusing<'_> {
    /// Cones from the front to the back: those of a node's inputs are known when it is looked at.
    pub fn cones(&self) -> RecomputeCones {
        let values = self.graph.value_count();
        let mut made = RecomputeCones { cones: vec![None; values], constants: vec![None; values] };
        // Bytes that are there anyway: the arguments', and those of recipes, which have none.
        let mut free = vec![false; values];
        for id in &self.graph.inputs {
            free[id.index()] = true;
        }
        for (at, node) in self.graph.nodes.iter().enumerate() {
            let recipe = matches!(node.op.lower, Lower::Recipe(_));
            for id in node.outputs.iter().filter(|_| recipe) {
                free[id.index()] = true;
                made.constants[id.index()] = constant(node);
            }
            let Some((value, group)) = self.fused_into_consumers(at).zip(self.groups[at].as_ref())
            else {
                continue;
            };
            let mut readers = self.readers[value.index()].iter();
            if !readers.all(|reader| self.could_take(*reader, value)) {
                continue;
            }
            let mut cone = RecomputeCone { work: group.work(), nodes: 1, leaves: SmallVec::new() };
            for (id, _) in group.loads() {
                match &made.cones[id.index()] {
                    Some(above)
                        if cone.nodes + above.nodes <= DEEPEST
                            && cone.leaves.len() + above.leaves.len() <= MOST_LEAVES =>
                    {
                        cone.work = cone.work.saturating_add(above.work);
                        cone.nodes += above.nodes;
                        above.leaves.iter().for_each(|leaf| cone.add(*leaf));
                    }
                    _ => {
                        let root = self.roots[id.index()];
                        if !free[root.index()] {
                            cone.add(root);
                        }
                    }
                }
            }
            made.cones[value.index()] = Some(cone);
        }
        made
    }

    /// Whether it is worth it to write a value into these readers.
    pub fn is_worth_it(&self, at: usize, value: ValueId, readers: &[u32]) -> bool {
        let own = weight(self.graph.ty(value));
        let last = readers.iter().copied().max().unwrap_or(0);
        let Some(cone) = &self.cones.cones[value.index()] else { return false };
        let between = self.needs_memory(at, last, own);
        // What would be read at the last reader and is not now.
        let longer: u64 = cone
            .leaves
            .iter()
            .filter(|leaf| self.last_read[leaf.index()] < last)
            .map(|leaf| weight(self.graph.ty(*leaf)))
            .fold(0, u64::saturating_add);
        if between && longer > own {
            return false;
        }
        let more = cone.work.saturating_mul(readers.len() as u64 - 1);
        let updates =
            |reader: &u32| matches!(self.graph.nodes[*reader as usize].op.mem, Mem::Update(_));
        let saves = || between || !self.takes_over(last, value);
        more <= CHEAP
            || more <= EXPENSIVE && (readers.iter().all(updates) || own >= MATTERS && saves())
    }

    /// Whether the last reader of a value can work in its bytes.
    fn takes_over(&self, reader: u32, value: ValueId) -> bool {
        let node = &self.graph.nodes[reader as usize];
        let (Some(group), Some(out)) = (&self.groups[reader as usize], node.outputs.first()) else {
            return false;
        };
        let (from, to) = (self.graph.ty(value), self.graph.ty(*out));
        group.close == Close::Store
            && !matches!(node.op.mem, Mem::Update(_) | Mem::File)
            && from.shape == to.shape
            && from.dtype.size() == to.dtype.size()
    }

    /// Whether a step between two nodes needs memory, in proportion to these bytes.
    fn needs_memory(&self, at: usize, until: u32, bytes: u64) -> bool {
        let mut next = self.front;
        debug_assert!(next as usize > at, "nodes are looked at from the last to the first");
        for _ in 0..LOOK {
            if next >= until {
                return false;
            }
            let node = &self.graph.nodes[next as usize];
            let needs = match node.op.lower {
                Lower::Kernel | Lower::Region(_) => true,
                Lower::Tile(_) if !matches!(node.op.mem, Mem::Update(_) | Mem::File) => {
                    let made = node.outputs.iter().map(|id| weight(self.graph.ty(*id)));
                    made.fold(0, u64::saturating_add).saturating_mul(4) >= bytes
                }
                _ => false,
            };
            if needs {
                return true;
            }
            next = self.next[next as usize];
        }
        true
    }
}

impl RecomputeCone {
    fn add(&mut self, leaf: ValueId) {
        if !self.leaves.contains(&leaf) {
            self.leaves.push(leaf);
        }
    }
}

//! Regions: the nodes around a wide value that run on pieces of it, so that it never exists as a whole.
//!
//! A region grows backward first, from the value through what makes it as long as that is wide too, to values that are narrow;
//! then forward, over everything that reads what the region makes. A node joins where pieces of what it reads give pieces or
//! terms of its results. What depends on a sum over all pieces, on an effect, or on a node that did not join comes after
//! the region. So no path leaves a region and comes back. Nodes at its end that neither read nor make a wide value drop out:
//! a narrow value is the border.

use smallvec::SmallVec;
use tonnage_core::graph::ValueId;
use tonnage_ops::shape::broadcast_to::BROADCAST_TO;

use super::super::pieces::PieceOf;
use super::super::pieces::node::{BatchPart, OnPieces, on_parts, on_pieces};
use super::program::Program;

/// Nodes that a region may span: what is read later than that is saved for another part of the program, and stays whole.
pub const SPAN: usize = 64;
/// How often a region may grow by another wide value that one of its nodes reads.
const AGAIN: usize = 6;

/// A part of a graph that runs on pieces.
#[derive(Debug, Clone)]
pub struct Region {
    /// Its nodes, in order.
    pub nodes: Vec<usize>,
    /// Nodes between its first and its last that come after it.
    pub after: Vec<usize>,
    /// Values from outside that are cut, each along an axis, from which all other cuts follow.
    pub cut: Vec<(ValueId, usize)>,
    /// The axis of the wide value that is cut, and its length.
    pub axis: usize,
    pub length: usize,
    /// Lengths of pieces are multiples of this.
    pub unit: usize,
    /// Roots of wide values that exist in pieces alone.
    pub inside: Vec<u32>,
    /// Bytes of wide values that it makes and that exist as a whole all the same.
    pub escapes: u64,
    /// Whether anything is summed over the pieces.
    pub sums: bool,
}

impl Region {
    /// The first node and the last one.
    pub fn span(&self) -> (usize, usize) {
        (self.nodes[0], self.nodes[self.nodes.len() - 1])
    }
}

/// The best region around a value: the one from which the fewest wide values escape; of equals one without sums, along the
/// first axis.
pub fn region(program: &mut Program, wide: ValueId) -> Option<Region> {
    let shape = program.graph.ty(wide).shape.sizes()?;
    let mut best: Option<Region> = None;
    for (axis, length) in shape.iter().copied().enumerate().filter(|(_, length)| *length > 1) {
        for prime in primes(length) {
            let piece = PieceOf { whole: length, len: length / prime };
            let mut growing = Growing::new(program, wide, axis, piece);
            let found = growing.grow();
            growing.forget();
            let Some(found) = found else { continue };
            let order = |region: &Region| (region.escapes, region.sums, region.axis);
            if best.as_ref().is_none_or(|best| order(&found) < order(best)) {
                best = Some(found);
            }
            break;
        }
    }
    best
}

/// The smallest and the largest prime that a number is a multiple of.
fn primes(number: usize) -> SmallVec<[usize; 2]> {
    let mut found = SmallVec::new();
    let (mut rest, mut by) = (number, 2);
    while rest > 1 && by * by <= rest {
        if rest.is_multiple_of(by) {
            rest /= by;
            if found.is_empty() {
                found.push(by);
            }
        } else {
            by += 1;
        }
    }
    if found.first() != Some(&rest) && rest > 1 {
        found.push(rest);
    }
    found
}

struct Growing<'a, 'g> {
    program: &'a mut Program<'g>,
    wide: ValueId,
    axis: usize,
    piece: PieceOf,
    /// More bytes than this are wide.
    narrow: u64,
    /// Nodes that wide values are made by, backward from the first.
    front: Vec<usize>,
    /// Values from outside that are cut.
    cut: Vec<(ValueId, usize)>,
    /// Values of which something is known.
    known: Vec<ValueId>,
}

/// What a walk forward found.
#[derive(Default)]
struct Walk {
    nodes: Vec<usize>,
    after: Vec<usize>,
    /// Wide values from outside that nodes read pieces of.
    whole: Vec<(ValueId, usize)>,
}

impl<'a, 'g> Growing<'a, 'g> {
    fn new(
        program: &'a mut Program<'g>,
        wide: ValueId,
        axis: usize,
        piece: PieceOf,
    ) -> Growing<'a, 'g> {
        let narrow = program.bytes(wide) / 3;
        let (front, cut, known) = (Vec::new(), Vec::new(), Vec::new());
        Growing { program, wide, axis, piece, narrow, front, cut, known }
    }

    fn grow(&mut self) -> Option<Region> {
        self.take(self.wide, self.axis, SPAN)?;
        if self.front.is_empty() {
            return None;
        }
        for _ in 0..AGAIN {
            let walk = self.walk()?;
            let mut grown = false;
            for (id, axis) in walk.whole.iter().copied() {
                let before = self.front.len();
                self.take(id, axis, SPAN)?;
                grown |= self.front.len() > before;
            }
            if !grown {
                return self.finish(walk);
            }
        }
        let walk = self.walk()?;
        self.finish(walk)
    }

    /// Forgets what is known of values, for the next region.
    fn forget(&mut self) {
        for id in self.known.drain(..) {
            self.program.parts[id.index()] = BatchPart::Whole;
        }
    }

    fn know(&mut self, id: ValueId, part: BatchPart) {
        self.program.parts[id.index()] = part;
        self.known.push(id);
    }

    fn is_wide(&self, id: ValueId) -> bool {
        self.program.bytes(id) > self.narrow
    }

    /// Takes a value along an axis: with what makes it, where it is wide and that runs on pieces; from outside otherwise.
    /// `None` where it is cut along another axis already.
    fn take(&mut self, id: ValueId, axis: usize, deep: usize) -> Option<()> {
        match &self.program.parts[id.index()] {
            BatchPart::Whole => {}
            BatchPart::Along(own) if *own == axis => {
                // A wide one from outside stays outside; what the region makes is made already.
                return Some(());
            }
            _ => return None,
        }
        // A broadcast has no bytes of its own: what it is of is cut.
        let goes_on = |at: &usize| {
            let is_broadcast = self.program.graph.nodes[*at].op == &BROADCAST_TO;
            deep > 0 && (is_broadcast || self.is_wide(id)) && self.program.may_be_cut(*at)
        };
        if let Some(at) = self.program.maker(id).filter(goes_on)
            && let Some((input, own, on)) = self.backward(at, id, axis)
        {
            let node = &self.program.graph.nodes[at];
            let inputs = node.inputs.clone();
            self.know(id, BatchPart::Along(axis));
            self.take(inputs[input], own, deep - 1)?;
            self.front.push(at);
            for (other, cut) in inputs.iter().zip(on.cuts) {
                if let Some(cut) = cut.filter(|_| self.is_wide(*other)) {
                    self.take(*other, cut, deep - 1)?;
                }
            }
            return Some(());
        }
        self.know(id, BatchPart::Along(axis));
        self.cut.push((id, axis));
        Some(())
    }

    /// An input of a node, and the axis along which it has to be cut for a piece of a result; with how the node runs then.
    fn backward(&self, at: usize, made: ValueId, axis: usize) -> Option<(usize, usize, OnPieces)> {
        let graph = self.program.graph;
        let node = &graph.nodes[at];
        let output = node.outputs.iter().position(|id| *id == made)?;
        for (input, id) in node.inputs.iter().enumerate() {
            for own in 0..graph.ty(*id).shape.rank() {
                let read = |other: &ValueId| match other == id {
                    true => BatchPart::Along(own),
                    false => self.program.parts[other.index()].clone(),
                };
                let reads = node.inputs.iter().map(read).collect();
                let on = on_parts(graph, node, reads, self.piece);
                if let Some(on) = on.filter(|on| on.makes[output] == BatchPart::Along(axis)) {
                    return Some((input, own, on));
                }
            }
        }
        None
    }

    /// Walks forward from the first node, as far as wide values are read.
    fn walk(&mut self) -> Option<Walk> {
        let graph = self.program.graph;
        // What was made by the walk before is found anew.
        let from_outside: Vec<(ValueId, usize)> = self.cut.clone();
        self.forget();
        for (id, axis) in from_outside {
            self.know(id, BatchPart::Along(axis));
        }
        let first = *self.front.iter().min()?;
        let mut last = *self.front.iter().max()?;
        let mut walk = Walk::default();
        let mut after = vec![];
        let mut fails: Option<Vec<ValueId>> = None;
        let mut at = first;
        while at <= last {
            if at - first > SPAN {
                return None;
            }
            let node = &graph.nodes[at];
            if node.outputs.iter().any(|id| graph.ty(*id).shape.sizes().is_none()) {
                return None; // the data decide sizes here
            }
            let in_front = self.front.contains(&at);
            let read = |wanted: &dyn Fn(&BatchPart, ValueId) -> bool| {
                node.inputs.iter().any(|id| wanted(&self.program.parts[id.index()], *id))
            };
            let is_late = read(&|part, _| matches!(part, BatchPart::Folded(_) | BatchPart::After));
            let reads_made = read(&|part, id| {
                let cut = matches!(part, BatchPart::Along(_) | BatchPart::Packed(..));
                cut && self.program.maker(id).is_some_and(|by| walk.nodes.contains(&by))
            });
            let may = self.program.may_be_cut(at) && !is_late && (in_front || reads_made);
            // Two nodes that fail on other values would fail in another order.
            let may = may && (!node.can_fail() || self.fails_alike(at, &mut fails));
            let on = match may {
                true => on_pieces(graph, node, &self.program.parts, self.piece),
                false => None,
            };
            match on {
                Some(on) => {
                    for (id, cut) in node.inputs.iter().zip(&on.cuts) {
                        if let Some(axis) = cut.filter(|_| self.is_wide(*id)) {
                            walk.whole.push((*id, axis));
                        }
                    }
                    for (id, part) in node.outputs.iter().zip(on.makes) {
                        let is_cut = matches!(part, BatchPart::Along(_) | BatchPart::Packed(..));
                        if is_cut && self.is_wide(*id) {
                            let readers = &self.program.readers[id.index()];
                            last = last.max(readers.last().map_or(0, |at| *at as usize));
                        }
                        self.know(*id, part);
                    }
                    walk.nodes.push(at);
                }
                None if in_front => return None,
                // What has an effect stays behind what came before it.
                None if is_late || reads_made || !self.program.may_be_cut(at) => {
                    node.outputs.iter().for_each(|id| self.know(*id, BatchPart::After));
                    after.push(at);
                }
                None => {}
            }
            at += 1;
        }
        walk.after = after;
        Some(walk)
    }

    /// Whether a node that can fail reads what the first such node of the region reads: it fails on the same values then,
    /// if at all.
    fn fails_alike(&self, at: usize, first: &mut Option<Vec<ValueId>>) -> bool {
        let graph = self.program.graph;
        let discrete = |id: &&ValueId| !graph.ty(**id).dtype.is_float();
        let reads: Vec<ValueId> = graph.nodes[at].inputs.iter().filter(discrete).copied().collect();
        match first {
            Some(first) => reads.iter().any(|id| first.contains(id)),
            None => {
                *first = Some(reads);
                true
            }
        }
    }

    /// The region of a walk, without the nodes at its end that no wide value needs.
    fn finish(&mut self, walk: Walk) -> Option<Region> {
        let graph = self.program.graph;
        let Walk { nodes: all, mut after, .. } = walk;
        let mut needed = vec![false; all.len()];
        for i in (0..all.len()).rev() {
            let node = &graph.nodes[all[i]];
            let touches = node.inputs.iter().chain(&node.outputs).any(|id| {
                let part = &self.program.parts[id.index()];
                let cut = matches!(part, BatchPart::Along(_) | BatchPart::Packed(..));
                let made = self.program.maker(*id).is_some_and(|by| all.contains(&by));
                cut && made && self.is_wide(*id)
            });
            let read = all.iter().zip(&needed).skip(i + 1).any(|(later, needed)| {
                *needed && graph.nodes[*later].inputs.iter().any(|id| node.outputs.contains(id))
            });
            needed[i] = touches || read;
        }
        let (mut nodes, mut dropped) = (Vec::new(), Vec::new());
        for (at, needed) in all.into_iter().zip(needed) {
            if needed { nodes.push(at) } else { dropped.push(at) }
        }
        let last = *nodes.last()?;
        after.extend(dropped);
        after.retain(|at| *at < last);
        after.sort_unstable();
        let mut region = Region {
            nodes,
            after,
            cut: self.cut.clone(),
            axis: self.axis,
            length: self.piece.whole,
            unit: 1,
            inside: Vec::new(),
            escapes: 0,
            sums: false,
        };
        self.results(&mut region)?;
        region.inside.contains(&self.program.pressure.root[self.wide.index()]).then_some(region)
    }

    /// What of the results of a region leaves it, and in which units it can be cut.
    fn results(&self, region: &mut Region) -> Option<()> {
        let graph = self.program.graph;
        let inside = |at: &u32| region.nodes.binary_search(&(*at as usize)).is_ok();
        let mut escaped: Vec<u32> = Vec::new();
        let mut roots: Vec<u32> = Vec::new();
        let mut unit = 1;
        let lengths = |id: ValueId, axis: usize| graph.ty(id).shape.get(axis)?.known();
        for (id, axis) in &self.cut {
            unit = lcm(unit, self.unit(lengths(*id, *axis)?));
        }
        for at in &region.nodes {
            let node = &graph.nodes[*at];
            for (id, axis) in cuts_of(self, *at)? {
                unit = lcm(unit, self.unit(lengths(id, axis)?));
            }
            for id in &node.outputs {
                let (i, root) = (id.index(), self.program.pressure.root[id.index()]);
                let leaves =
                    self.program.leaves[i] || self.program.readers[i].iter().any(|at| !inside(at));
                match &self.program.parts[i] {
                    BatchPart::Along(axis) => {
                        unit = lcm(unit, self.unit(lengths(*id, *axis)?));
                        if self.is_wide(*id) {
                            roots.push(root);
                            if leaves {
                                escaped.push(root);
                            }
                        }
                    }
                    BatchPart::Packed(..) if leaves => return None,
                    BatchPart::Folded(_) => region.sums |= leaves,
                    _ => {}
                }
            }
        }
        escaped.sort_unstable();
        escaped.dedup();
        roots.sort_unstable();
        roots.dedup();
        region.escapes =
            escaped.iter().map(|root| self.program.pressure.size[*root as usize]).sum();
        let made = |root: u32| self.program.maker(ValueId::new(root as usize)).map(|at| at as u32);
        roots.retain(|root| {
            escaped.binary_search(root).is_err() && made(*root).as_ref().is_some_and(inside)
        });
        region.inside = roots;
        region.unit = unit;
        (unit < region.length).then_some(())
    }

    /// The least length of a piece with which an axis of that length has whole pieces.
    fn unit(&self, length: usize) -> usize {
        self.piece.whole / gcd(self.piece.whole, length).max(1)
    }
}

/// Whole inputs of a node that are cut with the others.
fn cuts_of(growing: &Growing, at: usize) -> Option<SmallVec<[(ValueId, usize); 4]>> {
    let node = &growing.program.graph.nodes[at];
    let on = on_pieces(growing.program.graph, node, &growing.program.parts, growing.piece)?;
    let cut = node.inputs.iter().zip(on.cuts);
    Some(cut.filter_map(|(id, axis)| Some((*id, axis?))).collect())
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

fn lcm(a: usize, b: usize) -> usize {
    a / gcd(a, b).max(1) * b
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_tried_by_their_smallest_and_their_largest_prime() {
        let of = |number| primes(number).to_vec();
        assert_eq!((of(2), of(12), of(49), of(7)), (vec![2], vec![2, 3], vec![7], vec![7]));
        assert_eq!((of(1), of(2 * 3 * 11)), (vec![], vec![2, 11]));
        assert_eq!((gcd(12, 18), lcm(4, 6)), (6, 12));
    }
}

//! Segments in pieces: the part of a graph between two narrow values, with a wide one between them that would be most of the
//! peak, runs on pieces along an axis, one after the other. So the wide value never exists as a whole: of a language model
//! the logits, their loss and their gradient; a wide hidden layer; scores of attention that is written out.
//!
//! Nothing here knows an op. A wide value that lives where too much lives is taken, a region around it is grown by the axis
//! maps of the ops (`grow`), and the region becomes a loop over pieces (`splice`). How many pieces there are follows from the
//! bytes that are to be met. Whatever is summed over the pieces is summed in another order; where nothing is, the bits stay.
//!
//! Decision: `docs/decisions/segments-in-pieces.md`.

mod grow;
mod program;
mod splice;

use std::collections::HashMap;

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::source::Source;

use super::pieces::PieceOf;
use crate::order::pressure::Pressure;
use crate::place::InputSpec;
use crate::sort;
use crate::target::Target;
use grow::{Region, SPAN, region};
use program::Program;
use splice::{CutRegion, cut, splice};

/// Values of fewer bytes are not cut.
const LEAST: u64 = 16 << 10;
/// Pieces of one segment at most.
const MOST_PIECES: usize = 64;
/// How often what is left is looked at once more.
const ROUNDS: usize = 4;
/// Values that are looked at in a round at most.
const LOOKED_AT: usize = 48;
/// A value is worth cutting that is at least this part of what is too much.
const WORTH: u64 = 8;
/// A larger piece by that part is taken where all pieces are then equal.
const LONGER: usize = 3;

/// A segment that runs in pieces.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Segment {
    /// The op that makes its widest value.
    pub op: &'static str,
    /// Its line.
    pub source: Source,
    /// The axis of that value that is cut.
    pub axis: usize,
    /// How many pieces, the rest included.
    pub pieces: usize,
    /// Bytes of the value as a whole.
    pub whole: Bytes,
    /// Bytes of one piece.
    pub piece: Bytes,
    /// How many nodes run on pieces.
    pub nodes: usize,
    /// Whether last digits may differ: something is summed over the pieces, or a kernel adds up a piece in another order.
    pub changes_bits: bool,
}

/// What segments are cut for.
#[derive(Debug, Clone, Copy)]
pub struct Goal {
    /// Bytes that should live in the arena at once, at most.
    pub bytes: u64,
    /// Whether last digits may change.
    pub changes_bits: bool,
}

/// What segments are cut into, whatever lives beside them.
#[derive(Debug, Clone, Copy)]
pub struct EqualPieces {
    /// Bytes of a value that is cut, at least.
    pub least: u64,
    /// How many pieces.
    pub pieces: usize,
    /// Whether last digits may change.
    pub changes_bits: bool,
}

/// A graph whose segments may be cut, for one goal or for several.
pub struct Segments<'g> {
    inputs: &'g [InputSpec],
    target: &'g dyn Target,
    graph: &'g Graph,
    live: Live,
    /// The last use of each root.
    last: Vec<usize>,
    program: Program<'g>,
    /// The regions around roots that were looked at.
    regions: HashMap<u32, Option<Region>>,
}

/// What lives at each node.
struct Live {
    bytes: Vec<u64>,
    peak: u64,
}

impl Live {
    fn of(pressure: &Pressure) -> Live {
        let mut bytes = vec![0; pressure.nodes.len()];
        pressure.walk(&all(pressure), |at, live| bytes[at] = live);
        let peak = bytes.iter().copied().max().unwrap_or(0);
        Live { bytes, peak }
    }
}

/// All nodes in the order in which they stand.
fn all(pressure: &Pressure) -> Vec<u32> {
    (0..pressure.nodes.len() as u32).collect()
}

impl<'g> Segments<'g> {
    /// Reads a graph, in the order in which it will run.
    pub fn of(graph: &'g Graph, inputs: &'g [InputSpec], target: &'g dyn Target) -> Segments<'g> {
        let pressure = Pressure::of(graph, inputs, target);
        let live = Live::of(&pressure);
        let last = pressure.last_uses(&all(&pressure));
        let program = Program::of(graph, pressure);
        Segments { inputs, target, graph, live, last, program, regions: HashMap::new() }
    }

    /// The graph with segments in pieces, so that it comes as close to a goal as that brings it; `None` where it does not help.
    pub fn in_pieces(&mut self, goal: Goal) -> Option<(Graph, Vec<Segment>)> {
        let (mut best, mut peak, mut listed) = self.cut_once(goal)?;
        for _ in 1..ROUNDS {
            let more = Segments::of(&best, self.inputs, self.target).cut_once(goal);
            let Some((made, lower, segments)) = more.filter(|(_, lower, _)| *lower < peak) else {
                break;
            };
            (best, peak) = (made, lower);
            listed.extend(segments);
        }
        Some((best, listed))
    }

    /// The graph with the regions around all values of at least that many bytes in that many pieces, or in fewer where a
    /// region allows no more; `None` where there is none.
    pub fn in_equal(&mut self, equal: EqualPieces) -> Option<(Graph, Vec<Segment>)> {
        let of_all = |_, bytes: u64| bytes >= equal.least;
        let cuts = self.cuts(of_all, equal.changes_bits, |_, region| even(region, equal.pieces));
        if cuts.is_empty() {
            return None;
        }
        let listed = cuts.iter().map(|cut| told(self.graph, cut)).collect();
        Some((splice(self.graph, &cuts), listed))
    }

    /// The graph with the regions around the largest values in pieces, what lives in it at once, and what was cut; `None`
    /// where no less does.
    fn cut_once(&mut self, goal: Goal) -> Option<(Graph, u64, Vec<Segment>)> {
        if self.live.peak <= goal.bytes {
            return None;
        }
        // What is made where too much lives, or lives on there, and is a part of it worth cutting.
        let is_worth = |most: u64, bytes: u64| {
            let excess = most.saturating_sub(goal.bytes);
            excess > 0 && bytes >= excess / WORTH
        };
        let cuts = self.cuts(is_worth, goal.changes_bits, |segments, region| {
            segments.piece(region, goal.bytes)
        });
        if cuts.is_empty() {
            return None;
        }
        let made = splice(self.graph, &cuts);
        let peak = Live::of(&Pressure::of(&made, self.inputs, self.target)).peak;
        let listed = cuts.iter().map(|cut| told(self.graph, cut)).collect();
        (peak < self.live.peak).then_some((made, peak, listed))
    }

    /// Roots that are read soon and that are worth it, by the most that lives beside them and their bytes; the largest first.
    fn wide(&self, is_worth: impl Fn(u64, u64) -> bool) -> Vec<(usize, u32)> {
        let mut wide: Vec<(u64, usize, u32)> = Vec::new();
        let pressure = &self.program.pressure;
        for (at, needs) in pressure.nodes.iter().enumerate() {
            for root in &needs.makes {
                let (i, bytes) = (*root as usize, pressure.size[*root as usize]);
                let near = self.last[i] != usize::MAX && self.last[i] - at <= SPAN;
                if bytes < LEAST || !pressure.in_arena[i] || !near {
                    continue;
                }
                let most = self.live.bytes[at..=self.last[i]].iter().max().copied().unwrap_or(0);
                if is_worth(most, bytes) {
                    wide.push((bytes, at, *root));
                }
            }
        }
        sort::by_key(&mut wide, |(bytes, at, _)| (std::cmp::Reverse(*bytes), *at));
        wide.truncate(LOOKED_AT);
        wide.into_iter().map(|(_, at, root)| (at, root)).collect()
    }

    /// Regions around those that do not overlap, cut into such pieces; in order.
    fn cuts(
        &mut self,
        is_worth: impl Fn(u64, u64) -> bool,
        changes_bits: bool,
        piece: impl Fn(&Segments, &Region) -> Option<PieceOf>,
    ) -> Vec<CutRegion> {
        let mut found: Vec<CutRegion> = Vec::new();
        for (at, root) in self.wide(is_worth) {
            let meets = |first: usize, last: usize| {
                found.iter().map(|other| other.region.span()).any(|(a, b)| first <= b && a <= last)
            };
            if meets(at, at) {
                continue;
            }
            let program = &mut self.program;
            self.regions
                .entry(root)
                .or_insert_with(|| region(program, ValueId::new(root as usize)));
            let Some(Some(grown)) = self.regions.get(&root) else { continue };
            let (first, last) = grown.span();
            if (grown.sums && !changes_bits) || meets(first, last) {
                continue;
            }
            let piece = piece(self, grown);
            let made = piece.and_then(|piece| cut(&self.program, grown, piece, self.target));
            found.extend(made.filter(|made| changes_bits || !made.changes_bits));
        }
        sort::by_key(&mut found, |cut| cut.region.span());
        found
    }

    /// The length of a piece with which what lives beside a region leaves room for one.
    fn piece(&self, region: &Region, goal: u64) -> Option<PieceOf> {
        let (pressure, live, last) = (&self.program.pressure, &self.live, &self.last);
        let made: Vec<(usize, u32)> = region
            .nodes
            .iter()
            .flat_map(|at| pressure.nodes[*at].makes.iter().map(move |root| (*at, *root)))
            .filter(|(_, root)| region.inside.contains(root))
            .collect();
        let (first, end) = region.span();
        let mut parts = 2;
        for at in first..=end {
            let lives = |(from, root): &&(usize, u32)| *from <= at && at <= last[*root as usize];
            let own: u64 = made.iter().filter(lives).map(|(_, r)| pressure.size[*r as usize]).sum();
            let own = own.min(live.bytes[at]);
            let others = live.bytes[at] - own;
            let needed = match goal.checked_sub(others).filter(|room| *room > 0) {
                Some(room) => usize::try_from(own.div_ceil(room)).unwrap_or(MOST_PIECES),
                None if own > 0 => MOST_PIECES,
                None => 1,
            };
            parts = parts.max(needed.min(MOST_PIECES));
        }
        even(region, parts)
    }
}

/// About that many pieces of a region, of equal lengths where that takes not much more memory.
fn even(region: &Region, parts: usize) -> Option<PieceOf> {
    let units = region.length / region.unit.max(1);
    if units < 2 {
        return None;
    }
    let (most, parts) = (units / parts.min(units), parts.min(units));
    let even = (most.div_ceil(LONGER).max(1)..=most).rev().find(|len| units.is_multiple_of(*len));
    let len = even.unwrap_or(units.div_ceil(parts).min(units - 1));
    Some(PieceOf { whole: region.length, len: len * region.unit })
}

/// What a plan says of it.
fn told(graph: &Graph, cut: &CutRegion) -> Segment {
    let bytes = |root: &u32| graph.ty(ValueId::new(*root as usize)).bytes("a piece").ok();
    let widest =
        cut.region.inside.iter().max_by_key(|root| (bytes(root), std::cmp::Reverse(**root)));
    let id = ValueId::new(widest.map_or(0, |root| *root as usize));
    let node = graph.nodes.iter().find(|node| node.outputs.contains(&id));
    let whole = widest.and_then(bytes).unwrap_or(Bytes::ZERO);
    let (len, length) = (cut.piece.len as u64, cut.piece.whole as u64);
    Segment {
        op: node.map_or("", |node| node.op.name),
        source: graph.value(id).source,
        axis: cut.region.axis,
        pieces: cut.piece.count() + usize::from(cut.piece.rest().is_some()),
        whole,
        piece: Bytes::new(
            (u128::from(whole.get()) * u128::from(len)).div_ceil(u128::from(length.max(1))) as u64,
        ),
        nodes: cut.region.nodes.len(),
        changes_bits: cut.changes_bits,
    }
}

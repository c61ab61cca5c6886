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

use serde::Serialize;
use tonnage_core::Bytes;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::source::Source;

use super::pieces::PieceOf;
use crate::order::pressure::Pressure;
use crate::place::InputSpec;
use crate::target::Target;
use grow::{Region, region};
use program::Program;
use splice::{CutRegion, cut, splice};

/// Values of fewer bytes are not cut.
const LEAST: u64 = 16 << 10;
/// Pieces of one segment at most.
const MOST_PIECES: usize = 64;
/// How often what is left is looked at once more.
const ROUNDS: usize = 4;
/// Values that are looked at in a round at most.
const LOOKED_AT: usize = 96;
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
#[derive(Clone, Copy)]
pub struct Goal<'a> {
    /// Bytes that should live in the arena at once, at most.
    pub bytes: u64,
    /// Whether last digits may change.
    pub changes_bits: bool,
    pub inputs: &'a [InputSpec],
    pub target: &'a dyn Target,
}

/// The graph with segments in pieces, so that it comes as close to a goal as that brings it; `None` where it does not help.
pub fn in_pieces(graph: &Graph, goal: Goal) -> Option<(Graph, Vec<Segment>)> {
    let mut best: Option<(Graph, Vec<Segment>)> = None;
    for _ in 0..ROUNDS {
        let (now, done) = best.as_ref().map_or((graph, &[][..]), |(now, done)| (now, done));
        let pressure = Pressure::of(now, goal.inputs, goal.target);
        let live = Live::of(&pressure);
        if live.peak <= goal.bytes {
            break;
        }
        let cuts = round(now, &pressure, &live, goal);
        if cuts.is_empty() {
            break;
        }
        let made = splice(now, &cuts);
        let after = Live::of(&Pressure::of(&made, goal.inputs, goal.target));
        if after.peak >= live.peak {
            break;
        }
        let segments = done.iter().cloned().chain(cuts.iter().map(|cut| told(now, cut))).collect();
        best = Some((made, segments));
    }
    best
}

/// What lives at each node.
struct Live {
    bytes: Vec<u64>,
    peak: u64,
}

impl Live {
    fn of(pressure: &Pressure) -> Live {
        let order: Vec<u32> = (0..pressure.nodes.len() as u32).collect();
        let mut bytes = vec![0; order.len()];
        pressure.walk(&order, |at, live| bytes[at] = live);
        let peak = bytes.iter().copied().max().unwrap_or(0);
        Live { bytes, peak }
    }
}

/// Regions around the largest values that live where more lives than should, which do not overlap; in order.
fn round(graph: &Graph, pressure: &Pressure, live: &Live, goal: Goal) -> Vec<CutRegion> {
    let order: Vec<u32> = (0..pressure.nodes.len() as u32).collect();
    let last = pressure.last_uses(&order);
    // How many nodes before each have more than the goal.
    let mut above = vec![0usize; order.len() + 1];
    for (at, bytes) in live.bytes.iter().enumerate() {
        above[at + 1] = above[at] + usize::from(*bytes > goal.bytes);
    }
    let least = LEAST.max((live.peak - goal.bytes) / 64);
    let mut wide: Vec<(u64, usize, u32)> = Vec::new();
    for (at, needs) in pressure.nodes.iter().enumerate() {
        for root in &needs.makes {
            let (i, bytes) = (*root as usize, pressure.size[*root as usize]);
            let to = last[i];
            let near = to != usize::MAX && to - at <= grow::SPAN;
            if bytes >= least && pressure.in_arena[i] && near && above[to + 1] > above[at] {
                wide.push((bytes, at, *root));
            }
        }
    }
    wide.sort_by_key(|(bytes, at, _)| (std::cmp::Reverse(*bytes), *at));
    wide.truncate(LOOKED_AT);
    let mut program = Program::of(graph, pressure);
    let mut found: Vec<CutRegion> = Vec::new();
    for (_, _, root) in wide {
        let Some(grown) = region(&mut program, ValueId::new(root as usize)) else { continue };
        let (first, end) = grown.span();
        let overlaps = |other: &CutRegion| {
            let (a, b) = other.region.span();
            first <= b && a <= end
        };
        if (grown.sums && !goal.changes_bits) || found.iter().any(overlaps) {
            continue;
        }
        let piece = piece(&grown, pressure, live, &last, goal.bytes);
        let made = piece.and_then(|piece| cut(&program, &grown, piece, goal.target));
        found.extend(made.filter(|made| goal.changes_bits || !made.changes_bits));
    }
    found.sort_by_key(|cut| cut.region.span());
    found
}

/// The length of a piece with which what lives beside a region leaves room for one.
fn piece(
    region: &Region,
    pressure: &Pressure,
    live: &Live,
    last: &[usize],
    goal: u64,
) -> Option<PieceOf> {
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

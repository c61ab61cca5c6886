//! A region in pieces: its nodes as a graph of their own, cut, and that graph in their place.

use std::collections::HashMap;

use tonnage_core::TensorType;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::row::Call;
use tonnage_ops::shape::{broadcast_to::BROADCAST_TO, fill::FILL};

use super::super::pieces::PieceOf;
use super::super::pieces::build::{body_specs, in_pieces};
use super::super::pieces::node::{BatchPart, piece_of};
use super::super::pieces::parts::{BatchSplit, NodePlacement};
use super::grow::Region;
use super::program::Program;
use crate::order;
use crate::target::Target;

/// A region that runs in pieces.
pub struct CutRegion {
    pub region: Region,
    pub piece: PieceOf,
    /// Whether a piece of a result may have other bits than the whole.
    pub changes_bits: bool,
    /// What runs in place of its nodes.
    graph: Graph,
    /// What the inputs and outputs of that graph are in the whole.
    inputs: Vec<ValueId>,
    outputs: Vec<ValueId>,
}

/// A region in such pieces; `None` where something in it does not allow that after all.
pub fn cut(
    program: &Program,
    region: &Region,
    piece: PieceOf,
    target: &dyn Target,
) -> Option<CutRegion> {
    let (part, inputs, outputs) = extract(program, region);
    let name = |id: &ValueId| inputs.iter().position(|outer| outer == id);
    let cut = region.cut.iter();
    let cut: Vec<(ValueId, usize)> =
        cut.filter_map(|(id, axis)| Some((part.inputs[name(id)?], *axis))).collect();
    let first = BatchSplit::of(&part, &cut, piece)?;
    let rest = match piece.rest() {
        Some(rest) => Some(BatchSplit::of(&part, &cut, rest)?),
        None => None,
    };
    let leaves = |place: &BatchPart| !matches!(place, BatchPart::Whole | BatchPart::After);
    if !part.outputs.iter().all(|id| leaves(&first.parts[id.index()])) {
        return None; // it would be computed beside the pieces
    }
    let mut made = in_pieces(&part, &first, rest.as_ref()).ok()?.graph;
    made.prune();
    let splits = [Some(&first), rest.as_ref()];
    let changes_bits =
        region.sums || !splits.into_iter().flatten().all(|split| keeps_bits(&part, split, target));
    for node in made.nodes.iter_mut().filter(|node| !node.regions.is_empty()) {
        let specs = body_specs(node).ok()?;
        node.regions = vec![order::low_peak(&node.regions[0], &specs, target)];
    }
    let unnamed = made.outputs.iter().any(|id| made.inputs.contains(id));
    let mut distinct = made.outputs.clone();
    distinct.sort_unstable();
    distinct.dedup();
    if unnamed || distinct.len() < made.outputs.len() {
        return None;
    }
    let region = region.clone();
    Some(CutRegion { region, piece, changes_bits, graph: made, inputs, outputs })
}

/// The nodes of a region as a graph, with what makes its fills and broadcasts; and what its inputs and outputs are in the
/// whole.
fn extract(program: &Program, region: &Region) -> (Graph, Vec<ValueId>, Vec<ValueId>) {
    let whole = program.graph;
    let mut nodes = region.nodes.clone();
    let mut next = 0;
    while next < nodes.len() {
        for id in &whole.nodes[nodes[next]].inputs {
            let made_inside = |at: &usize| {
                let op = whole.nodes[*at].op;
                (op == &FILL || op == &BROADCAST_TO) && !nodes.contains(at)
            };
            let is_cut = region.cut.iter().any(|(cut, _)| cut == id);
            if let Some(at) = program.maker(*id).filter(|at| !is_cut && made_inside(at)) {
                nodes.push(at);
            }
        }
        next += 1;
    }
    nodes.sort_unstable();
    let mut part = Graph::default();
    let mut names: HashMap<ValueId, ValueId> = HashMap::new();
    let (mut inputs, mut outputs) = (Vec::new(), Vec::new());
    for at in &nodes {
        let mut node = whole.nodes[*at].clone();
        for id in &mut node.inputs {
            *id = *names.entry(*id).or_insert_with(|| {
                inputs.push(*id);
                let name = part.add_value(whole.value(*id).clone());
                part.inputs.push(name);
                name
            });
        }
        for id in &mut node.outputs {
            let name = part.add_value(whole.value(*id).clone());
            names.insert(*id, name);
            *id = name;
        }
        part.nodes.push(node);
    }
    for id in region.nodes.iter().flat_map(|at| &whole.nodes[*at].outputs) {
        let outside = |at: &u32| region.nodes.binary_search(&(*at as usize)).is_err();
        if program.leaves[id.index()] || program.readers[id.index()].iter().any(outside) {
            outputs.push(*id);
            part.outputs.extend(names.get(id));
        }
    }
    (part, inputs, outputs)
}

/// Whether a piece of a result has the bits of the whole, as far as kernels go.
fn keeps_bits(part: &Graph, split: &BatchSplit, target: &dyn Target) -> bool {
    part.nodes.iter().zip(&split.places).all(|(node, place)| {
        let NodePlacement::Piece(on) = place else { return true };
        let piece = |(id, cut): (&ValueId, &Option<usize>)| -> TensorType {
            let axis = match &split.parts[id.index()] {
                BatchPart::Along(axis) => Some(*axis),
                _ => *cut,
            };
            let whole = part.ty(*id);
            axis.and_then(|axis| piece_of(whole, axis, split.piece)).unwrap_or(whole.clone())
        };
        let pieces: Vec<TensorType> = node.inputs.iter().zip(&on.cuts).map(piece).collect();
        part.with_call(node, |whole| {
            let piece = Call { inputs: &pieces, attrs: &on.attrs, ..*whole };
            target.keeps_bits(node.op, whole, &piece)
        })
    })
}

/// The graph with regions replaced by what runs in their place. Their spans do not overlap.
pub fn splice(whole: &Graph, regions: &[CutRegion]) -> Graph {
    let mut made = whole.clone();
    made.nodes = Vec::with_capacity(whole.nodes.len());
    let mut at = 0;
    for cut in regions {
        let (first, last) = cut.region.span();
        made.nodes.extend_from_slice(&whole.nodes[at..first]);
        let (inside, after) = (&cut.region.nodes, &cut.region.after);
        for at in first..=last {
            if inside.binary_search(&at).is_err() && after.binary_search(&at).is_err() {
                made.nodes.push(whole.nodes[at].clone());
            }
        }
        let ends = cut.graph.inputs.iter().zip(&cut.inputs);
        let ends = ends.chain(cut.graph.outputs.iter().zip(&cut.outputs));
        let mut names: HashMap<ValueId, ValueId> = ends.map(|(own, id)| (*own, *id)).collect();
        for node in &cut.graph.nodes {
            let mut node = node.clone();
            for id in node.inputs.iter_mut().chain(&mut node.outputs) {
                *id = *names
                    .entry(*id)
                    .or_insert_with(|| made.add_value(cut.graph.value(*id).clone()));
            }
            made.nodes.push(node);
        }
        made.nodes.extend(after.iter().map(|at| whole.nodes[*at].clone()));
        at = last + 1;
    }
    made.nodes.extend_from_slice(&whole.nodes[at..]);
    made
}

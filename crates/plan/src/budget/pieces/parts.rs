//! Which nodes run piece by piece, which before all pieces and which after: a walk over the nodes with what is known
//! of each value.

use tonnage_core::Kind;
use tonnage_core::graph::{Graph, ValueId};

use super::PieceOf;
use super::node::{BatchPart, OnPieces, is_last, on_pieces};

/// Where a node runs.
#[derive(Debug, Clone)]
pub enum NodePlacement {
    /// Once: before all pieces where they need it, otherwise after.
    Once,
    /// For every piece.
    Piece(Box<OnPieces>),
    /// Once, when all pieces are done.
    After,
}

/// A graph cut along its batch.
#[derive(Debug)]
pub struct BatchSplit {
    pub piece: PieceOf,
    /// For each value.
    pub parts: Vec<BatchPart>,
    /// For each node.
    pub places: Vec<NodePlacement>,
}

/// Arguments that are cut along their first axis together: all that have the same length there, or one alone.
pub fn batches(graph: &Graph) -> Vec<(usize, Vec<ValueId>)> {
    let mut found: Vec<(usize, Vec<ValueId>)> = Vec::new();
    for id in graph.inputs.iter().filter(|id| graph.value(**id).kind == Kind::Input) {
        let Some(len) = graph.ty(*id).shape.first().and_then(|d| d.known()) else { continue };
        match found.iter_mut().find(|(other, _)| *other == len) {
            Some((_, ids)) => ids.push(*id),
            None if len > 1 => found.push((len, vec![*id])),
            None => {}
        }
    }
    let alone: Vec<(usize, Vec<ValueId>)> = found
        .iter()
        .filter(|(_, ids)| ids.len() > 1)
        .flat_map(|(len, ids)| ids.iter().map(|id| (*len, vec![*id])))
        .collect();
    found.extend(alone);
    found
}

impl BatchSplit {
    /// The graph with these inputs in such pieces, each along an axis; `None` where something mixes them.
    ///
    /// An op that needs all pieces at once, or what only all of them make, excludes it. Updates of variables, and what goes
    /// to files, come after all pieces, and may read what the pieces made, joined.
    pub fn of(graph: &Graph, cut: &[(ValueId, usize)], piece: PieceOf) -> Option<BatchSplit> {
        let mut parts = vec![BatchPart::Whole; graph.value_count()];
        for (id, axis) in cut {
            parts[id.index()] = BatchPart::Along(*axis);
        }
        let mut places = Vec::with_capacity(graph.nodes.len());
        for node in &graph.nodes {
            let read = |wanted: fn(&BatchPart) -> bool| {
                node.inputs.iter().any(|id| wanted(&parts[id.index()]))
            };
            let cut = read(|p| matches!(p, BatchPart::Along(_) | BatchPart::Packed(..)));
            let late = read(|p| matches!(p, BatchPart::Folded(_) | BatchPart::After));
            let packed = read(|p| matches!(p, BatchPart::Packed(..)));
            let place = match (cut, late) {
                _ if is_last(node) && !packed => NodePlacement::After,
                (true, true) => return None,
                (true, false) => {
                    NodePlacement::Piece(Box::new(on_pieces(graph, node, &parts, piece)?))
                }
                (false, true) => NodePlacement::After,
                (false, false) => NodePlacement::Once,
            };
            for (k, id) in node.outputs.iter().enumerate() {
                parts[id.index()] = match &place {
                    NodePlacement::Once => BatchPart::Whole,
                    NodePlacement::Piece(on) => on.makes[k].clone(),
                    NodePlacement::After => BatchPart::After,
                };
            }
            places.push(place);
        }
        let leaves =
            graph.outputs.iter().all(|id| !matches!(parts[id.index()], BatchPart::Packed(..)));
        let some = places.iter().any(|place| matches!(place, NodePlacement::Piece(_)));
        (leaves && some).then_some(BatchSplit { piece, parts, places })
    }
}

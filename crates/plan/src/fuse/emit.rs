//! Nodes made from fusion groups: `fused`, `fused_update` and `store`, in the places of the nodes that they grew from.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueInfo};
use tonnage_core::row::Mem;
use tonnage_core::shape::{Shape, TensorType};
use tonnage_core::tile::Close;
use tonnage_ops::shape::reshape::RESHAPE;
use tonnage_ops::tile::fused::FUSED;
use tonnage_ops::tile::fused_store::STORE;
use tonnage_ops::tile::fused_update::FUSED_UPDATE;

use super::constant;
use super::group::FusionGroup;
use crate::rewrite::checked;

/// The graph with fusion groups that have grown in the places of their nodes, and without those that fused.
pub(super) fn emit(
    mut graph: Graph,
    groups: Vec<Option<FusionGroup>>,
    alive: &[bool],
) -> Result<Graph> {
    let nodes = std::mem::take(&mut graph.nodes);
    let mut constants = vec![None; graph.value_count()];
    for node in &nodes {
        if let Some(out) = node.outputs.first() {
            constants[out.index()] = constant(node);
        }
    }
    for ((node, group), alive) in nodes.into_iter().zip(groups).zip(alive) {
        match group {
            _ if !alive => {}
            Some(group) if group.grown => {
                let (program, inputs) = group
                    .finish(&|id| constants.get(id.index()).copied().flatten(), &|id| {
                        graph.ty(id).shape.clone()
                    });
                let attrs = Attrs::Tile(Box::new(program));
                push(&mut graph, Node { attrs, inputs, aux: false, ..node }, &group);
            }
            _ => graph.nodes.push(node),
        }
    }
    checked(graph)
}

/// Adds a fused node; one whose reduction kept its axes is viewed in that shape.
fn push(graph: &mut Graph, mut node: Node, group: &FusionGroup) {
    node.op = match node.op.mem {
        Mem::Update(_) => &FUSED_UPDATE,
        Mem::File => &STORE,
        _ => &FUSED,
    };
    let mut view = None;
    if let Close::Reduce { axes, .. } = &group.close {
        let kept = group.domain.iter().enumerate().filter(|(i, _)| !axes.contains(i));
        let shape: Shape = kept.map(|(_, d)| d.clone()).collect();
        let info = graph.value(node.outputs[0]).clone();
        if shape != info.ty.shape {
            let ty = TensorType { dtype: info.ty.dtype, shape };
            let reduced = graph.add_value(ValueInfo { ty, ..info.clone() });
            view = Some((reduced, node.outputs[0], info.ty.shape));
            node.outputs[0] = reduced;
        }
    }
    let source = node.source;
    graph.nodes.push(node);
    if let Some((reduced, kept, shape)) = view {
        graph.nodes.push(Node {
            op: &RESHAPE,
            attrs: Attrs::Shape(shape),
            inputs: vec![reduced],
            outputs: vec![kept],
            aux: false,
            regions: Vec::new(),
            source,
        });
    }
}

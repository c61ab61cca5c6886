//! How many rounds a loop will take, where its condition says so: a counter that starts at a constant,
//! grows by a constant and is compared with a constant.

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::Lower;
use tonnage_core::tile::{Close, Prim, TileProgram};

/// The number of rounds, if it can be read off.
pub fn trips(graph: &Graph, node: &Node, carried: usize) -> Option<u64> {
    let (condition, body) = (node.regions.first()?, node.regions.get(1)?);
    let test = maker(condition, *condition.outputs.first()?)?;
    if prim(condition, test)? != Prim::Lt {
        return None;
    }
    let counter = condition.inputs.iter().position(|id| *id == test.inputs[0])?;
    if counter >= carried {
        return None;
    }
    let limit = constant(condition, test.inputs[1]).or_else(|| {
        // A limit that comes from outside.
        let at = condition.inputs.iter().position(|id| *id == test.inputs[1])?;
        (at >= carried).then(|| constant(graph, node.inputs[at]))?
    })?;
    let start = constant(graph, node.inputs[counter])?;
    let next = maker(body, body.outputs[counter])?;
    if prim(body, next)? != Prim::Add {
        return None;
    }
    let step = match next.inputs.iter().position(|id| *id == body.inputs[counter])? {
        0 => constant(body, next.inputs[1])?,
        _ => constant(body, next.inputs[0])?,
    };
    if step <= 0 {
        return None;
    }
    let rounds = ((limit - start).max(0) + step - 1) / step;
    Some(u64::try_from(rounds).unwrap_or(u64::MAX))
}

fn maker(graph: &Graph, id: ValueId) -> Option<&Node> {
    graph.nodes.iter().find(|n| n.outputs.contains(&id))
}

/// The one primitive that a node computes on its two inputs, if that is all it does.
fn prim(graph: &Graph, node: &Node) -> Option<Prim> {
    let Lower::Tile(tile) = node.op.lower else { return None };
    let program: TileProgram = graph.with_call(node, |call| tile(call, false)).ok()?;
    match (program.code.as_slice(), &program.close) {
        ([only], Close::Store) if only.args.as_slice() == [0, 1] => Some(only.prim),
        _ => None,
    }
}

fn constant(graph: &Graph, id: ValueId) -> Option<i128> {
    match &maker(graph, id)?.attrs {
        Attrs::Fill { value, dtype, .. } if dtype.is_integer() => Some(value.to_i128()),
        _ => None,
    }
}

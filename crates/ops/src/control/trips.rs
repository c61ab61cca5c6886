//! How many iterations a loop will take, where its condition says so: a counter that starts at a known number,
//! grows by a known number and is compared with a known number.
//!
//! Such a loop needs no condition at all, and its gradient a schedule that knows the end.

use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::Lower;
use tonnage_core::tile::{Close, Prim, TileProgram};

/// The number of iterations, if it can be read off. `known` gives the number that an input of the condition and
/// the body is before the loop, where it is one; the first `carried` inputs change.
pub fn trips(
    condition: &Graph,
    body: &Graph,
    carried: usize,
    known: &dyn Fn(usize) -> Option<i128>,
) -> Option<u64> {
    let test = maker(condition, *condition.outputs.first()?)?;
    let dtype = condition.ty(*test.inputs.first()?).dtype;
    let input = |id: ValueId| condition.inputs.iter().position(|i| *i == id);
    let fixed = |id: ValueId| {
        let outside = || input(id).filter(|at| *at >= carried).and_then(known);
        constant(condition, id).or_else(outside)
    };
    // `counter < limit`, however it is written.
    let (counter, limit, including) = match prim(condition, test)? {
        Prim::Lt => (test.inputs[0], test.inputs[1], false),
        Prim::Le => (test.inputs[0], test.inputs[1], true),
        Prim::Gt => (test.inputs[1], test.inputs[0], false),
        Prim::Ge => (test.inputs[1], test.inputs[0], true),
        _ => return None,
    };
    let counter = input(counter).filter(|at| *at < carried)?;
    let limit = fixed(limit)? + i128::from(including);
    let start = known(counter)?;
    let next = maker(body, *body.outputs.get(counter)?)?;
    if prim(body, next)? != Prim::Add {
        return None;
    }
    let grown = |id: ValueId| {
        let at = body.inputs.iter().position(|i| *i == id);
        constant(body, id).or_else(|| at.filter(|at| *at >= carried).and_then(known))
    };
    let step = match next.inputs.iter().position(|id| *id == body.inputs[counter])? {
        0 => grown(next.inputs[1])?,
        _ => grown(next.inputs[0])?,
    };
    // A counter that wraps around would never end.
    if step <= 0 || limit.checked_add(step)? > largest(dtype)? {
        return None;
    }
    let iterations = ((limit - start).max(0) + step - 1) / step;
    u64::try_from(iterations).ok()
}

fn largest(dtype: DType) -> Option<i128> {
    let bits = dtype.size() as u32 * 8;
    match dtype {
        DType::U8 | DType::U16 | DType::U32 | DType::U64 => Some((1i128 << bits) - 1),
        _ if dtype.is_integer() => Some((1i128 << (bits - 1)) - 1),
        _ => None,
    }
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

/// The integer that a value is everywhere, where it was made so.
pub fn constant(graph: &Graph, id: ValueId) -> Option<i128> {
    match &maker(graph, id)?.attrs {
        Attrs::Fill { value, dtype, .. } if dtype.is_integer() => Some(value.to_i128()),
        _ => None,
    }
}

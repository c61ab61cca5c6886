//! Forward mode of `while_loop`: one loop that carries values and tangents side by side, in the memory of
//! one round. The condition looks at the values alone, so there are as many rounds as without tangents.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{JvpCall, jvp_graph, reached};
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::{Call, Kind};

use super::while_loop;
use crate::emit;

pub(super) fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    let types: Vec<_> = call.inputs.iter().map(|v| v.ty().clone()).collect();
    let (attrs, regions) = (call.attrs, call.regions);
    let of_loop = Call { op: call.op.name, inputs: &types, attrs, regions };
    let (carried, _) = while_loop::carried(&of_loop)?;
    let (condition, body) = (&call.regions[0], &call.regions[1]);

    // A carried value moves if it starts to, or if a round makes it depend on one that moves.
    let mut active: Vec<bool> = call.tangents.iter().map(Option::is_some).collect();
    loop {
        let next = reached(body, &active);
        let newly = (0..carried).filter(|i| next[*i] && !active[*i]).collect::<Vec<_>>();
        if newly.is_empty() {
            break;
        }
        newly.into_iter().for_each(|i| active[i] = true);
    }
    let pairs = jvp_graph(body, &active, &active[..carried], call.ops)?;
    let mut test = (**condition).clone();
    for (ty, _) in types.iter().zip(&active).filter(|(_, active)| **active) {
        let unused = test.add_unused_input(ty.clone(), Kind::Activation);
        test.inputs.push(unused);
    }
    let regions = vec![
        Arc::new(reordered(test, carried, &active)),
        Arc::new(reordered(pairs, carried, &active)),
    ];

    let mut tangents = Vec::new();
    for (i, active) in active.iter().enumerate() {
        if *active {
            tangents.push(match &call.tangents[i] {
                Some(tangent) => tangent.clone(),
                None => emit::zeros(e, &types[i])?,
            });
        }
    }
    let all: Vec<Value> = call.inputs.iter().cloned().chain(tangents).collect();
    let moving = active[..carried].iter().filter(|a| **a).count();
    let mut attrs = call.attrs.clone();
    if let Attrs::Loop { carried, .. } = &mut attrs {
        *carried += moving;
    }
    let inputs = order(&all, carried, &active);
    let mut made = e.emit(call.op, inputs, attrs, regions, false)?;
    let mut ends = made.split_off(carried).into_iter();
    let ends = active[..carried].iter().map(|a| if *a { ends.next() } else { None }).collect();
    Ok((made, ends))
}

/// From values, then tangents, to what is carried of both, then what is only read of both.
fn order<T: Clone>(all: &[T], carried: usize, active: &[bool]) -> Vec<T> {
    let (values, tangents) = all.split_at(active.len());
    let moving = active[..carried].iter().filter(|a| **a).count();
    [&values[..carried], &tangents[..moving], &values[carried..], &tangents[moving..]].concat()
}

fn reordered(mut graph: Graph, carried: usize, active: &[bool]) -> Graph {
    graph.inputs = order::<ValueId>(&graph.inputs, carried, active);
    graph
}

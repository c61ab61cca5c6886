//! Forward mode of `while_loop`: one loop that carries values and tangents side by side, in the memory of
//! one iteration. The condition looks at the values alone, so there are as many iterations as without tangents.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{JvpCall, jvp_graph, reached};
use tonnage_core::graph::Graph;
use tonnage_core::looping::Loop;
use tonnage_core::{Call, Kind};

use super::while_loop;
use crate::{emit, rules};

pub(super) fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    let types: Vec<_> = call.inputs.iter().map(|v| v.ty().clone()).collect();
    let (attrs, regions) = (call.attrs, call.regions);
    let of_loop = Call { op: call.op.name, inputs: &types, attrs, regions };
    let spec = while_loop::spec(&of_loop)?;
    let Some((condition, body)) = spec.regions(call.regions) else {
        return Err(rules::infer::wrong_attrs(&of_loop));
    };

    // A carried value moves if it starts to, or if an iteration makes it depend on one that moves.
    let mut active: Vec<bool> = call.tangents.iter().map(Option::is_some).collect();
    loop {
        let next = reached(body, &active);
        let newly: Vec<usize> = (0..spec.carried).filter(|i| next[*i] && !active[*i]).collect();
        if newly.is_empty() {
            break;
        }
        newly.into_iter().for_each(|i| active[i] = true);
    }
    let rows = reached(body, &active).split_off(spec.carried);
    let made: Vec<bool> = active[..spec.carried].iter().chain(&rows).copied().collect();
    let groups = [spec.carried, spec.sliced, active.len() - spec.sliced_inputs().end];
    let mut both = jvp_graph(body, &active, &made, call.ops)?;
    both.inputs = side_by_side(&both.inputs, &groups, &active);
    both.outputs = side_by_side(&both.outputs, &[spec.carried, spec.stacked], &made);
    let mut regions = Vec::new();
    if let Some(condition) = condition {
        regions.push(Arc::new(with_tangents(condition, spec, &active)));
    }
    regions.push(Arc::new(both));

    let mut inputs: Vec<Value> = call.inputs.to_vec();
    for (i, _) in active.iter().enumerate().filter(|(_, active)| **active) {
        inputs.push(match &call.tangents[i] {
            Some(tangent) => tangent.clone(),
            None => emit::zeros(e, &types[i])?,
        });
    }
    let count = |flags: &[bool]| flags.iter().filter(|yes| **yes).count();
    let (carried, moving) = (spec.carried, count(&active[..spec.carried]));
    let pairs = Loop {
        carried: carried + moving,
        sliced: spec.sliced + count(&active[spec.sliced_inputs()]),
        stacked: spec.stacked + count(&rows),
        ..spec.clone()
    };
    let inputs = side_by_side(&inputs, &groups, &active);
    let attrs = Attrs::Loop(Box::new(pairs));
    let mut ends = e.emit(call.op, inputs, attrs, regions, false)?;
    // Carried values, their tangents, stacked rows, their tangents.
    let mut stacked = ends.split_off(carried + moving);
    let of_carried = ends.split_off(carried);
    let of_stacked = stacked.split_off(spec.stacked);
    ends.extend(stacked);
    let mut tangents = of_carried.into_iter().chain(of_stacked);
    Ok((ends, made.iter().map(|yes| if *yes { tangents.next() } else { None }).collect()))
}

/// From values, then tangents of those that move, to groups of values with their tangents behind each.
fn side_by_side<T: Clone>(all: &[T], groups: &[usize], moves: &[bool]) -> Vec<T> {
    let (mut values, mut tangents) = all.split_at(moves.len());
    let (mut flags, mut order) = (moves, Vec::new());
    for len in groups {
        let (here, later) = flags.split_at(*len);
        let (own, rest) = values.split_at(*len);
        let (moving, more) = tangents.split_at(here.iter().filter(|yes| **yes).count());
        order.extend_from_slice(own);
        order.extend_from_slice(moving);
        (flags, values, tangents) = (later, rest, more);
    }
    order
}

/// The condition, which takes tangents and looks at none. A loop with a condition has no sliced inputs.
fn with_tangents(condition: &Graph, spec: &Loop, active: &[bool]) -> Graph {
    let mut graph = condition.clone();
    let types = graph.input_types();
    for (ty, _) in types.into_iter().zip(active).filter(|(_, active)| **active) {
        let unused = graph.add_unused_input(ty, Kind::Activation);
        graph.inputs.push(unused);
    }
    let groups = [spec.carried, active.len() - spec.carried];
    graph.inputs = side_by_side(&graph.inputs, &groups, active);
    graph
}

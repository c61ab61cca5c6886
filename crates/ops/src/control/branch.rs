//! What `cond` and `switch` share: types, cost and derivatives of branches of which one runs.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall, JvpCall, VjpGraph, jvp_graph, reached, vjp_graph};
use tonnage_core::graph::Graph;
use tonnage_core::row::{Call, Cost, Types};
use tonnage_core::{OpDef, TensorType};

use crate::{emit, rules};

/// What all branches return. Each takes all inputs but the first, which chooses.
pub fn infer<'a>(call: &Call<'a>) -> Result<(&'a TensorType, Types)> {
    let Attrs::Branch { .. } = call.attrs else { return Err(rules::infer::wrong_attrs(call)) };
    let Some((choice, given)) = call.inputs.split_first() else {
        return Err(bad_argument(call.op, "no inputs", "give what chooses the branch first"));
    };
    for (i, branch) in call.regions.iter().enumerate() {
        super::check_inputs(call, &format!("branch {i}"), given, &branch.input_types())?;
    }
    let mut all = call.regions.iter().map(|branch| branch.output_types());
    let first = all.next().unwrap_or_default();
    for (branch, other) in all.enumerate() {
        let branch = branch + 1;
        if first.len() != other.len() {
            let what = format!(
                "branch 0 returns {} values, branch {branch} returns {}",
                first.len(),
                other.len()
            );
            return Err(bad_argument(call.op, what, "return the same values from all"));
        }
        for (i, (x, y)) in first.iter().zip(&other).enumerate() {
            if x != y {
                let what = format!("result {i} is {x} in branch 0 and {y} in branch {branch}");
                return Err(bad_argument(call.op, what, "give all the same dtype and shape"));
            }
        }
    }
    Ok((choice, first.into_iter().collect()))
}

/// That of the most expensive branch.
pub fn cost(call: &Call) -> Cost {
    let all = call.regions.iter().map(|g| super::region_cost(g));
    all.fold(Cost::default(), |a, b| a.with(b, u64::max))
}

/// Each branch's gradient recomputes what it needs of its branch: the inputs are all that is saved.
pub fn grad(
    op: &'static OpDef,
    e: &mut dyn Emit,
    call: &GradCall,
) -> Result<Vec<Option<Cotangent>>> {
    let seeded: Vec<bool> = call.grads.iter().map(Option::is_some).collect();
    let wanted = &call.needs[1..];
    let what = VjpGraph { seeded: &seeded, outputs: call.outputs, wanted, known: &[], sums: &[] };
    let regions = call
        .regions
        .iter()
        .map(|branch| {
            let mut back = vjp_graph(branch, what, call.ops)?;
            super::without_effects(&mut back)?;
            Ok(Arc::new(back))
        })
        .collect::<Result<Vec<Arc<Graph>>>>()?;
    let mut inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    inputs.extend(call.grads.iter().flatten().cloned());
    let mut made = e.emit(op, inputs, call.attrs.clone(), regions, false)?.into_iter();
    let mut grads = vec![None];
    for wanted in wanted {
        grads.push(if *wanted { made.next().and_then(emit::dense) } else { None });
    }
    Ok(grads)
}

/// Values and tangents of the branch that is taken, and of no other.
pub fn jvp(
    op: &'static OpDef,
    e: &mut dyn Emit,
    call: &JvpCall,
) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    let active: Vec<bool> = call.tangents[1..].iter().map(Option::is_some).collect();
    let moves: Vec<Vec<bool>> = call.regions.iter().map(|g| reached(g, &active)).collect();
    let outputs = moves.first().map_or(0, Vec::len);
    let wanted: Vec<bool> = (0..outputs).map(|i| moves.iter().any(|branch| branch[i])).collect();
    let regions = call
        .regions
        .iter()
        .map(|branch| Ok(Arc::new(jvp_graph(branch, &active, &wanted, call.ops)?)))
        .collect::<Result<Vec<Arc<Graph>>>>()?;
    let inputs = call.inputs.iter().chain(call.tangents.iter().flatten()).cloned().collect();
    let mut made = e.emit(op, inputs, call.attrs.clone(), regions, false)?;
    let mut tangents = made.split_off(wanted.len()).into_iter();
    let tangents = wanted.iter().map(|w| if *w { tangents.next() } else { None }).collect();
    Ok((made, tangents))
}

//! `cond`: one of two branches, as a boolean says. Only that one runs, and both share their memory.
//!
//! Inputs: the boolean, then whatever the branches use. Regions: what to do where it is true, and where
//! it is false; each takes all inputs but the boolean. Attributes: none, or which random numbers the
//! branches draw.

use std::sync::Arc;

use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall, JvpCall, VjpGraph, jvp_graph, reached, vjp_graph};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Region, Remat, Sample, Saves, Types, Values,
    no_scratch,
};
use tonnage_core::{Attrs, DType, Kind, OpDef, TensorType};

use crate::{emit, math, rules};

/// One of two branches, as a boolean says.
pub static COND: OpDef = OpDef {
    name: "cond",
    doc: "One of two branches, as a boolean says; only that one runs.",
    infer,
    axes: |call| {
        let ranks: Vec<usize> = infer(call)
            .map_or(Vec::new(), |types| types.iter().map(|ty| ty.shape.rank()).collect());
        rules::axes::mixed(&ranks)
    },
    mem: Mem::Regions,
    scratch: no_scratch,
    saves: Saves::one_of(&[&[Keep::Inputs.always()]]),
    remat: Remat::Costly,
    cost: |call| call.regions.iter().map(|g| super::region_cost(g)).fold(Cost::default(), most),
    grad: Grad::Rule(grad),
    jvp: Jvp::Together(jvp),
    fails: Fails::Never,
    lower: Lower::Region(Region::Branch),
    samples,
};

fn most(a: Cost, b: Cost) -> Cost {
    Cost { flops: a.flops.max(b.flops), bytes: a.bytes.max(b.bytes) }
}

fn infer(call: &Call) -> Result<Types> {
    if !matches!(call.attrs, Attrs::None | Attrs::Stream(_)) {
        return Err(rules::infer::wrong_attrs(call));
    }
    let [yes, no] = call.regions else {
        return Err(bad_argument(call.op, "not two branches", "give one for true, one for false"));
    };
    let Some((choice, given)) = call.inputs.split_first() else {
        return Err(bad_argument(call.op, "no condition", "give a boolean scalar first"));
    };
    if choice.dtype != DType::Bool || choice.shape.rank() != 0 {
        let what = format!("the condition is {choice}");
        return Err(bad_argument(call.op, what, "use one boolean: compare, then reduce"));
    }
    super::check_inputs(call, "first branch", given, &yes.input_types())?;
    super::check_inputs(call, "second branch", given, &no.input_types())?;
    let (a, b) = (yes.output_types(), no.output_types());
    if a.len() != b.len() {
        let what = format!("one branch returns {} values, the other {}", a.len(), b.len());
        return Err(bad_argument(call.op, what, "return the same values from both"));
    }
    for (i, (x, y)) in a.iter().zip(&b).enumerate() {
        if x != y {
            let what = format!("result {i} is {x} in one branch and {y} in the other");
            return Err(bad_argument(call.op, what, "give both the same dtype and shape"));
        }
    }
    Ok(a.into_iter().collect())
}

// Each branch's gradient computes again what it needs of its branch: the inputs are all that is kept.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let seeded: Vec<bool> = call.grads.iter().map(Option::is_some).collect();
    let wanted = &call.needs[1..];
    let what = VjpGraph { seeded: &seeded, wanted, outputs_known: false };
    let regions = call
        .regions
        .iter()
        .map(|branch| Ok(Arc::new(vjp_graph(branch, what, call.ops)?)))
        .collect::<Result<Vec<Arc<Graph>>>>()?;
    let mut inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    inputs.extend(call.grads.iter().flatten().cloned());
    // The same attributes: a branch that is computed again draws the same random numbers.
    let mut made = e.emit(&COND, inputs, call.attrs.clone(), regions, false)?.into_iter();
    let mut grads = vec![None];
    for wanted in wanted {
        grads.push(if *wanted { made.next().and_then(emit::dense) } else { None });
    }
    Ok(grads)
}

// Values and tangents of the branch that is taken, and of no other.
fn jvp(e: &mut dyn Emit, call: &JvpCall) -> Result<(Vec<Value>, Vec<Option<Value>>)> {
    let active: Vec<bool> = call.tangents[1..].iter().map(Option::is_some).collect();
    let mut moves = Vec::new();
    for branch in call.regions {
        moves.push(reached(branch, &active));
    }
    let wanted: Vec<bool> =
        (0..moves[0].len()).map(|i| moves.iter().any(|branch| branch[i])).collect();
    let regions = call
        .regions
        .iter()
        .map(|branch| Ok(Arc::new(jvp_graph(branch, &active, &wanted, call.ops)?)))
        .collect::<Result<Vec<Arc<Graph>>>>()?;
    let inputs = call.inputs.iter().chain(call.tangents.iter().flatten()).cloned().collect();
    let mut made = e.emit(&COND, inputs, call.attrs.clone(), regions, false)?;
    let mut tangents = made.split_off(wanted.len()).into_iter();
    let tangents = wanted.iter().map(|w| if *w { tangents.next() } else { None }).collect();
    Ok((made, tangents))
}

fn samples() -> Vec<Sample> {
    let branch = |op: &'static OpDef| -> Result<Arc<Graph>> {
        let mut builder = Builder::new();
        let x = builder.input(TensorType::new(DType::F32, [2, 3]), Kind::Activation, None);
        let y = builder.apply(op, vec![x], Attrs::None)?;
        Ok(Arc::new(builder.finish(&[y])?))
    };
    let (Ok(yes), Ok(no)) = (branch(&math::tanh::TANH), branch(&math::exp::EXP)) else {
        return Vec::new();
    };
    let types = [TensorType::new(DType::Bool, ()), TensorType::new(DType::F32, [2, 3])];
    let mut sample = Sample::of(&types, Attrs::None).with(0, Values::Below(2));
    sample.regions = vec![yes, no];
    vec![sample]
}

//! `while_loop`: a body again and again, as long as a condition holds.
//!
//! Inputs: the carried values, then whatever condition and body only read. Regions: the condition
//! (takes all, returns a boolean) and the body (takes all, returns the carried values). The body is
//! planned once and carried values are updated in place, so memory does not depend on the number of
//! rounds.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::graph::{Builder, Graph};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Keep, Lower, Mem, Region, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::{DType, Kind, OpDef, Scalar, TensorType};

use super::while_grad::{self, WHILE_GRAD};
use crate::{emit, math, rules};

/// A body again and again, as long as a condition holds.
pub static WHILE_LOOP: OpDef = OpDef {
    name: "while_loop",
    doc: "A body again and again, as long as a condition holds; carried values are updated in place.",
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
    // Of one round: how many there will be is not known from types.
    cost: |call| call.regions.get(1).map_or(Cost::default(), |body| super::region_cost(body)),
    grad: Grad::Rule(grad),
    jvp: Jvp::Together(super::while_jvp::jvp),
    fails: Fails::Never,
    lower: Lower::Region(Region::Loop),
    samples,
};

/// How many values are carried, and the most rounds there may be.
pub(super) fn carried(call: &Call) -> Result<(usize, Option<u64>)> {
    match call.attrs {
        Attrs::Loop { carried, most } => Ok((*carried, *most)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let (carried, _) = carried(call)?;
    let [condition, body] = call.regions else {
        return Err(bad_argument(call.op, "not two regions", "give a condition and a body"));
    };
    super::check_inputs(call, "condition", call.inputs, &condition.input_types())?;
    super::check_inputs(call, "body", call.inputs, &body.input_types())?;
    match condition.output_types().as_slice() {
        [only] if only.dtype == DType::Bool && only.shape.rank() == 0 => {}
        other => {
            let what = format!("the condition returns {other:?}");
            return Err(bad_argument(call.op, what, "return one boolean: compare, then reduce"));
        }
    }
    let made = body.output_types();
    if carried > call.inputs.len() {
        let what = format!("{carried} carried values among {} inputs", call.inputs.len());
        return Err(bad_argument(call.op, what, "give every carried value"));
    }
    if made.len() != carried {
        let what = format!("the body returns {} values for {carried} carried", made.len());
        return Err(bad_argument(call.op, what, "return every carried value"));
    }
    for (i, (before, after)) in call.inputs[..carried].iter().zip(&made).enumerate() {
        if before != after {
            let what = format!("loop variable {i} enters as {before} and leaves as {after}");
            let help = "keep its dtype and shape the same in every round";
            return Err(bad_argument(call.op, what, help));
        }
    }
    Ok(made.into_iter().collect())
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (carried, most) = carried(&call.call())?;
    let active: Vec<bool> = call.inputs[..carried].iter().map(|ty| ty.dtype.is_float()).collect();
    let wanted: Vec<bool> = call.needs[carried..].to_vec();
    let step = while_grad::step_graph(&call.regions[1], carried, &active, &wanted, call.ops)?;
    let mut inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    for (i, active) in active.iter().enumerate() {
        if *active {
            inputs.push(match &call.grads[i] {
                Some(grad) => grad.clone(),
                None => emit::zeros(e, &call.outputs[i])?,
            });
        }
    }
    let regions = vec![call.regions[0].clone(), call.regions[1].clone(), Arc::new(step)];
    let attrs = Attrs::LoopGrad {
        carried,
        slots: None,
        active: active.clone(),
        wanted: wanted.clone(),
        most,
    };
    let mut made = e.emit(&WHILE_GRAD, inputs, attrs, regions, false)?.into_iter();
    let asked = active.iter().chain(&wanted);
    Ok(asked.map(|yes| if *yes { made.next().and_then(emit::dense) } else { None }).collect())
}

/// A loop that multiplies by a matrix-like factor three times.
pub(super) fn sample_regions() -> Result<(Vec<TensorType>, [Arc<Graph>; 2])> {
    let (count, state) = (TensorType::new(DType::I32, ()), TensorType::new(DType::F32, [2, 3]));
    let types = vec![count.clone(), state.clone(), state.clone()];
    let open = |builder: &mut Builder| -> Vec<_> {
        types.iter().map(|ty| builder.input(ty.clone(), Kind::Activation, None)).collect()
    };
    let mut builder = Builder::new();
    let inputs = open(&mut builder);
    let three = emit::number(&mut builder, 3, DType::I32)?;
    let less = emit::binary(&mut builder, &math::less::LESS, inputs[0].clone(), three)?;
    let condition = Arc::new(builder.finish(&[less])?);
    let mut builder = Builder::new();
    let inputs = open(&mut builder);
    let one = emit::number(&mut builder, Scalar::Int(1), DType::I32)?;
    let next = emit::add(&mut builder, inputs[0].clone(), one)?;
    let product = emit::mul(&mut builder, inputs[1].clone(), inputs[2].clone())?;
    let state = emit::unary(&mut builder, &math::tanh::TANH, product)?;
    let body = Arc::new(builder.finish(&[next, state])?);
    Ok((types, [condition, body]))
}

fn samples() -> Vec<Sample> {
    let Ok((types, regions)) = sample_regions() else { return Vec::new() };
    let attrs = Attrs::Loop { carried: 2, most: None };
    let mut sample = Sample::of(&types, attrs).with(0, tonnage_core::row::Values::Below(1));
    sample.regions = regions.to_vec();
    vec![sample]
}

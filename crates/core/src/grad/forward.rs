//! Forward mode: tangents go along with values, an op at a time, and nothing is saved.
//!
//! What an op does to tangents is in its row: the op itself where it is linear, its backward rule where
//! that is symmetric, a rule of its own, or the backward rule transposed: that rule is linear in the
//! gradient that it is given, so its own gradient with respect to that is the forward map.
//!
//! Decision: `docs/decisions/forward-mode.md`.

use smallvec::SmallVec;

use super::{GradCall, GradOps, JvpCall, VjpGraph, vjp_graph};
use crate::attrs::Attrs;
use crate::emit::{Emit, Value};
use crate::error::{ErrorKind, Result};
use crate::graph::{Builder, replay};
use crate::kind::Kind;
use crate::row::{Grad, Jvp, OpDef, Save, Saved, saved_values};
use crate::scalar::Scalar;
use crate::shape::TensorType;

/// An op's results, and their tangents; `None` is zero.
#[derive(Debug, Clone)]
pub struct Dual {
    /// The results, with the aux ones at the end where they were asked for.
    pub outputs: Vec<Value>,
    /// Tangents of the results, aux ones not included.
    pub tangents: Vec<Option<Value>>,
}

/// Applies an op to values that have tangents; `call.outputs` is not read. With `aux`, the row's extra
/// outputs follow the others.
pub fn push_forward(emit: &mut dyn Emit, call: &JvpCall, aux: bool) -> Result<Dual> {
    let op = call.op;
    let (attrs, regions) = (call.attrs.clone(), call.regions.to_vec());
    if let (Jvp::Together(rule), false) = (op.jvp, aux) {
        let (outputs, tangents) = rule(emit, call)?;
        return Ok(Dual { outputs, tangents });
    }
    let alternative = alternative(op);
    let needs: SmallVec<[bool; 4]> = call.tangents.iter().map(Option::is_some).collect();
    let reads = with_types(call, |c| saved_values(op, alternative, &needs, c, false))?;
    let needs_aux = matches!(op.jvp, Jvp::FromGrad | Jvp::Symmetric)
        && reads.iter().any(|k| matches!(k, Save::Aux(_)));
    let mut outputs = emit.emit(op, call.inputs.to_vec(), attrs, regions, aux || needs_aux)?;
    let extra = match aux || needs_aux {
        true => with_types(call, |c| (op.saves.aux)(c))?.len(),
        false => 0,
    };
    let plain = outputs.len() - extra;
    let is_float: SmallVec<[bool; 2]> =
        outputs[..plain].iter().map(|v| v.ty().dtype.is_float()).collect();
    let tangents = match is_float.contains(&true) {
        false => vec![None; plain],
        true => {
            let call = JvpCall { outputs: &outputs, ..*call };
            let mut made = match op.jvp {
                Jvp::Rule(rule) => rule(emit, &call)?,
                Jvp::Linear(groups) => linear(emit, &call, groups)?,
                Jvp::Symmetric => symmetric(emit, &call, plain, alternative)?,
                Jvp::FromGrad | Jvp::Together(_) => transposed(emit, &call, plain, alternative)?,
                Jvp::Stop(why) => {
                    return Err(ErrorKind::NoGradient { op: op.name, why: why.into() }.into());
                }
            };
            made.iter_mut().zip(&is_float).filter(|(_, f)| !**f).for_each(|(t, _)| *t = None);
            check(&call, plain, &made)?;
            made
        }
    };
    if !aux {
        outputs.truncate(plain);
    }
    Ok(Dual { outputs, tangents })
}

fn with_types<R>(call: &JvpCall, f: impl FnOnce(&crate::row::Call) -> R) -> R {
    let types: SmallVec<[TensorType; 4]> = call.inputs.iter().map(|v| v.ty().clone()).collect();
    let (op, attrs, regions) = (call.op.name, call.attrs, call.regions);
    f(&crate::row::Call { op, inputs: &types, attrs, regions })
}

/// A tangent has the type of what it is the tangent of.
fn check(call: &JvpCall, plain: usize, tangents: &[Option<Value>]) -> Result<()> {
    let name = call.op.name;
    let bad = |what: String| -> crate::Error { ErrorKind::BadGraph { what }.into() };
    if tangents.len() != plain {
        let count = tangents.len();
        return Err(bad(format!("{name} has {plain} outputs, its forward rule {count} tangents")));
    }
    for (tangent, output) in tangents.iter().zip(call.outputs) {
        if let Some(tangent) = tangent
            && tangent.ty().shape.rank() != output.ty().shape.rank()
        {
            let (got, of) = (tangent.ty(), output.ty());
            return Err(bad(format!("the tangent of {name}'s {of} is {got}")));
        }
    }
    Ok(())
}

pub(super) fn zeros(emit: &mut dyn Emit, ty: &TensorType, ops: &GradOps) -> Result<Value> {
    let attrs = Attrs::Fill { value: Scalar::Int(0), dtype: ty.dtype, shape: ty.shape.clone() };
    emit.apply(ops.fill, Vec::new(), attrs)
}

fn linear(emit: &mut dyn Emit, call: &JvpCall, groups: &[&[usize]]) -> Result<Vec<Option<Value>>> {
    let mut sums: Vec<Option<Value>> = Vec::new();
    for group in groups {
        if !group.iter().any(|i| call.tangents.get(*i).is_some_and(Option::is_some)) {
            continue;
        }
        let mut inputs = Vec::new();
        for (i, (value, tangent)) in call.inputs.iter().zip(call.tangents).enumerate() {
            inputs.push(match (group.contains(&i), tangent) {
                (false, _) => value.clone(),
                (true, Some(tangent)) => tangent.clone(),
                (true, None) => zeros(emit, value.ty(), call.ops)?,
            });
        }
        let made = emit.emit(call.op, inputs, call.attrs.clone(), call.regions.to_vec(), false)?;
        sums.resize(made.len(), None);
        for (sum, part) in sums.iter_mut().zip(made) {
            *sum = Some(match sum.take() {
                Some(before) => emit.apply(call.ops.add, vec![before, part], Attrs::None)?,
                None => part,
            });
        }
    }
    if sums.is_empty() {
        let what = "an input that its row does not call linear has a tangent".to_string();
        return Err(ErrorKind::NotDeclared { op: call.op.name, what }.into());
    }
    Ok(sums)
}

/// What a backward rule reads: the first alternative that takes no aux outputs, if there is one.
fn alternative(op: &OpDef) -> &'static [Saved] {
    let is_aux = |saved: &Saved| matches!(saved.save, Save::Aux(_) | Save::Auxes);
    let plain = |set: &&&'static [Saved]| !set.iter().any(is_aux);
    let all = op.saves.alternatives;
    all.iter().find(plain).or(all.first()).copied().unwrap_or(&[])
}

fn value_of(call: &JvpCall, plain: usize, save: Save) -> Option<Value> {
    match save {
        Save::Input(i) => call.inputs.get(i).cloned(),
        Save::Output(i) => call.outputs.get(i).cloned(),
        Save::Aux(i) => call.outputs.get(plain + i).cloned(),
        Save::Inputs | Save::Ends | Save::Auxes | Save::Declared => None,
    }
}

/// The backward rule of a call, emitted with these values for what it saves.
fn apply_rule(
    emit: &mut dyn Emit,
    call: &JvpCall,
    plain: usize,
    needs: &[bool],
    grads: &[Option<Value>],
    saved: &[(Save, Value)],
) -> Result<Vec<Option<Value>>> {
    let rule = match call.op.grad {
        Grad::Rule(rule) => rule,
        Grad::Stop(why) => {
            return Err(ErrorKind::NoGradient { op: call.op.name, why: why.into() }.into());
        }
    };
    let types = |values: &[Value]| -> SmallVec<[TensorType; 4]> {
        values.iter().map(|v| v.ty().clone()).collect()
    };
    let (inputs, outputs) = (types(call.inputs), types(&call.outputs[..plain]));
    let made = rule(
        emit,
        &GradCall {
            op: call.op,
            inputs: &inputs,
            outputs: &outputs,
            attrs: call.attrs,
            regions: call.regions,
            grads,
            needs,
            ops: call.ops,
            saved,
        },
    )?;
    made.into_iter()
        .zip(needs)
        .map(|(g, need)| g.filter(|_| *need).map(|g| g.dense(emit, call.ops)).transpose())
        .collect()
}

fn saves(
    call: &JvpCall,
    plain: usize,
    needs: &[bool],
    set: &[Saved],
) -> Result<Vec<(Save, Value)>> {
    let all = with_types(call, |c| saved_values(call.op, set, needs, c, true))?.into_iter();
    Ok(all.filter_map(|save| Some((save, value_of(call, plain, save)?))).collect())
}

fn symmetric(
    emit: &mut dyn Emit,
    call: &JvpCall,
    plain: usize,
    set: &[Saved],
) -> Result<Vec<Option<Value>>> {
    let saved = saves(call, plain, &[true], set)?;
    apply_rule(emit, call, plain, &[true], call.tangents, &saved)
}

/// The backward rule as a graph of the gradient that it is given; that graph's gradient with respect to
/// it, seeded with the tangents.
fn transposed(
    emit: &mut dyn Emit,
    call: &JvpCall,
    plain: usize,
    set: &[Saved],
) -> Result<Vec<Option<Value>>> {
    let needs: SmallVec<[bool; 4]> = call.tangents.iter().map(Option::is_some).collect();
    let saved = saves(call, plain, &needs, set)?;
    let mut builder = Builder::new();
    let inside: Vec<(Save, Value)> = saved
        .iter()
        .map(|(save, v)| (*save, builder.input(v.ty().clone(), Kind::Activation, None)))
        .collect();
    let given: Vec<Option<Value>> = call.outputs[..plain]
        .iter()
        .map(|v| {
            let ty = v.ty();
            ty.dtype.is_float().then(|| builder.input(ty.clone(), Kind::Gradient, None))
        })
        .collect();
    let made = apply_rule(&mut builder, call, plain, &needs, &given, &inside)?;
    let mut seeds = Vec::new();
    let mut results = Vec::new();
    for (grad, tangent) in made.into_iter().zip(call.tangents) {
        if let (Some(grad), Some(tangent)) = (grad, tangent) {
            results.push(grad);
            seeds.push(tangent.clone());
        }
    }
    if results.is_empty() {
        return Ok(vec![None; plain]);
    }
    let back = builder.finish(&results)?;
    let seeded = vec![true; results.len()];
    let wanted: Vec<bool> = (0..back.inputs.len()).map(|i| i >= saved.len()).collect();
    let what = VjpGraph { seeded: &seeded, outputs: &[], wanted: &wanted, known: &[], sums: &[] };
    let forth = vjp_graph(&back, what, call.ops)?;
    let mut inputs: Vec<Value> = saved.into_iter().map(|(_, value)| value).collect();
    for value in call.outputs[..plain].iter().filter(|v| v.ty().dtype.is_float()) {
        // A linear rule's gradient does not read it: the graph has no use for this input.
        inputs.push(zeros(emit, value.ty(), call.ops)?);
    }
    inputs.extend(seeds);
    let mut made = replay(&forth, inputs, emit)?.into_iter();
    Ok(given.into_iter().map(|given| given.and_then(|_| made.next())).collect())
}

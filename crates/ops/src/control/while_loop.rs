//! `while_loop`: a body repeated as long as a condition holds, or a number of times.
//!
//! Inputs: the carried values, those that each iteration sees a row of, and whatever condition and body only read.
//! Regions: the condition, unless the number of iterations is known (takes what is carried and what is only read,
//! returns a boolean), and the body (takes all, returns the carried values and a row of each stacked
//! output). The body is planned once, carried values are updated in place and rows are written where they will
//! stay, so memory does not depend on the number of iterations, but for the rows themselves.
//!
//! A carried value may change the lengths that the body's input leaves to the data, up to their bound.
//!
//! Its extra outputs are checkpoints: carried states of some iterations, which its gradient starts from. A loop that spills
//! has the number of its iterations alone, and the states of all of them in a file.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::dim::{Dim, Symbol};
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::graph::Graph;
use tonnage_core::looping::{Iterations, Loop, LoopGrad, row_of, stacked};
use tonnage_core::row::{
    Call, Cost, Fails, Grad, Jvp, Lower, Mem, Region, Remat, Save, Saves, Types,
};
use tonnage_core::{DType, OpDef, TensorType};

use super::while_grad::{self, WHILE_GRAD};
use super::{flow, samples};
use crate::{OpId, emit, rules};

/// A body repeated.
pub static WHILE_LOOP: OpDef = OpDef {
    id: OpId::WhileLoop as u16,
    name: "while_loop",
    doc: "A body repeated as long as a condition holds, or a number of times; carried values are updated in place.",
    infer,
    axes: |call| super::mixed_axes(infer, call),
    mem: Mem::Regions,
    saves: Saves {
        alternatives: &[&[Save::Inputs.always(), Save::Ends.always(), Save::Auxes.always()]],
        aux,
    },
    remat: Remat::Costly,
    cost,
    grad: Grad::Rule(grad),
    jvp: Jvp::Together(super::while_jvp::jvp),
    fails: Fails::Never,
    lower: Lower::Region(Region::Loop),
    samples: samples::loops,
};

/// What the loop is told.
pub(super) fn spec<'a>(call: &Call<'a>) -> Result<&'a Loop> {
    match call.attrs {
        Attrs::Loop(spec) => Ok(spec),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let spec = spec(call)?;
    let expected = if spec.has_condition() { 2 } else { 1 };
    let (condition, body) = match spec.regions(call.regions) {
        Some(regions) if call.regions.len() == expected => regions,
        _ => {
            let what = format!("{} regions", call.regions.len());
            return Err(bad_argument(
                call.op,
                what,
                "give a condition, unless iterations are known, and a body",
            ));
        }
    };
    let taken = taken(call, spec, body)?;
    if let Some(condition) = condition {
        check_condition(call, spec, condition, &taken)?;
    }
    let made = body.output_types();
    if made.len() != spec.carried.saturating_add(spec.stacked) {
        let what = format!(
            "the body returns {} values for {} carried and {} stacked",
            made.len(),
            spec.carried,
            spec.stacked
        );
        return Err(bad_argument(call.op, what, "return every carried value, then every row"));
    }
    let mut types = Types::new();
    for (i, start) in call.inputs[..spec.carried].iter().enumerate() {
        let (before, after) = (&taken[i], &made[i]);
        if !stays(start, before, after) {
            let what = format!("loop variable {i} enters as {before} and leaves as {after}");
            let help = "keep its dtype and shape the same in every iteration";
            return Err(bad_argument(call.op, what, help));
        }
        types.push(if before == start { before.clone() } else { renewed(before) });
    }
    if let Iterations::Times(count) = &spec.iterations {
        types.extend(made[spec.carried..].iter().map(|row| stacked(row, count.clone())));
    }
    Ok(types)
}

/// What the body takes: it may leave lengths of carried values to the data.
pub(super) fn taken(call: &Call, spec: &Loop, body: &Graph) -> Result<Vec<TensorType>> {
    let first = spec.sliced_inputs();
    if first.end > call.inputs.len() {
        let what = format!(
            "{} carried and {} sliced values among {} inputs",
            spec.carried,
            spec.sliced,
            call.inputs.len()
        );
        return Err(bad_argument(call.op, what, "give every one of them"));
    }
    if spec.has_condition() && (spec.sliced > 0 || spec.stacked > 0) {
        let what = "rows of a loop whose number of iterations only the data know";
        return Err(bad_argument(call.op, what, "say how many iterations there are"));
    }
    let mut expected = call.inputs.to_vec();
    if let Iterations::Times(count) = &spec.iterations {
        for ty in &mut expected[first] {
            let row = row_of(ty).filter(|_| ty.shape.first() == Some(count));
            *ty = row.ok_or_else(|| {
                let what = format!("{ty} has no {count} rows along its first axis");
                bad_argument(call.op, what, "give every sliced input one row an iteration")
            })?;
        }
    }
    let got = body.input_types();
    for (start, inner) in expected.iter_mut().zip(&got).take(spec.carried) {
        if same_rank(start, inner) && start.shape.iter().zip(inner.shape.iter()).all(within) {
            *start = inner.clone();
        }
    }
    super::check_inputs(call, "body", &expected, &got)?;
    Ok(expected)
}

fn check_condition(
    call: &Call,
    spec: &Loop,
    condition: &Graph,
    taken: &[TensorType],
) -> Result<()> {
    let got = condition.input_types();
    // Each region names the lengths that the data decide anew.
    let alike = |(a, b): (&TensorType, &TensorType)| {
        let dims = |(x, y): (&Dim, &Dim)| x == y || (x.depends_on_data() && x.most() == y.most());
        same_rank(a, b) && a.shape.iter().zip(b.shape.iter()).all(dims)
    };
    let split = spec.carried.min(got.len());
    if !taken.iter().zip(&got[..split]).all(alike) {
        super::check_inputs(call, "condition", taken, &got)?;
    }
    super::check_inputs(call, "condition", &taken[spec.carried..], &got[split..])?;
    match condition.output_types().as_slice() {
        [only] if only.dtype == DType::Bool && only.shape.rank() == 0 => Ok(()),
        other => {
            let what = format!("the condition returns {other:?}");
            Err(bad_argument(call.op, what, "return one boolean: compare, then reduce"))
        }
    }
}

/// Whether a loop variable that starts as `start`, and that the body takes as `before`, may be `after` it:
/// only lengths that the body, and not the start, leaves to the data may change.
pub fn stays(start: &TensorType, before: &TensorType, after: &TensorType) -> bool {
    let dims = || before.shape.iter().zip(after.shape.iter()).zip(start.shape.iter());
    same_rank(before, after)
        && same_rank(before, start)
        && dims().all(|((b, a), s)| b == a || (b != s && b.depends_on_data()))
}

fn same_rank(a: &TensorType, b: &TensorType) -> bool {
    a.dtype == b.dtype && a.shape.rank() == b.shape.rank()
}

fn within((start, bound): (&Dim, &Dim)) -> bool {
    let fits = || bound.most().is_some_and(|most| start.most().is_some_and(|n| n <= most));
    start == bound || (bound.depends_on_data() && fits())
}

/// A type whose lengths that the data decide are named anew.
fn renewed(ty: &TensorType) -> TensorType {
    let renew = |s: &Symbol| Some(Dim::symbol(Symbol::bounded(s.name(), s.bound()?.clone())));
    ty.substitute(&renew)
}

/// Whether the data decide how large a carried value is: such a loop stores no checkpoints.
fn changes_size(spec: &Loop, body: &Graph) -> bool {
    body.input_types().iter().take(spec.carried).any(|ty| ty.shape.iter().any(Dim::depends_on_data))
}

/// Checkpoints of every carried value; behind them the number of iterations, where only the data know it. States that wait
/// in a file are no values: the number of iterations stands for them.
fn aux(call: &Call) -> Result<Types> {
    let spec = spec(call)?;
    let Some((_, body)) = spec.regions(call.regions) else { return Ok(Types::new()) };
    if changes_size(spec, body) {
        return Ok(Types::new());
    }
    let checkpoints = if spec.spills { 0 } else { spec.carried };
    let mut types: Types =
        call.inputs.iter().take(checkpoints).map(|ty| spec.checkpoint(ty)).collect();
    if spec.has_condition() || spec.spills {
        types.push(TensorType::new(DType::I64, ()));
    }
    Ok(types)
}

fn cost(call: &Call) -> Cost {
    let Ok(spec) = spec(call) else { return Cost::default() };
    spec.regions(call.regions)
        .map_or(Cost::default(), |(_, body)| super::all_iterations(spec, super::region_cost(body)))
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let types = call.call();
    let spec = spec(&types)?;
    let Some((condition, body)) = spec.regions(call.regions) else {
        return Err(rules::infer::wrong_attrs(&types));
    };
    if changes_size(spec, body) {
        let why = "the data decide how large its loop variables are; pad them to the most".into();
        return Err(ErrorKind::NoGradient { op: call.op.name, why }.into());
    }
    let seeded: Vec<bool> = call.grads.iter().map(Option::is_some).collect();
    let flow = flow::of(body, spec, call.needs, &seeded);
    let (sliced, read) = flow.fixed.split_at(spec.sliced);
    let step = while_grad::step_graph(body, spec, &flow, call.ops)?;
    // The loop's own inputs, what it ended with, and its checkpoints.
    let mut inputs = (0..call.inputs.len()).map(|i| call.input(i)).collect::<Result<Vec<_>>>()?;
    for j in 0..spec.carried {
        inputs.push(call.output(j)?);
    }
    for k in 0..aux(&types)?.len() {
        inputs.push(call.aux(k)?);
    }
    // What goes backwards: rows of the stacked outputs' gradients, gradients of carried values, sums.
    let of_stacked = call.grads[spec.carried..].iter().zip(&flow.stacked);
    inputs.extend(of_stacked.filter(|(_, yes)| **yes).filter_map(|(grad, _)| grad.clone()));
    for (j, _) in flow.carried.iter().enumerate().filter(|(_, yes)| **yes) {
        inputs.push(match &call.grads[j] {
            Some(grad) => grad.clone(),
            None => emit::zeros(e, &call.outputs[j])?,
        });
    }
    let first_read = spec.sliced_inputs().end;
    for (i, _) in read.iter().enumerate().filter(|(_, yes)| **yes) {
        inputs.push(emit::zeros(e, &call.inputs[first_read + i])?);
    }
    let count = |flags: &[bool]| flags.iter().filter(|yes| **yes).count();
    let attrs = LoopGrad {
        of: Loop { stacked: 0, updates: Vec::new(), ..spec.clone() },
        handed: true,
        seeds: count(&flow.stacked),
        back: count(&flow.carried) + count(read),
        stacked: count(sliced),
    };
    let recomputed = Arc::new(while_grad::carried_only(body, spec)?);
    let regions: Vec<Arc<Graph>> =
        condition.cloned().into_iter().chain([recomputed, Arc::new(step)]).collect();
    let attrs = Attrs::LoopGrad(Box::new(attrs));
    let made = e.emit(&WHILE_GRAD, inputs, attrs, regions, false)?;
    // Carried, sums, rows of sliced; the answer's order is that of the inputs.
    let (back, rows) = made.split_at(count(&flow.carried) + count(read));
    let (carried, sums) = back.split_at(count(&flow.carried));
    let (mut carried, mut rows, mut sums) =
        (carried.iter().cloned(), rows.iter().cloned(), sums.iter().cloned());
    let mut grads = Vec::new();
    grads.extend(flow.carried.iter().map(|yes| yes.then(|| carried.next()).flatten()));
    grads.extend(sliced.iter().map(|yes| yes.then(|| rows.next()).flatten()));
    grads.extend(read.iter().map(|yes| yes.then(|| sums.next()).flatten()));
    Ok(grads.into_iter().map(|grad| grad.and_then(emit::dense)).collect())
}

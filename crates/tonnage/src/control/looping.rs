//! Every loop: a body is traced, and the op that runs it is applied.

use smallvec::SmallVec;
use tonnage_core::attrs::Attrs;
use tonnage_core::looping::{Iterations, Loop as Spec, row_of};
use tonnage_core::{Dim, Kind, Mark, Result, Source, TensorType};
use tonnage_ops::control::{trips, while_loop::WHILE_LOOP};

use super::check::{body_saves, condition_only_looks, rows_have_one_size};
use super::eager::{self, RegionInput};
use super::options::Loop;
use super::region::{
    RegionCaptures, Takes, add_written, arranged, begin, key, leaves, with_leaves,
};
use crate::tensor::{Tensor, TensorRepr};
use crate::tree::Tree;

/// When a loop ends.
pub(super) enum Until<C> {
    /// When the condition does not hold.
    Condition(C),
    /// After this number of iterations.
    Iterations(Dim),
}

/// Runs a loop: over loop variables, rows of `rows`, and a body that returns loop variables and a row of
/// each stacked result.
pub(super) fn run<S: Tree, X: Tree, Y: Tree>(
    op: &'static str,
    options: &Loop,
    start: S,
    rows: X,
    until: Until<impl FnOnce(S) -> Result<Tensor>>,
    body: impl FnOnce(S, X) -> Result<(S, Y)>,
    source: Source,
) -> Result<(S, Y)> {
    let (carried, sliced) = (leaves(&start), leaves(&rows));
    let first: Vec<TensorType> = carried.iter().map(Tensor::ty).collect();
    let mut types = options.taken(op, &first)?;
    let test = match until {
        Until::Condition(condition) => {
            let given = |symbols: Vec<Tensor>| with_leaves(start.share(), &mut symbols.into_iter());
            let part = begin(&types, source, |symbols| condition(given(symbols)?))?;
            condition_only_looks(op, &part)?;
            Ok(part)
        }
        Until::Iterations(iterations) => Err(iterations),
    };
    let variables = types.len();
    types.extend(sliced.iter().filter_map(|t| row_of(&t.ty())));
    let iteration = begin(&types, source, |symbols| {
        let mut symbols = symbols.into_iter();
        let state = with_leaves(start.share(), &mut symbols)?;
        body(state, with_leaves(rows, &mut symbols)?)
    })?;
    types.truncate(variables);
    body_saves(op, &start, &types, &iteration, &iteration.result.0)?;
    rows_have_one_size(op, &iteration, &iteration.result.1)?;
    // Variables that the body writes are carried too.
    let mut written = Vec::new();
    add_written(&mut written, &iteration.trace);
    let (state, made) = &iteration.result;
    let (mut outputs, stacked) = (leaves(state), leaves(made));
    for variable in &written {
        outputs.push(iteration.trace.read(variable)?);
    }
    outputs.extend(stacked.iter().cloned());
    let body = iteration.trace.finish(&outputs)?;
    let condition = match &test {
        Ok(part) => Some(part.trace.finish(std::slice::from_ref(&part.result))?),
        Err(_) => None,
    };
    // A loop that counts up to a number needs no condition.
    let all: Vec<_> = condition.iter().chain([&body]).collect();
    let outside = RegionCaptures::of(&all, &written);
    let order = order(variables, &written, &outside, 0);
    let counted = condition.as_ref().and_then(|condition| {
        let known = |i: usize| match order.get(i)? {
            Takes::Argument(i) => integer(carried.get(*i)?),
            Takes::Tensor(tensor) => integer(tensor),
            Takes::Variable(_) => None,
        };
        let (test, iteration) =
            (arranged(condition, variables, &order), arranged(&body, variables, &order));
        trips::trips(&test, &iteration, variables, &known)
    });
    let iterations = match (test, counted) {
        (Err(iterations), _) => Iterations::Times(iterations),
        (Ok(_), Some(n)) => {
            Iterations::Times(Dim::Known(n.min(options.most.unwrap_or(n)) as usize))
        }
        (Ok(_), None) => Iterations::While { most: options.most },
    };
    let condition = condition.filter(|_| matches!(iterations, Iterations::While { .. }));
    drop(order);
    let all: Vec<_> = condition.iter().chain([&body]).collect();
    let outside = RegionCaptures::of(&all, &written);
    let mut regions = Vec::new();
    if let Some(condition) = &condition {
        let order = self::order(variables, &written, &outside, 0);
        regions.push(arranged(condition, variables, &order));
    }
    let order = self::order(variables, &written, &outside, sliced.len());
    regions.push(arranged(&body, variables + sliced.len(), &order));
    drop(order);
    let attrs = Attrs::Loop(Box::new(Spec {
        carried: variables + written.len(),
        sliced: sliced.len(),
        stacked: stacked.len(),
        iterations,
        reverse: options.reverse,
        max_checkpoints: options.max_checkpoints,
        spills: options.spills,
        key: key(&regions),
        updates: Vec::new(),
    }));
    let mut inputs: SmallVec<[RegionInput; 3]> =
        carried.into_iter().map(RegionInput::Tensor).collect();
    for (k, variable) in written.into_iter().enumerate() {
        inputs.push(RegionInput::Written(variable, variables + k));
    }
    inputs.extend(sliced.into_iter().chain(outside.captured).map(RegionInput::Tensor));
    for variable in &outside.variables {
        inputs.push(RegionInput::Tensor(variable.read()?));
    }
    // The loop variables are the loop's alone from here on.
    drop(start);
    let mark = Mark { source, kind: Kind::Activation };
    let mut made = eager::apply(&WHILE_LOOP, inputs, attrs, regions, mark)?.into_iter();
    let (state, rows) = iteration.result;
    Ok((with_leaves(state, &mut made)?, with_leaves(rows, &mut made)?))
}

/// What a region takes: loop variables, variables that are written, rows, and the rest.
fn order<'a>(
    variables: usize,
    written: &'a [crate::Variable],
    outside: &'a RegionCaptures,
    rows: usize,
) -> Vec<Takes<'a>> {
    (0..variables)
        .map(Takes::Argument)
        .chain(written.iter().map(Takes::Variable))
        .chain((variables..variables + rows).map(Takes::Argument))
        .chain(outside.captured.iter().map(Takes::Tensor))
        .chain(outside.variables.iter().map(Takes::Variable))
        .collect()
}

/// The integer that a scalar is, where that is known now.
fn integer(tensor: &Tensor) -> Option<i128> {
    match tensor.repr() {
        TensorRepr::Symbolic(symbol) => {
            let state = symbol.trace.state();
            trips::constant(state.builder.graph(), symbol.value.id()?)
        }
        TensorRepr::Array(array) if array.dtype().is_integer() && array.sizes().is_empty() => {
            let mut bytes = [0u8; 8];
            let size = array.dtype().size();
            array.copy_to(&mut bytes[..size]).ok()?;
            let signed = array.dtype().class() == tonnage_core::Class::Signed;
            let shift = 64 - 8 * size as u32;
            let bits = u64::from_le_bytes(bytes) << shift;
            Some(if signed { i128::from(bits as i64 >> shift) } else { i128::from(bits >> shift) })
        }
        TensorRepr::Array(_) | TensorRepr::Spec(_) => None,
    }
}

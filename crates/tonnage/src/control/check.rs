//! What cannot be a branch or a loop, refused with the line that made it so.

use tonnage_core::error::bad_argument;
use tonnage_core::{Dim, Result, Source, TensorType};
use tonnage_ops::control::while_loop::stays;

use super::region::{RegionTrace, leaves, text};
use crate::tensor::Tensor;
use crate::tree::Tree;

fn made_at(line: Option<Source>) -> String {
    line.map_or(String::new(), |line| format!(" (made at {line})"))
}

/// Branches return the same structure, of the same types.
pub(super) fn branches_agree<R: Tree>(op: &'static str, parts: &[RegionTrace<R>]) -> Result<()> {
    let Some((first, others)) = parts.split_first() else { return Ok(()) };
    for (i, other) in others.iter().enumerate() {
        if text(&first.result) != text(&other.result) {
            let what = format!("branches 0 and {} return differently nested results", i + 1);
            return Err(bad_argument(op, what, "return the same structure from all"));
        }
        let pairs = leaves(&first.result).into_iter().zip(leaves(&other.result));
        let differs = |(_, (x, y)): &(usize, (Tensor, Tensor))| x.ty() != y.ty();
        if let Some((k, (x, y))) = pairs.enumerate().find(differs) {
            let mut what = format!(
                "result {k} is {}{} in branch 0 and {}{} in branch {}",
                x.ty(),
                made_at(first.line(&x)),
                y.ty(),
                made_at(other.line(&y)),
                i + 1
            );
            let mut help = "give all the same dtype and shape";
            if differ_by_data(&x.ty(), &y.ty()) {
                what += ", whose sizes the data decide, so that they may differ";
                help = "compute it before the branches, reduce it in them, or pad it to a known size there";
            }
            return Err(bad_argument(op, what, help));
        }
    }
    Ok(())
}

/// Whether nothing but sizes that the data decide tells two types apart.
fn differ_by_data(x: &TensorType, y: &TensorType) -> bool {
    let by_data = |(x, y): (&Dim, &Dim)| x == y || x.depends_on_data() || y.depends_on_data();
    x.dtype == y.dtype
        && x.shape.rank() == y.shape.rank()
        && x.shape.iter().zip(y.shape.iter()).all(by_data)
}

/// The body returns the loop variables as it took them: nested in the same way, of the same types.
pub(super) fn body_saves<S: Tree, R>(
    op: &'static str,
    start: &S,
    types: &[TensorType],
    part: &RegionTrace<R>,
    made: &S,
) -> Result<()> {
    if text(start) != text(made) {
        let what = "the body returns differently nested values than it takes";
        return Err(bad_argument(op, what, "return the loop variables as they came"));
    }
    let pairs = leaves(start).into_iter().zip(types).zip(leaves(made));
    for (i, ((first, before), after)) in pairs.enumerate() {
        if !stays(&first.ty(), before, &after.ty()) {
            let what = format!(
                "loop variable {i} enters as {before} and leaves as {}{}",
                after.ty(),
                made_at(part.line(&after))
            );
            let help = if before.dtype == after.dtype() && before.shape.rank() == after.rank() {
                "keep its dtype and shape the same in every iteration, or give it a bound with `Loop::bound`"
            } else {
                "keep its dtype and shape the same in every iteration"
            };
            return Err(bad_argument(op, what, help));
        }
    }
    Ok(())
}

/// A condition may not have effects: how often it is evaluated is not specified.
pub(super) fn condition_only_looks<R>(op: &'static str, part: &RegionTrace<R>) -> Result<()> {
    if !part.trace.written().is_empty() {
        let help = "write variables in the body";
        return Err(bad_argument(op, "the condition writes a variable", help));
    }
    let state = part.trace.state();
    match state.builder.graph().nodes.iter().find(|node| node.has_effect()) {
        Some(node) => {
            let what = format!(
                "{} in the condition has an effect{}",
                node.op.name,
                made_at(Some(node.source))
            );
            Err(bad_argument(op, what, "put it into the body"))
        }
        None => Ok(()),
    }
}

/// Rows that are stacked have one size, which is known before the loop runs.
pub(super) fn rows_have_one_size<R, Y: Tree>(
    op: &'static str,
    part: &RegionTrace<R>,
    rows: &Y,
) -> Result<()> {
    for (i, row) in leaves(rows).iter().enumerate() {
        if row.shape().iter().any(Dim::depends_on_data) {
            let what = format!(
                "the body returns {}{} for the rows of result {i}, whose size the data decide, so that rows may differ",
                row.ty(),
                made_at(part.line(row))
            );
            let help = "pad it to a known size in the body, or reduce it there";
            return Err(bad_argument(op, what, help));
        }
    }
    Ok(())
}

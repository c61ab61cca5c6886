//! Reductions, largest and least positions, running sums.

use tonnage::{Axes, DType, Elementwise, Result, Scan, Tensor};

use super::Rule;
use crate::call::{Call, one};
use crate::layout::axis_under;
use crate::value::Value;

/// The rule of an op of this family.
pub fn find(op: &str) -> Option<Rule> {
    Some(match op {
        "ReduceSum" => |c| reduced(c, |x, axes| x.sum_keep(axes), |x| Ok(x.clone())),
        "ReduceMean" => |c| reduced(c, |x, axes| x.mean_keep(axes), |x| Ok(x.clone())),
        "ReduceProd" => |c| reduced(c, |x, axes| x.prod_keep(axes), |x| Ok(x.clone())),
        "ReduceMax" => |c| reduced(c, |x, axes| extremum(c, x, axes, true), |x| Ok(x.clone())),
        "ReduceMin" => |c| reduced(c, |x, axes| extremum(c, x, axes, false), |x| Ok(x.clone())),
        "ReduceL1" => |c| reduced(c, |x, axes| x.abs()?.sum_keep(axes), |x| x.abs()),
        "ReduceL2" => |c| {
            reduced(
                c,
                |x, axes| match x.dtype().is_float() {
                    true => x.square()?.sum_keep(axes)?.sqrt(),
                    false => x.square()?.sum_keep(axes)?.cast(DType::F64)?.sqrt()?.cast(x.dtype()),
                },
                |x| x.abs(),
            )
        },
        "ReduceLogSum" => |c| reduced(c, |x, axes| x.sum_keep(axes)?.log(), |x| x.log()),
        "ReduceLogSumExp" => |c| reduced(c, |x, axes| x.logsumexp_keep(axes), |x| Ok(x.clone())),
        "ReduceSumSquare" => |c| reduced(c, |x, axes| x.square()?.sum_keep(axes), |x| x.square()),
        "ArgMax" => |c| position(c, |x, axis| x.argmax(axis)),
        "ArgMin" => |c| position(c, |x, axis| x.argmin(axis)),
        "CumSum" => |c| running(c, |x, axis, how| x.cumsum_by(axis, how)),
        "CumProd" => |c| running(c, |x, axis, how| x.cumprod_by(axis, how)),
        _ => return None,
    })
}

fn reduced(
    c: &Call,
    run: impl Fn(&Tensor, Axes) -> Result<Tensor>,
    elementwise: impl Fn(&Tensor) -> Result<Tensor>,
) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let given = c.axes(1)?.filter(|axes| !axes.is_empty());
    if given.is_none() && c.flag("noop_with_empty_axes")? {
        return one(elementwise(&x)?);
    }
    let axes: Vec<i64> = given.unwrap_or_else(|| (0..x.rank() as i64).collect());
    if axes.is_empty() {
        return one(elementwise(&x)?);
    }
    let kept = match c.under(&x) {
        Some(under) => {
            let own =
                axes.iter().map(|axis| Ok(axis_under(c.axis(*axis, x.rank())?, x.rank()) as i64));
            c.first(run(&under, Axes::from(&own.collect::<Result<Vec<_>>>()?[..]))?)?
        }
        None => run(&x, Axes::from(&axes[..]))?,
    };
    one(match c.int("keepdims", 1)? {
        0 => kept.squeeze(&axes[..])?,
        _ => kept,
    })
}

/// The largest or least; of nothing: the bound of the dtype.
fn extremum(c: &Call, x: &Tensor, axes: Axes, largest: bool) -> Result<Tensor> {
    if x.dtype() == DType::Bool {
        return if largest { x.any_keep(axes) } else { x.all_keep(axes) };
    }
    if x.dtype().is_float() && c.sizes(x)?.contains(&0) {
        let bound = if largest { f64::NEG_INFINITY } else { f64::INFINITY };
        return x.sum_keep(axes)?.add(bound);
    }
    if largest { x.max_keep(axes) } else { x.min_keep(axes) }
}

fn position(c: &Call, run: impl Fn(&Tensor, i64) -> Result<Tensor>) -> Result<Vec<Value>> {
    let x = c.x(0)?;
    let axis = c.axis(c.int("axis", 0)?, x.rank())? as i64;
    let found = match c.flag("select_last_index")? {
        false => run(&x, axis)?,
        true => {
            let last = c.sizes(&x)?[axis as usize] as i64 - 1;
            run(&x.reverse(axis)?, axis)?.neg()?.add(last)?
        }
    };
    one(match c.int("keepdims", 1)? {
        0 => found,
        _ => found.expand_dims(axis)?,
    })
}

fn running(c: &Call, run: impl Fn(&Tensor, i64, Scan) -> Result<Tensor>) -> Result<Vec<Value>> {
    let how = Scan { exclusive: c.flag("exclusive")?, reverse: c.flag("reverse")? };
    one(run(&c.x(0)?, c.number(1)?, how)?)
}

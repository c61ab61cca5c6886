//! Jacobians: one backward pass for each element of the target, in a planned loop that holds the result and the
//! memory of one backward pass.
//!
//! Where the rows' `axes` prove that each row of the target depends on that row of the source alone, all
//! rows of a batch go through one backward pass: as many iterations as one row of the target has elements.

use std::collections::HashMap;

use tonnage_core::error::bad_argument;
use tonnage_core::grad::Record;
use tonnage_core::row::{AxisOf, Call};
use tonnage_core::{DType, Dim, Result, Shape, Source};

use super::{Gradient, GradientTape, Sources, backward, nested, tape_error};
use crate::control::while_loop;
use crate::make;
use crate::ops::Elementwise;
use crate::tensor::Tensor;

impl GradientTape {
    /// The derivatives of every element of the target with respect to every element of the sources: for
    /// each source a tensor of the target's shape, then the source's.
    ///
    /// It runs a backward pass for each element of the target, in a loop whose memory is the result and one pass;
    /// once for each element of a row, where the ops in between are known to work on each row of
    /// the first axis alone.
    ///
    /// ```
    /// use tonnage::{Elementwise, GradientTape, tensor};
    /// let x = tensor([1.0f32, 2.0])?;
    /// let mut tape = GradientTape::new();
    /// tape.watch(&x);
    /// let y = (&x).square()?;
    /// let j = tape.jacobian(&y, &x)?.tensor()?;
    /// assert_eq!(j.to_vec::<f32>()?, [2.0, 0.0, 0.0, 4.0]);
    /// # Ok::<(), tonnage::Error>(())
    /// ```
    #[track_caller]
    pub fn jacobian<S: Sources>(&mut self, target: &Tensor, sources: S) -> Result<S::Gradients> {
        let source = Source::here();
        let made = self.jacobians(target, &sources, source).map_err(|e| e.at(source))?;
        Ok(nested(&sources, made))
    }

    /// The derivatives of each row of the target with respect to the same row of the source: a tensor of
    /// the first axis that both have, the rest of the target's shape, then the rest of the source's.
    ///
    /// Where a row of the target depends on other rows too, those derivatives are left out; finding the
    /// others then takes a backward pass for every element of the target.
    #[track_caller]
    pub fn batch_jacobian(&mut self, target: &Tensor, source: &Tensor) -> Result<Tensor> {
        let line = Source::here();
        self.batch(target, source, line).map_err(|e| e.at(line))
    }

    fn jacobians(
        &mut self,
        target: &Tensor,
        sources: &impl Sources,
        source: Source,
    ) -> Result<Vec<Gradient>> {
        let to = sizes("jacobian", target)?;
        let mut shapes = Vec::new();
        let mut failed = None;
        sources.for_each(&mut |s| match s.ty_of().shape.sizes() {
            Some(sizes) => shapes.push(sizes.to_vec()),
            None => failed = Some(open("jacobian", &s.ty_of().shape)),
        });
        if let Some(error) = failed {
            return Err(error);
        }
        let mut pass = self.backward_pass(std::slice::from_ref(target), sources, source)?;
        pass.choose()?;
        let all: Vec<Option<Follows>> =
            pass.groups.iter().map(|keys| follows(&pass, keys, target)).collect();
        let connected: Vec<bool> = all.iter().map(Option::is_some).collect();
        let row_by_row = |(follows, shape): (&Option<Follows>, &Vec<usize>)| match follows {
            None => true,
            Some(follows) => *follows == Follows::Along(0) && shape.first() == to.first(),
        };
        let by_row = to.first().is_some_and(|n| *n > 1) && all.iter().zip(&shapes).all(row_by_row);
        let wanted: Vec<&Vec<usize>> =
            shapes.iter().zip(&connected).filter(|(_, c)| **c).map(|(s, _)| s).collect();
        pass.groups = std::mem::take(&mut pass.groups)
            .into_iter()
            .zip(&connected)
            .filter(|(_, c)| **c)
            .map(|(keys, _)| keys)
            .collect();
        let made = self.stop_recording(|| rows(pass, target, &to, by_row, &wanted, source))?;
        let mut made = made.into_iter().zip(&wanted);
        connected
            .iter()
            .map(|connected| match connected.then(|| made.next()).flatten() {
                None => Ok(Gradient::Unconnected),
                Some((rows, from)) if by_row => Ok(Gradient::Dense(on_diagonal(&rows, &to, from)?)),
                Some((rows, from)) => Ok(Gradient::Dense(rows.reshape(lengths(&[&to, from]))?)),
            })
            .collect()
    }

    fn batch(&mut self, target: &Tensor, source: &Tensor, line: Source) -> Result<Tensor> {
        let (to, from) = (sizes("batch_jacobian", target)?, sizes("batch_jacobian", source)?);
        if to.is_empty() || from.is_empty() || to[0] != from[0] {
            let what = format!("the target is {}, the source {}", target.ty(), source.ty());
            let help = "both need a first axis of the same length: the batch";
            return Err(bad_argument("batch_jacobian", what, help));
        }
        let mut pass = self.backward_pass(std::slice::from_ref(target), &source, line)?;
        pass.choose()?;
        let Some(follows) = follows(&pass, &pass.groups[0], target) else {
            return make::fill(0.into(), target.dtype(), known(&[&to, &from[1..]]), line);
        };
        let by_row = follows == Follows::Along(0);
        let shape = lengths(&[&to, &from[1..]]);
        let rows = self.stop_recording(|| rows(pass, target, &to, by_row, &[&from], line))?;
        let Some(rows) = rows.into_iter().next() else {
            return Err(tape_error("a row is missing", "report this"));
        };
        match by_row {
            true => by_batch(&rows, &to, &from)?.reshape(&shape),
            // Of every row of the target the part that is of the same row of the source.
            false => {
                let (inner, rest) = inner(&to, &from);
                let whole = rows.reshape(lengths(&[&[to[0], inner, to[0], rest]]))?;
                whole.mul(&same_row(to[0], target.dtype())?)?.sum([2])?.reshape(&shape)
            }
        }
    }
}

fn open(op: &'static str, shape: &Shape) -> tonnage_core::Error {
    bad_argument(op, format!("the shape {shape} is open"), "fix it in the function's signature")
}

fn sizes(op: &'static str, tensor: &Tensor) -> Result<Vec<usize>> {
    let shape = tensor.shape();
    shape.sizes().map(|s| s.to_vec()).ok_or_else(|| open(op, &shape))
}

fn lengths(parts: &[&[usize]]) -> Vec<i64> {
    parts.concat().into_iter().map(|n| n as i64).collect()
}

fn known(parts: &[&[usize]]) -> Shape {
    parts.concat().into_iter().map(Dim::Known).collect()
}

/// The gradients of all iterations: for each source a tensor of the iterations, then its shape.
fn rows(
    pass: backward::BackwardPass,
    target: &Tensor,
    to: &[usize],
    by_row: bool,
    shapes: &[&Vec<usize>],
    source: Source,
) -> Result<Vec<Tensor>> {
    let count: usize = if by_row { &to[1..] } else { to }.iter().product();
    let dtype = target.dtype();
    let whole =
        |shape: &&Vec<usize>| make::fill(0.into(), dtype, known(&[&[count], shape]), source);
    let start = shapes.iter().map(whole).collect::<Result<Vec<Tensor>>>()?;
    let iteration = |(i, all): (Tensor, Vec<Tensor>)| {
        let number = make::range(0i64, count as i64, 1)?;
        let hot = number.equal(&i)?.cast(dtype)?;
        let hot = match by_row {
            true => hot.reshape(lengths(&[&[1], &to[1..]]))?.broadcast_to(known(&[to]))?,
            false => hot.reshape(lengths(&[to]))?,
        };
        let grads = pass.go(std::slice::from_ref(target), Some(vec![hot]), source)?;
        let at = i.reshape([1])?;
        let mut next = Vec::new();
        for ((sum, grad), shape) in all.into_iter().zip(grads).zip(shapes) {
            let row = match grad {
                Gradient::Unconnected => make::fill(0.into(), dtype, known(&[shape]), source)?,
                other => other.tensor()?,
            };
            next.push(sum.scatter_update(&at, &row.reshape(lengths(&[&[1], shape]))?)?);
        }
        Ok(((i + 1)?, next))
    };
    let first = make::fill(0.into(), DType::I64, Shape::scalar(), source)?;
    Ok(while_loop((first, start), |(i, _)| i.less(count as i64), iteration)?.1)
}

/// Elements of one row of the target, and of one row of the source.
fn inner(to: &[usize], from: &[usize]) -> (usize, usize) {
    (to[1..].iter().product(), from[1..].iter().product())
}

/// From iterations of batches to batches of iterations.
fn by_batch(rows: &Tensor, to: &[usize], from: &[usize]) -> Result<Tensor> {
    let (inner, rest) = inner(to, from);
    rows.reshape(lengths(&[&[inner, to[0], rest]]))?.transpose(&[1, 0, 2])
}

/// The whole Jacobian, of rows that have no part in each other.
fn on_diagonal(rows: &Tensor, to: &[usize], from: &[usize]) -> Result<Tensor> {
    let (inner, rest) = inner(to, from);
    let own = by_batch(rows, to, from)?.reshape(lengths(&[&[to[0], inner, 1, rest]]))?;
    own.mul(&same_row(to[0], rows.dtype())?)?.reshape(lengths(&[to, from]))
}

/// 1 where the row of the target is that of the source, as `[batch, 1, batch, 1]`.
fn same_row(batch: usize, dtype: DType) -> Result<Tensor> {
    let number = make::range(0i64, batch as i64, 1)?;
    let across = number.reshape([batch as i64, 1, 1, 1])?;
    across.equal(&number.reshape([1, 1, batch as i64, 1])?)?.cast(dtype)
}

/// How a value follows the first axis of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Follows {
    /// Its rows along that axis depend on the same rows of the source alone.
    Along(usize),
    /// Not row by row.
    Mixed,
}

/// How the target follows a source that was used as these values; `None` where it does not depend on it.
fn follows(pass: &backward::BackwardPass, keys: &[u64], target: &Tensor) -> Option<Follows> {
    let key = |id: u64| pass.aliases.get(&id).copied().unwrap_or(id);
    let mut known: HashMap<u64, Follows> =
        keys.iter().map(|id| (key(*id), Follows::Along(0))).collect();
    for record in &pass.records {
        let moving: Vec<Option<Follows>> =
            record.inputs.iter().map(|id| known.get(id).copied()).collect();
        if moving.iter().all(Option::is_none) {
            continue;
        }
        for (id, follows) in record.outputs.iter().zip(through(record, &moving)) {
            known.insert(*id, follows);
        }
    }
    known.get(&key(target.id())).copied()
}

/// How an op's outputs follow, as its row's `axes` say.
fn through(record: &Record<u64>, moving: &[Option<Follows>]) -> Vec<Follows> {
    let Record { op, attrs, regions, input_types, .. } = record;
    let map = (op.axes)(&Call { op: op.name, inputs: input_types, attrs, regions });
    let runs_along = |axis: &AxisOf| match axis {
        AxisOf::Mixed => false,
        AxisOf::Along(named) => moving.iter().enumerate().all(|(input, follows)| match follows {
            None => true,
            Some(Follows::Mixed) => false,
            Some(Follows::Along(own)) => named.contains(&(input, *own)),
        }),
    };
    (0..record.outputs.len())
        .map(|i| match map.outputs.get(i).and_then(|axes| axes.iter().position(runs_along)) {
            Some(axis) => Follows::Along(axis),
            None => Follows::Mixed,
        })
        .collect()
}

//! Sizes that the data decide, where an op needs two of them to be equal and nothing proves it.
//!
//! Types know such a size only by its symbol, and refuse two that differ. Eager mode sees the numbers. In a trace the
//! input is brought to the other's size by a reshape, which is a view and compares the numbers as it runs. A size that turns
//! out to be 1 is not broadcast: the plan has room for equal sizes alone.

use std::sync::Arc;

use tonnage_core::attrs::Attrs;
use tonnage_core::graph::Graph;
use tonnage_core::row::Call;
use tonnage_core::{Dim, ErrorKind, OpDef, Result, Shape, Source, TensorType};
use tonnage_ops::shape::reshape::RESHAPE;

use crate::dispatch::{TensorArg, apply1};
use crate::tensor::Tensor;

/// The inputs of an op, with sizes that the data decide taken for those that they have to equal.
pub(crate) fn equalized(
    op: &'static OpDef,
    mut inputs: Vec<Tensor>,
    attrs: &Attrs,
    regions: &[Arc<Graph>],
    source: Source,
) -> Result<Vec<Tensor>> {
    let types: Vec<TensorType> = inputs.iter().map(Tensor::ty).collect();
    let open = |ty: &TensorType| ty.shape.iter().any(Dim::depends_on_data);
    if inputs.len() < 2 || !types.iter().any(open) {
        return Ok(inputs);
    }
    let infer =
        |types: &[TensorType]| (op.infer)(&Call { op: op.name, inputs: types, attrs, regions });
    match infer(&types) {
        Err(e) if matches!(e.kind(), ErrorKind::ShapeMismatch { .. }) => {}
        _ => return Ok(inputs), // it fits, or what is wrong is something else
    }
    let Some(fitting) = candidates(&types).find(|types| infer(types).is_ok()) else {
        return Ok(inputs);
    };
    for (input, to) in inputs.iter_mut().zip(fitting) {
        if input.ty() != to {
            let from = smallvec::smallvec![TensorArg::Owned(input.clone())];
            *input = apply1(&RESHAPE, from, Attrs::Shape(to.shape), source)?;
        }
    }
    Ok(inputs)
}

/// Types with a size that the data decide taken for one of another input, those at the same axis from the back first; then
/// with all sizes of all inputs taken for those of one input.
fn candidates(types: &[TensorType]) -> impl Iterator<Item = Vec<TensorType>> {
    let axes_at = |from_back: usize| {
        (0..types.len()).rev().flat_map(move |i| {
            let axis = types[i].shape.rank().checked_sub(from_back + 1);
            axis.map(|axis| (i, axis)).into_iter()
        })
    };
    let most = types.iter().map(|ty| ty.shape.rank()).max().unwrap_or(0);
    let all = move || (0..most).flat_map(axes_at);
    let data = all().filter(|(i, axis)| types[*i].shape[*axis].depends_on_data());
    let pairs = data.flat_map(move |to| all().map(move |from| (to, from)));
    let mut pairs: Vec<_> = pairs.filter(|((i, _), (j, _))| i != j).collect();
    let back = |(i, axis): (usize, usize)| types[i].shape.rank() - axis;
    pairs.sort_by_key(|(to, from)| back(*to).abs_diff(back(*from)));
    let one = pairs.into_iter().map(|((i, axis), (j, other))| {
        let mut changed = types.to_vec();
        changed[i].shape[axis] = types[j].shape[other].clone();
        changed
    });
    let like = |like: usize| {
        let like = &types[like].shape;
        types.iter().map(|ty| TensorType { shape: taken(&ty.shape, like), ..ty.clone() }).collect()
    };
    one.chain((0..types.len()).map(like))
}

/// A shape with every size that the data decide taken for that of another shape, aligned at the last axis.
fn taken(shape: &Shape, like: &Shape) -> Shape {
    let mut made = shape.clone();
    for (dim, like) in made.iter_mut().rev().zip(like.iter().rev()) {
        if dim.depends_on_data() && !like.is(1) {
            *dim = like.clone();
        }
    }
    made
}

//! Rows of a gradient through an op that works on each row alone: they stay rows.
//!
//! Where an op's output axis 0 runs along axis 0 of an input (its row's `axes` say so), the op on a few
//! rows gives those rows of its result. All other rows of the gradient are zero, so the rule for the few
//! rows, given the few rows of what it saves, makes all of the gradient there is.

use smallvec::SmallVec;

use super::{Cotangent, GradCall, GradOps, Record, SparseRows};
use crate::attrs::Attrs;
use crate::dim::Dim;
use crate::emit::{Emit, Value};
use crate::error::Result;
use crate::row::{AxisOf, Call, GradRule, Save};
use crate::shape::{Shape, TensorType};

/// Gradients of the inputs where that of the only output is rows and can stay so; `None` where it must
/// be made whole.
pub(super) fn through<K>(
    record: &Record<K>,
    rule: GradRule,
    out: &[Option<Cotangent>],
    needs: &[bool],
    emit: &mut dyn Emit,
    ops: &'static GradOps,
) -> Result<Option<Vec<Option<Cotangent>>>> {
    let [Some(Cotangent::Sparse { parts, .. })] = out else { return Ok(None) };
    let Some(along) = along(record, needs) else { return Ok(None) };
    let mut sums: Vec<Option<Cotangent>> = vec![None; needs.len()];
    for rows in parts {
        let made = one(record, rule, rows, &along, needs, emit, ops)?;
        for (sum, grad) in sums.iter_mut().zip(made) {
            *sum = match (sum.take(), grad) {
                (Some(a), Some(b)) => Some(a.plus(b, emit, ops)?),
                (a, b) => a.or(b),
            };
        }
    }
    Ok(Some(sums))
}

/// For each input, the axis that the output's first runs along, where that is one that a rule on rows
/// can work with.
fn along<K>(record: &Record<K>, needs: &[bool]) -> Option<Vec<Option<usize>>> {
    // Attributes that say a shape would have to say another one.
    let plain = match &record.attrs {
        Attrs::None | Attrs::DType(_) | Attrs::Matmul { .. } => true,
        Attrs::Reduce { .. } | Attrs::Axis(_) => record.inputs.len() == 1,
        _ => false,
    };
    let aux = record.saved.iter().any(|(save, _)| matches!(save, Save::Aux(_)));
    if !plain || aux || !record.regions.is_empty() {
        return None;
    }
    let Record { op, attrs, regions, input_types, .. } = record;
    let map = (op.axes)(&Call { op: op.name, inputs: input_types, attrs, regions });
    let AxisOf::Along(named) = map.outputs.first()?.first()? else { return None };
    let mut all = vec![None; record.inputs.len()];
    for (input, axis) in named {
        *all.get_mut(*input)? = Some(*axis);
    }
    // A gradient that is rows is rows along the first axis.
    let fits = |(axis, need): (&Option<usize>, &bool)| !need || matches!(axis, None | Some(0));
    all.iter().zip(needs).all(fits).then_some(all)
}

fn one<K>(
    record: &Record<K>,
    rule: GradRule,
    rows: &SparseRows,
    along: &[Option<usize>],
    needs: &[bool],
    emit: &mut dyn Emit,
    ops: &'static GradOps,
) -> Result<Vec<Option<Cotangent>>> {
    // The indices in a row, so that the values have as many axes as the table.
    let rank = rows.indices.ty().shape.rank();
    let count = rows.indices.ty().shape.elements();
    let values = rows.values.ty().shape[rank..].iter().cloned();
    let flat: Shape = std::iter::once(count.clone()).chain(values).collect();
    let indices = shaped(emit, &rows.indices, [count.clone()].into_iter().collect(), ops)?;
    let grads = [Some(shaped(emit, &rows.values, flat, ops)?)];

    let few = |ty: &TensorType, axis: Option<usize>| TensorType {
        dtype: ty.dtype,
        shape: shortened(&ty.shape, axis, &count),
    };
    let inputs: SmallVec<[TensorType; 2]> =
        record.input_types.iter().zip(along).map(|(ty, axis)| few(ty, *axis)).collect();
    let outputs = [few(&record.output_types[0], Some(0))];
    let mut saved: SmallVec<[(Save, Value); 2]> = SmallVec::new();
    for (save, value) in &record.saved {
        let axis = match save {
            Save::Input(i) => along[*i],
            _ => Some(0),
        };
        let value = match axis {
            Some(axis) => {
                let inputs = vec![value.clone(), indices.clone()];
                emit.apply(ops.gather, inputs, Attrs::Axis(axis))?
            }
            None => value.clone(),
        };
        saved.push((*save, value));
    }
    let call = GradCall {
        op: record.op,
        inputs: &inputs,
        outputs: &outputs,
        attrs: &record.attrs,
        regions: &record.regions,
        grads: &grads,
        needs,
        ops,
        saved: &saved,
    };
    let made = rule(emit, &call)?;
    let mut all = Vec::new();
    for (i, grad) in made.into_iter().enumerate() {
        all.push(match (grad, along[i]) {
            (Some(grad), Some(_)) => {
                let part = SparseRows { indices: indices.clone(), values: grad.dense(emit, ops)? };
                let of = record.input_types[i].clone();
                Some(Cotangent::Sparse { of, parts: vec![part] })
            }
            (grad, _) => grad,
        });
    }
    Ok(all)
}

fn shortened(shape: &Shape, axis: Option<usize>, count: &Dim) -> Shape {
    let len = |(i, dim): (usize, &Dim)| if Some(i) == axis { count.clone() } else { dim.clone() };
    shape.iter().enumerate().map(len).collect()
}

fn shaped(emit: &mut dyn Emit, value: &Value, to: Shape, ops: &GradOps) -> Result<Value> {
    match value.ty().shape == to {
        true => Ok(value.clone()),
        false => emit.apply(ops.reshape, vec![value.clone()], Attrs::Shape(to)),
    }
}

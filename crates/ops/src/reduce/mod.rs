//! Reductions over any axes: tile programs that close with a reduction; and scans along one axis.

pub mod arg;
pub mod count_nonzero;
pub mod cumprod;
pub mod cumsum;
pub mod extremum;
pub mod linear_recurrence;
pub mod logsumexp;
pub mod mean;
pub mod norm;
pub mod prod;
pub mod scan;
pub mod std_;
pub mod sum;
pub mod truth;
pub mod var;

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Call, Cost, Sample, Types};
use tonnage_core::tile::{Prim, Reduction, TileProgram};
use tonnage_core::{DType, Dim, Shape, Sizes, TensorType};

use crate::tile::{Ending, pass};
use crate::{emit, rules};

/// The axes of the attributes, and whether they stay as lengths of 1.
fn reduced<'a>(call: &Call<'a>) -> Result<(&'a Sizes, bool)> {
    match call.attrs {
        Attrs::Reduce { axes, keep_dims } => Ok((axes, *keep_dims)),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

/// Loads the only input and reduces it over the axes of the attributes.
pub(crate) fn reduction_program(call: &Call, reduction: Reduction) -> Result<TileProgram> {
    let dtype = call.inputs[0].dtype;
    let mut program = TileProgram::loading(&[dtype]);
    program.store(0, dtype);
    program.reduce(reduction, reduced(call)?.0);
    Ok(program)
}

/// One number in, the same dtype out.
fn of_number(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::number(call, &call.inputs[0])?;
    of_its_dtype(call)
}

/// One float in, the same dtype out.
fn of_float(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::float(call, &call.inputs[0])?;
    of_its_dtype(call)
}

/// One boolean in, booleans out.
fn of_bool(call: &Call) -> Result<Types> {
    rules::infer::count(call, 1)?;
    rules::infer::boolean(call, &call.inputs[0])?;
    of_its_dtype(call)
}

fn of_its_dtype(call: &Call) -> Result<Types> {
    let ty = &call.inputs[0];
    Ok(smallvec![TensorType { dtype: ty.dtype, shape: rules::infer::reduced(call, ty)? }])
}

/// A number of flops for each element that is read.
fn cost(call: &Call, infer: fn(&Call) -> Result<Types>, flops: u64) -> Cost {
    rules::cost::elementwise(call, &infer(call).unwrap_or_default(), flops)
}

/// The shape with those axes as lengths of 1.
pub(crate) fn keep_dims_shape(shape: &Shape, axes: &[usize]) -> Shape {
    let length = |(i, d): (usize, &Dim)| if axes.contains(&i) { 1.into() } else { d.clone() };
    shape.iter().enumerate().map(length).collect()
}

/// How many elements become one.
fn count(shape: &Shape, axes: &[usize]) -> Dim {
    axes.iter().fold(Dim::Known(1), |n, axis| n.times(&shape[*axis]))
}

/// A reduced value broadcast back over the axes that it lost.
pub(crate) fn broadcast_back(
    e: &mut dyn Emit,
    reduced: Value,
    attrs: &Attrs,
    to: &Shape,
) -> Result<Value> {
    let Attrs::Reduce { axes, .. } = attrs else { return Ok(reduced) };
    let reduced = emit::reshape(e, reduced, &keep_dims_shape(to, axes))?;
    emit::broadcast_to(e, reduced, to)
}

/// The mean over axes, which stay as lengths of 1, not rounded to 16 bits. Where nothing is rounded it is the op, which a program may have
/// beside it, and has once then.
fn wide_mean(e: &mut dyn Emit, x: Value, axes: &[usize]) -> Result<Value> {
    let dtype = x.ty().dtype.compute();
    if dtype == x.ty().dtype {
        let attrs = Attrs::Reduce { axes: axes.into(), keep_dims: true };
        return e.apply(&mean::MEAN, vec![x], attrs);
    }
    let ending = Ending::Reduce { reduction: Reduction::Mean, axes, keep_dims: true, dtype };
    pass(e, [x], ending, |_, [x]| x)
}

/// The gradient of a largest or least element: those that are it share it evenly. Two passes over the input,
/// and nothing of its size in between.
fn shared_among_equals(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (axes, _) = reduced(&call.call())?;
    let (g, x, y) = (call.grad()?, call.input(0)?, call.output(0)?);
    let shape = keep_dims_shape(&call.inputs[0].shape, axes);
    let (g, y) = (emit::reshape(e, g, &shape)?, emit::reshape(e, y, &shape)?);
    let dtype = x.ty().dtype.compute();
    let ending = Ending::Reduce { reduction: Reduction::Sum, axes, keep_dims: true, dtype };
    let hits = pass(e, [x.clone(), y.clone()], ending, |p, [x, y]| {
        let hit = p.two(Prim::Eq, x, y);
        p.cast(hit, dtype)
    })?;
    let share = emit::div(e, g, hits)?;
    let made = pass(e, [x, y, share], Ending::SumTo(&call.inputs[0]), |p, [x, y, share]| {
        let hit = p.two(Prim::Eq, x, y);
        p.or_zero(hit, share)
    })?;
    Ok(vec![emit::dense(made)])
}

/// Every dtype that fits, every kind of axis set, sizes around a tile's edge.
pub(crate) fn samples(dtypes: &[DType]) -> Vec<Sample> {
    let of = |dtype, shape: &[usize], axes: &[usize], keep_dims| {
        let attrs = Attrs::Reduce { axes: axes.into(), keep_dims };
        Sample::of(&[TensorType::new(dtype, shape)], attrs)
    };
    let mut all: Vec<Sample> = dtypes.iter().map(|d| of(*d, &[2, 3], &[1], false)).collect();
    // The usual dtype where it fits, and otherwise the only one there is.
    let usual = if dtypes.contains(&DType::F32) { DType::F32 } else { DType::Bool };
    for (shape, axes, keep_dims) in [
        (&[][..], &[][..], false),
        (&[3, 4], &[], false),
        (&[3, 4], &[0], false),
        (&[3, 4], &[0, 1], true),
        (&[2, 3, 4], &[1], true),
        (&[2, 3, 4], &[0, 2], false),
        (&[0, 3], &[0], false),
        (&[3, 0], &[0], false),
        (&[3, 0], &[1], false),
        (&[2, 0, 3], &[0, 1], true),
        (&[1023], &[0], false),
        (&[1025], &[0], false),
        (&[3, 1025], &[1], false),
        (&[1025, 3], &[0], false),
        (&[40_000], &[0], false),
        (&[5, 3, 700], &[0, 2], true),
    ] {
        all.push(of(usual, shape, axes, keep_dims));
    }
    all
}

/// Every number.
fn number_samples() -> Vec<Sample> {
    let numbers: Vec<DType> = DType::ALL.into_iter().filter(|d| *d != DType::Bool).collect();
    samples(&numbers)
}

/// Every float.
fn float_samples() -> Vec<Sample> {
    samples(&[DType::F64, DType::F32, DType::F16, DType::BF16])
}

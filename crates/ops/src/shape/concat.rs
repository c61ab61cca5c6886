//! `concat`: tensors one after the other along an axis, each written straight into its place.

use smallvec::smallvec;
use tonnage_core::attrs::{Attrs, AxisSlice};
use tonnage_core::emit::Emit;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{
    AxisMap, AxisOf, Call, Cost, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types,
    no_scratch,
};
use tonnage_core::walk::{Even, Runs};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{DType, Dim, Element, OpDef, TensorType};

use super::slice::SLICE;
use crate::number::with_width;
use crate::parallel::{GRAIN, rows_at_once};
use crate::{emit, rules, strided};

/// `(parts ..) -> whole`
pub static CONCAT: OpDef = OpDef {
    name: "concat",
    doc: "Tensors one after the other along an axis.",
    infer,
    axes,
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let outputs = infer(call).unwrap_or_default();
        Cost { flops: 0, bytes: rules::cost::moved(call, &outputs) }
    },
    grad: Grad::Rule(grad),
    jvp: Jvp::FromGrad,
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

/// The axis of attributes that join as many tensors as there are inputs.
pub(super) fn joined(call: &Call, rank: usize) -> Result<usize> {
    let Attrs::Join { axis, parts } = *call.attrs else {
        return Err(rules::infer::wrong_attrs(call));
    };
    rules::infer::count(call, parts)?;
    if parts == 0 {
        return Err(bad_argument(call.op, "no tensors", "give one or more"));
    }
    match axis < rank {
        true => Ok(axis),
        false => {
            let axis = rules::infer::from_front(axis);
            Err(ErrorKind::AxisOutOfRange { op: call.op, axis, rank }.into())
        }
    }
}

/// Refuses tensors of different dtypes.
pub(super) fn same_dtype(call: &Call) -> Result<DType> {
    let first = call.inputs[0].dtype;
    match call.inputs.iter().find(|ty| ty.dtype != first) {
        Some(other) => {
            let (left, right, help) = (first, other.dtype, "cast one of them".into());
            Err(ErrorKind::DTypeMismatch { op: call.op, left, right, help }.into())
        }
        None => Ok(first),
    }
}

fn infer(call: &Call) -> Result<Types> {
    let axis = joined(call, call.inputs.first().map_or(0, |ty| ty.shape.rank()))?;
    let dtype = same_dtype(call)?;
    let mut shape = call.inputs[0].shape.clone();
    let mut length = Dim::Known(0);
    for ty in call.inputs {
        let mut like = ty.shape.clone();
        if like.rank() == shape.rank() {
            length = length.plus(&like[axis]);
            like[axis] = shape[axis].clone();
        }
        if like != shape {
            let (left, right) = (call.inputs[0].shape.clone(), ty.shape.clone());
            let help = format!("all lengths but that of axis {axis} must be equal");
            return Err(ErrorKind::ShapeMismatch { op: call.op, left, right, help }.into());
        }
    }
    shape[axis] = length;
    Ok(smallvec![TensorType { dtype, shape }])
}

fn axes(call: &Call) -> AxisMap {
    let Attrs::Join { axis, .. } = *call.attrs else { return AxisMap::default() };
    let along = |i| match i == axis {
        true => AxisOf::Mixed,
        false => AxisOf::Along((0..call.inputs.len()).map(|input| (input, i)).collect()),
    };
    let rank = call.inputs.first().map_or(0, |ty| ty.shape.rank());
    AxisMap { outputs: vec![(0..rank).map(along).collect()], summed: Vec::new() }
}

/// Parts of the gradient, without a copy.
fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let axis = joined(&call.call(), call.outputs[0].shape.rank())?;
    let g = call.grad()?;
    let mut start = Dim::Known(0);
    let mut grads = Vec::new();
    for (ty, need) in call.inputs.iter().zip(call.needs) {
        grads.push(match need {
            true => {
                let mut slices: Vec<AxisSlice> =
                    ty.shape.iter().cloned().map(AxisSlice::all).collect();
                slices[axis].start = start.clone();
                emit::dense(e.apply(&SLICE, vec![g.clone()], Attrs::Slices(slices))?)
            }
            false => None,
        });
        start = start.plus(&ty.shape[axis]);
    }
    Ok(grads)
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Join { axis, .. } = *k.attrs else { return Ok(()) };
    with_width!(k.outputs[0].dtype, T => join::<T>(k, axis))
}

fn join<T: Element>(k: &mut Kernel, axis: usize) -> Result<()> {
    let inner: usize = k.outputs[0].sizes[axis + 1..].iter().product();
    let row = k.outputs[0].sizes[axis] * inner;
    let (inputs, out) = (k.inputs, k.outputs[0].slice::<T>());
    if row == 0 {
        return Ok(());
    }
    let length = |part: &In| part.layout.sizes[axis] * inner;
    // Long rows are cut as they are; of short ones a piece is many.
    let chunk = if row >= GRAIN { GRAIN } else { row * rows_at_once(row) };
    let single = inputs.iter().all(|part| length(part) == 1);
    for_each_chunk(k.workers, out, chunk, &|number, out| {
        let first = number * chunk;
        if single && interleave(inputs, first / row, out) {
            return;
        }
        let mut at = 0; // where the part starts in a row
        for part in inputs {
            let len = length(part);
            if len > 0 {
                copy_part::<T>(part, len, at, row, first, out);
            }
            at += len;
        }
    })
}

/// Rows of one element from each of a few parts, as of `stack` along a new last axis, all parts at once: one by one each
/// would go through all of the output. False where there are more, or some lie apart.
fn interleave<T: Element>(parts: &[In], first: usize, out: &mut [T]) -> bool {
    fn of<T: Element, const N: usize>(parts: &[In], first: usize, out: &mut [T]) -> bool {
        let rows = out.as_chunks_mut::<N>().0;
        let mut data = [&[] as &[T]; N];
        for (data, part) in data.iter_mut().zip(parts) {
            let Some(all) = part.contiguous::<T>() else { return false };
            *data = &all[first..first + rows.len()];
        }
        for (i, row) in rows.iter_mut().enumerate() {
            for (to, data) in row.iter_mut().zip(data) {
                *to = data[i];
            }
        }
        true
    }
    match parts.len() {
        2 => of::<T, 2>(parts, first, out),
        3 => of::<T, 3>(parts, first, out),
        4 => of::<T, 4>(parts, first, out),
        _ => false,
    }
}

/// Copies those rows of a part that lie in a piece of the output, which starts at element `first`; the part
/// takes `len` elements of each row of `row`, from `at` on.
fn copy_part<T: Element>(
    part: &In,
    len: usize,
    at: usize,
    row: usize,
    first: usize,
    out: &mut [T],
) {
    let data = part.slice::<T>();
    if row < GRAIN {
        return copy_rows(part, len, at, row, first / row, out);
    }
    let contiguous = part.contiguous::<T>();
    let end = first + out.len();
    for r in first / row..end.div_ceil(row) {
        // The part of this row that lies in the piece.
        let start = (r * row + at).max(first);
        let stop = (r * row + at + len).min(end);
        if start >= stop {
            continue;
        }
        let from = r * len + (start - r * row - at);
        let to = &mut out[start - first..stop - first];
        match contiguous {
            Some(data) => to.copy_from_slice(&data[from..from + to.len()]),
            None => strided::copy(&part.layout, data, from, to),
        }
    }
}

/// The same where the piece is whole rows, from the one of number `first` on.
fn copy_rows<T: Element>(
    part: &In,
    len: usize,
    at: usize,
    row: usize,
    first: usize,
    out: &mut [T],
) {
    fn arrays<T: Element, const N: usize>(data: &[T], at: usize, row: usize, out: &mut [T]) {
        for (from, to) in data.as_chunks::<N>().0.iter().zip(out.chunks_exact_mut(row)) {
            to[at..at + N].copy_from_slice(from);
        }
    }
    let rows = out.len() / row;
    let Some(data) = part.contiguous::<T>() else {
        // All elements that are wanted are one walk; a walk for each row would be most of the time.
        let (data, mut row_number, mut done) = (part.slice::<T>(), 0, 0);
        Runs::new(&part.layout).for_each(first * len, rows * len, |from, step, count| {
            let mut taken = 0;
            while taken < count {
                let now = (count - taken).min(len - done);
                let to = &mut out[row_number * row + at + done..][..now];
                let from = (from as isize + taken as isize * step) as usize;
                let even = Even { at: from, rows: 1, row_step: 0, count: now, step };
                strided::copy_even(data, even, to);
                (taken, done) = (taken + now, done + now);
                if done == len {
                    (row_number, done) = (row_number + 1, 0);
                }
            }
        });
        return;
    };
    let data = &data[first * len..(first + rows) * len];
    match len {
        1 => arrays::<T, 1>(data, at, row, out),
        2 => arrays::<T, 2>(data, at, row, out),
        3 => arrays::<T, 3>(data, at, row, out),
        4 => arrays::<T, 4>(data, at, row, out),
        5..=7 => {
            // Too short for a call.
            for (from, to) in data.chunks_exact(len).zip(out.chunks_exact_mut(row)) {
                to[at..at + len].iter_mut().zip(from).for_each(|(to, from)| *to = *from);
            }
        }
        8 => arrays::<T, 8>(data, at, row, out),
        _ => {
            for (from, to) in data.chunks_exact(len).zip(out.chunks_exact_mut(row)) {
                to[at..at + len].copy_from_slice(from);
            }
        }
    }
}

fn samples() -> Vec<Sample> {
    let of = |dtype, shapes: &[&[usize]], axis| {
        let types: Vec<_> = shapes.iter().map(|s| TensorType::new(dtype, *s)).collect();
        Sample::of(&types, Attrs::Join { axis, parts: types.len() })
    };
    let mut all: Vec<Sample> =
        DType::ALL.into_iter().map(|d| of(d, &[&[2, 3], &[2, 1]], 1)).collect();
    all.extend([
        of(DType::F32, &[&[3]], 0),
        of(DType::F32, &[&[3], &[0], &[2]], 0),
        of(DType::F32, &[&[2, 3], &[4, 3], &[1, 3]], 0),
        of(DType::F32, &[&[2, 1, 3], &[2, 2, 3]], 1),
        of(DType::F32, &[&[0, 2], &[0, 3]], 1),
        of(DType::F32, &[&[1025, 1], &[1025, 1]], 1),
        of(DType::F32, &[&[20_000], &[17]], 0),
        of(DType::F32, &[&[700, 1], &[700, 1], &[700, 1], &[700, 1]], 1),
        of(DType::F32, &[&[300, 5], &[300, 8], &[300, 3], &[300, 9], &[300, 2]], 1),
    ]);
    all
}

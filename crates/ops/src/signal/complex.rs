//! What `fft` and `ifft` share: one is the other with real and imaginary parts exchanged, over the length.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::kernel::{In, Kernel};
use tonnage_core::row::{AxisMap, AxisOf, Call, Cost, Sample, Types};
use tonnage_core::workers::Single;
use tonnage_core::{Bytes, DType, Dim, OpDef, TensorType, Workers};

use super::lanes::ReIm;
use super::method::FftMethod;
use super::plan::{FftPlan, FftWorkspace, plan_bytes, room_bytes, slot_bytes};
use super::tables::{two, two_bytes};
use crate::infer::{
    along, cost, elements, inputs, no_attrs, rank_at_least, real, same_dtype, shape,
};
use crate::linalg::field::Field;
use crate::parallel::for_each_item;
use crate::{emit, strided};

/// Real and imaginary parts of the same type, with something along their last axis.
pub fn parts<'a>(op: &'static str, call: &Call<'a>) -> Result<&'a TensorType> {
    let [re, im] = inputs(op, call)?;
    real(op, re)?;
    same_dtype(op, re, im)?;
    shape(op, &im.shape, &re.shape, "pass imaginary parts of the shape of the real ones")?;
    rank_at_least(op, re, 1, "transforms run along the last axis")?;
    something(op, re)?;
    Ok(re)
}

/// Refuses a last axis of no length.
pub fn something(op: &'static str, ty: &TensorType) -> Result<()> {
    match ty.shape.last() {
        Some(last) if last.is(0) => {
            let what = format!("the last axis of {ty} is empty");
            Err(bad_argument(op, what, "a transform takes at least one element"))
        }
        _ => Ok(()),
    }
}

pub fn infer(call: &Call) -> Result<Types> {
    no_attrs(call.op, call)?;
    let part = parts(call.op, call)?;
    Ok(smallvec![part.clone(), part.clone()])
}

/// All axes but the last, of all outputs, run along those of the inputs.
pub fn rows(call: &Call, outputs: usize) -> AxisMap {
    let rank = call.inputs[0].shape.rank();
    let own = |axis| along(&(0..call.inputs.len()).map(|i| (i, axis)).collect::<Vec<_>>());
    let axes: Vec<AxisOf> = (0..rank.saturating_sub(1)).map(own).chain([AxisOf::Mixed]).collect();
    AxisMap { outputs: vec![axes; outputs], summed: Vec::new() }
}

pub fn axes(call: &Call) -> AxisMap {
    rows(call, 2)
}

/// Five operations an element for each doubling of the length.
pub fn weight(call: &Call, length: &Dim, made: &Types) -> Cost {
    let n = length.most().unwrap_or(1).max(2) as u64;
    let rows = made.iter().chain(call.inputs).map(elements).max().unwrap_or(0);
    let flops = rows.saturating_mul(5 * u64::from(n.ilog2() + 1));
    cost(flops, made.iter().chain(call.inputs))
}

pub fn weigh(call: &Call) -> Cost {
    let length = call.inputs.first().and_then(|ty| ty.shape.last().cloned());
    weight(call, &length.unwrap_or(Dim::Known(1)), &infer(call).unwrap_or_default())
}

/// What all rows share, and what a group of them and a thread work in: a group for each thread, or one for all.
/// `copies` are bytes that a group needs besides.
pub fn scratch_of(n: usize, dtype: DType, threads: usize, copies: usize) -> usize {
    let groups = if FftMethod::of(n).is_shared() { 1 } else { threads.max(1) };
    let rooms = groups * (copies + room_bytes(n, dtype)) + threads.max(1) * slot_bytes(n, dtype);
    plan_bytes(n, dtype) + rooms
}

/// Bytes of a copy of a group of rows.
fn copy_bytes(method: FftMethod, dtype: DType) -> usize {
    two_bytes(method.n * method.group(), dtype)
}

/// Calls `f(group, room)` for each group of rows: on as many threads as are free, or one after the other where
/// all threads share a row.
pub fn for_each_group<T: Send>(
    (method, dtype, copies): (FftMethod, DType, usize),
    groups: impl Iterator<Item = T> + Send,
    scratch: &mut [u8],
    workers: &dyn Workers,
    f: &(dyn Fn(T, FftWorkspace) -> Result<()> + Sync),
) -> Result<()> {
    let room = copies + room_bytes(method.n, dtype);
    if method.is_shared() {
        let (room, slots) = scratch.split_at_mut(room);
        for group in groups {
            f(group, FftWorkspace { room, slots, workers })?;
        }
        return Ok(());
    }
    let size = room + slot_bytes(method.n, dtype);
    for_each_item(workers, groups, scratch, size, &|group, slot| {
        let (room, slots) = slot.split_at_mut(room);
        f(group, FftWorkspace { room, slots, workers: &Single(workers) })
    })
}

/// Rows from an element on: as they lie, or copied where they do not lie one after the other.
pub fn rows_of<'a, T: Field>(x: &'a In, first: usize, copy: &'a mut [T]) -> &'a [T] {
    if x.layout.is_contiguous() {
        return &x.slice::<T>()[x.layout.offset + first..][..copy.len()];
    }
    strided::copy(&x.layout, x.slice::<T>(), first, copy);
    copy
}

pub fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(ty) = call.inputs.first() else { return Bytes::ZERO };
    let n = ty.shape.last().and_then(|dim| dim.most()).unwrap_or(0);
    match n {
        0 => Bytes::ZERO,
        n => Bytes::of(scratch_of(n, ty.dtype, threads, copy_bytes(FftMethod::of(n), ty.dtype))),
    }
}

/// Transforms all rows, or transforms them back.
pub fn run<T: Field>(k: &mut Kernel, inverse: bool) -> Result<()> {
    let (re, im) = (&k.inputs[0], &k.inputs[1]);
    let n = re.layout.sizes.last().copied().unwrap_or(0);
    let [out_re, out_im] = &mut *k.outputs else {
        return Err(bad_argument("fft", "the kernel was lent no two outputs", "report this"));
    };
    let (out_re, out_im) = (out_re.slice::<T>(), out_im.slice::<T>());
    if out_re.is_empty() {
        return Ok(());
    }
    let mut rest = &mut *k.scratch;
    let factor = T::of(if inverse { 1.0 / n as f64 } else { 1.0 });
    let plan = FftPlan::<T>::of(n, factor, &mut rest, k.workers)?;
    let size = n * plan.method.group();
    let groups = out_re.chunks_mut(size).zip(out_im.chunks_mut(size)).enumerate();
    let kind = (plan.method, T::DTYPE, copy_bytes(plan.method, T::DTYPE));
    for_each_group(kind, groups, rest, k.workers, &|(group, (to_re, to_im)), room| {
        let (first, count) = (group * size, to_re.len());
        // The inverse transform is the forward one with real and imaginary parts exchanged.
        let go =
            |[re, im]: ReIm<T>, to_re: &mut [T], to_im: &mut [T], room: FftWorkspace| match inverse
            {
                true => plan.run([im, re], [to_im, to_re], room),
                false => plan.run([re, im], [to_re, to_im], room),
            };
        let FftWorkspace { mut room, slots, workers } = room;
        let [a, b] = two::<T>(&mut room, size);
        let from = [rows_of(re, first, &mut a[..count]), rows_of(im, first, &mut b[..count])];
        go(from, to_re, to_im, FftWorkspace { room, slots, workers })
    })
}

/// A gradient that is there, or zeros of that type.
pub fn given(e: &mut dyn Emit, call: &GradCall, i: usize, of: &TensorType) -> Result<Value> {
    match call.grads.get(i) {
        Some(Some(g)) => Ok(g.clone()),
        _ => emit::zeros(e, of),
    }
}

/// The other way, times or over the length: what rows are multiplied by is a symmetric matrix, and the other way its
/// conjugate over the length.
pub fn grad(
    e: &mut dyn Emit,
    call: &GradCall,
    other: &'static OpDef,
    over: bool,
) -> Result<Vec<Option<Cotangent>>> {
    let ty = &call.inputs[0];
    let inputs = vec![given(e, call, 0, ty)?, given(e, call, 1, ty)?];
    let made = e.emit(other, inputs, Attrs::None, Vec::new(), false)?;
    let count = emit::size(e, &ty.shape[ty.shape.rank() - 1], ty.dtype)?;
    let scaled = |e: &mut dyn Emit, x: Value| match over {
        true => emit::div(e, x, count.clone()),
        false => emit::mul(e, x, count.clone()),
    };
    made.into_iter().map(|x| Ok(emit::dense(scaled(e, x)?))).collect()
}

pub fn samples() -> Vec<Sample> {
    let of = |dtype, sizes: &[usize]| {
        let ty = TensorType::new(dtype, sizes);
        Sample::of(&[ty.clone(), ty], Attrs::None)
    };
    vec![
        of(DType::F64, &[2, 8]),
        of(DType::F64, &[3, 1]),
        of(DType::F64, &[2, 2]),
        of(DType::F64, &[15]),
        of(DType::F64, &[2, 2, 7]),
        of(DType::F64, &[17]),
        of(DType::F64, &[1001]),
        of(DType::F32, &[1024]),
        of(DType::F32, &[5, 360]),
        of(DType::F32, &[3, 74]),
        of(DType::F32, &[70, 12]),
        of(DType::F32, &[0, 6]),
    ]
}

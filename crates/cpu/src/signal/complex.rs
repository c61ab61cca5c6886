//! What the kernels of `fft` and `ifft` share, and what those of `rfft` and `irfft` take of it: scratch, and a loop
//! over groups of rows.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::lent::In;
use tonnage_core::row::Call;
use tonnage_core::{Bytes, DType};

use super::lanes::ReIm;
use super::method::FftMethod;
use super::plan::{FftPlan, FftWorkspace, plan_bytes, room_bytes, slot_bytes};
use super::tables::{two, two_bytes};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::field::Field;
use crate::number::with_real;
use crate::parallel::for_each_item;
use crate::strided;
use crate::workers::{Single, Workers};

/// The kernel of [`FFT`](tonnage_ops::signal::fft::FFT).
pub static FFT: KernelDef = KernelDef {
    run: |k| with_real!("fft", k.inputs[0].dtype, T => run::<T>(k, false)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

/// The kernel of [`IFFT`](tonnage_ops::signal::ifft::IFFT).
pub static IFFT: KernelDef = KernelDef {
    run: |k| with_real!("ifft", k.inputs[0].dtype, T => run::<T>(k, true)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

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

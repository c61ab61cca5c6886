//! The kernel of `irfft`.

use tonnage_core::error::Result;
use tonnage_core::{Bytes, Call, Dim};
use tonnage_ops::signal::irfft::length;

use super::real::{RealFft, scratch_of};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::field::Field;
use crate::number::with_real;

/// The kernel of [`IRFFT`](tonnage_ops::signal::irfft::IRFFT).
pub static IRFFT: KernelDef = KernelDef {
    run: |k| with_real!("irfft", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn scratch(call: &Call, threads: usize) -> Bytes {
    let n = length(call.attrs).ok().and_then(Dim::most).unwrap_or(0);
    call.inputs.first().map_or(Bytes::ZERO, |ty| scratch_of(n, ty.dtype, threads))
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let (re, im, out) = (&k.inputs[0], &k.inputs[1], &mut k.outputs[0]);
    let (sizes, out) = out.parts::<T>();
    let n = sizes.last().copied().unwrap_or(0);
    if out.is_empty() {
        return Ok(());
    }
    let mut rest = &mut *k.scratch;
    let half = RealFft::<T>::of(n, 1.0 / n as f64, &mut rest, k.workers)?;
    let rows = out.chunks_mut(half.group() * n).enumerate();
    half.for_each_group(rows, rest, k.workers, &|(number, out), group| {
        half.inverse([re, im], number * half.group(), out, group)
    })
}

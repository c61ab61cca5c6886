//! The kernel of `rfft`.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Bytes, Call};

use super::real::{RealFft, scratch_of};
use crate::kernel::{Kernel, KernelDef};
use crate::linalg::field::Field;
use crate::number::with_real;

/// The kernel of [`RFFT`](tonnage_ops::signal::rfft::RFFT).
pub static RFFT: KernelDef = KernelDef {
    run: |k| with_real!("rfft", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch,
    has_epilogue: false,
    streaming: None,
};

fn scratch(call: &Call, threads: usize) -> Bytes {
    let Some(ty) = call.inputs.first() else { return Bytes::ZERO };
    let n = ty.shape.last().and_then(|dim| dim.most()).unwrap_or(0);
    scratch_of(n, ty.dtype, threads)
}

fn kernel<T: Field>(k: &mut Kernel) -> Result<()> {
    let x = &k.inputs[0];
    let n = x.layout.sizes.last().copied().unwrap_or(0);
    let [re, im] = &mut *k.outputs else {
        return Err(bad_argument("rfft", "the kernel was lent no two outputs", "report this"));
    };
    let (re, im) = (re.slice::<T>(), im.slice::<T>());
    if re.is_empty() {
        return Ok(());
    }
    let mut rest = &mut *k.scratch;
    let half = RealFft::<T>::of(n, 1.0, &mut rest, k.workers)?;
    let size = half.group() * (n / 2 + 1);
    let rows = re.chunks_mut(size).zip(im.chunks_mut(size)).enumerate();
    half.for_each_group(rows, rest, k.workers, &|(number, (re, im)), group| {
        half.forward(x, number * half.group(), [re, im], group)
    })
}

//! The kernel of `slogdet`.

use tonnage_core::error::{Result, bad_argument};
use tonnage_core::{Bytes, DType};
use tonnage_ops::infer::elements;
use tonnage_ops::linalg::slogdet::batch_type;

use super::lu::Factor;
use super::solve::{FactoredMatrix, factors_bytes, for_each_factored};
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;

/// The kernel of [`SLOGDET`](tonnage_ops::linalg::slogdet::SLOGDET).
pub static SLOGDET: KernelDef = KernelDef {
    run: |k| with_real!("slogdet", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch: |call, threads| {
        let batch = batch_type("slogdet", call).map_or(0, |ty| elements(&ty)) as usize;
        let dtype = call.inputs.first().map_or(DType::F64, |ty| ty.dtype);
        Bytes::of(pairs_bytes(batch, dtype)) + factors_bytes(call, threads)
    },
    has_epilogue: false,
    streaming: None,
};

/// Both results of every matrix side by side: threads share one slice.
fn pairs_bytes(batch: usize, dtype: DType) -> usize {
    (batch * 2 * dtype.size()).next_multiple_of(64)
}

/// The sign and the logarithm of the product of the diagonal of U.
fn sign_and_log<T: Factor>(it: &FactoredMatrix<T>) -> (f64, f64) {
    let diagonal = (0..it.n).map(|i| it.factors[i * it.n + i].to_scalar().to_f64());
    let start = (if it.made.odd { -1.0 } else { 1.0 }, 0.0);
    diagonal.fold(start, |(sign, log), x| {
        let own = if x == 0.0 { 0.0 } else { x.signum() };
        (sign * own, log + x.abs().ln())
    })
}

fn kernel<T: Factor>(k: &mut Kernel) -> Result<()> {
    let a = &k.inputs[0];
    let [signs, logs] = &mut *k.outputs else {
        return Err(bad_argument("slogdet", "the kernel was lent no two outputs", "report this"));
    };
    let (signs, logs) = (signs.slice::<T>(), logs.slice::<T>());
    let (pairs, workspace) = k.scratch.split_at_mut(pairs_bytes(logs.len(), T::DTYPE));
    let pairs = &mut bytemuck::cast_slice_mut::<u8, [T; 2]>(pairs)[..logs.len()];
    for_each_factored::<T, [T; 2]>(a, (pairs, 1, 0), workspace, k.workers, &|it, out, _| {
        let (sign, log) = sign_and_log(&it);
        out[0] = [sign, log].map(|x| T::from_scalar(x.into()));
        Ok(())
    })?;
    for ((pair, sign), log) in pairs.iter().zip(signs).zip(logs) {
        [*sign, *log] = *pair;
    }
    Ok(())
}

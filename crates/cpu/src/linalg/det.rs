//! The kernel of `det`.

use tonnage_core::error::Result;

use super::lu::Factor;
use super::solve::{factors_bytes, for_each_factored};
use crate::kernel::{Kernel, KernelDef};
use crate::number::with_real;

/// The kernel of [`DET`](tonnage_ops::linalg::det::DET).
pub static DET: KernelDef = KernelDef {
    run: |k| with_real!("det", k.inputs[0].dtype, T => kernel::<T>(k)),
    scratch: factors_bytes,
    has_epilogue: false,
    streaming: None,
};

fn kernel<T: Factor>(k: &mut Kernel) -> Result<()> {
    let (a, out) = (&k.inputs[0], k.outputs[0].slice::<T>());
    for_each_factored::<T, T>(a, (out, 1, 0), k.scratch, k.workers, &|it, out, _| {
        let start = if it.made.odd { -T::ONE } else { T::ONE };
        out[0] = (0..it.n).fold(start, |product, i| product * it.factors[i * it.n + i]);
        Ok(())
    })
}

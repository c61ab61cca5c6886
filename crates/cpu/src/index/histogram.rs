//! The kernel of `histogram`: it counts as the one of `bincount` does.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::{Bytes, FromScalar, with_element};
use tonnage_ops::index::histogram::asked;

use super::bincount::{counted, partial_bytes};
use crate::kernel::{Kernel, KernelDef};
use crate::strided::Positions;

/// The kernel of [`HISTOGRAM`](tonnage_ops::index::histogram::HISTOGRAM).
pub static HISTOGRAM: KernelDef = KernelDef {
    run: kernel,
    scratch: |call, threads| {
        asked(call).map_or(Bytes::ZERO, |(_, _, bins)| partial_bytes(bins, threads))
    },
    has_epilogue: false,
    streaming: None,
};

fn kernel(k: &mut Kernel) -> Result<()> {
    let Attrs::Histogram { low, high, bins } = *k.attrs else { return Ok(()) };
    let (low, high) = (low.to_f64(), high.to_f64());
    let (x, out) = (&k.inputs[0], k.outputs[0].slice::<i64>());
    let scale = bins as f64 / (high - low);
    let bin = |value: f64| {
        let at = ((value - low) * scale).floor();
        (!value.is_nan()).then(|| at.clamp(0.0, (bins - 1) as f64) as usize)
    };
    with_element!(x.dtype, T => {
        let (data, positions) = (x.slice::<T>(), Positions::of(&x.layout));
        let of = |i: usize| bin(data[positions.at(i)].to_scalar().to_f64());
        counted(x.layout.count(), &of, out, k.scratch, k.workers)?;
    });
    Ok(())
}

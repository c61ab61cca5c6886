//! The kernel of `bincount`: parts of the input are counted side by side and added up. Counts are exact, so the number
//! of threads changes nothing.

use tonnage_core::Bytes;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::Call;

use super::indices::Indices;
use crate::kernel::{Kernel, KernelDef};
use crate::parallel::strides;
use crate::workers::{Workers, for_each_chunk};

/// Bins up to which parts are counted side by side.
const FEW: usize = 4096;

/// The kernel of [`BINCOUNT`](tonnage_ops::index::bincount::BINCOUNT).
pub static BINCOUNT: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

fn scratch(call: &Call, threads: usize) -> Bytes {
    match *call.attrs {
        Attrs::Count(bins) => partial_bytes(bins, threads),
        _ => Bytes::ZERO,
    }
}

/// Counts of the parts that are counted side by side.
pub(super) fn partial_bytes(bins: usize, threads: usize) -> Bytes {
    let parts = if bins <= FEW && threads > 1 { threads } else { 0 };
    Bytes::of(parts * bins * size_of::<i64>())
}

/// Counts `count` elements, each in the bin that `bin` gives it, into `out`.
pub(super) fn counted(
    count: usize,
    bin: &(dyn Fn(usize) -> Option<usize> + Sync),
    out: &mut [i64],
    scratch: &mut [u8],
    workers: &dyn Workers,
) -> Result<()> {
    out.fill(0);
    let put = |range: std::ops::Range<usize>, bins: &mut [i64]| {
        for range in strides(workers, range, 1) {
            for i in range {
                if let Some(bin) = bin(i) {
                    bins[bin] += 1;
                }
            }
        }
    };
    let bins = out.len();
    let partials: &mut [i64] = bytemuck::cast_slice_mut(scratch);
    let parts = partials.len().checked_div(bins).unwrap_or(0);
    if parts < 2 || count < 32 * 1024 {
        put(0..count, out);
        return workers.check();
    }
    for_each_chunk(workers, &mut partials[..parts * bins], bins, &|part, bins| {
        bins.fill(0);
        put(part * count / parts..(part + 1) * count / parts, bins);
    })?;
    for part in partials[..parts * bins].chunks(bins) {
        out.iter_mut().zip(part).for_each(|(sum, n)| *sum += n);
    }
    Ok(())
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let out = k.outputs[0].slice::<i64>();
    let numbers = Indices::checked("bincount", &k.inputs[0], out.len())?;
    counted(numbers.count(), &|i| Some(numbers.get(i)), out, k.scratch, k.workers)
}

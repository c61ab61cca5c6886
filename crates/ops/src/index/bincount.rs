//! `bincount`: how often each whole number from 0 up appears, as i64.
//!
//! A number that has no bin is an error. Parts of the input are counted side by side and added up: counts are exact,
//! so the number of threads changes nothing.

use smallvec::smallvec;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, Values};
use tonnage_core::workers::for_each_chunk;
use tonnage_core::{Bytes, DType, OpDef, TensorType, Workers};

use super::indices::Indices;
use crate::infer::{bad_attrs, cost, elements, inputs, integer};
use crate::parallel::strides;
use crate::rules;

/// Bins up to which parts are counted side by side.
const FEW: usize = 4096;

/// `x [..] -> i64 [n]`; how many bins as [`Attrs::Count`].
pub static BINCOUNT: OpDef = OpDef {
    name: "bincount",
    doc: "How often each whole number from 0 up appears, as i64.",
    infer,
    axes: |_| rules::axes::mixed(&[1]),
    mem: Mem::Alloc,
    scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(call.inputs.first().map_or(0, elements), made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("a count has no gradient"),
    jvp: Jvp::Stop("a count has no gradient"),
    fails: Fails::OnData,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("bincount", call)?;
    let Attrs::Count(bins) = *call.attrs else {
        return Err(bad_attrs("bincount", call.attrs, "how many bins"));
    };
    integer("bincount", x)?;
    Ok(smallvec![TensorType::new(DType::I64, [bins])])
}

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

fn samples() -> Vec<Sample> {
    let of = |dtype, shape: &[usize], bins| {
        Sample::of(&[TensorType::new(dtype, shape)], Attrs::Count(bins))
            .with(0, Values::Below(bins))
    };
    let integers = DType::ALL.into_iter().filter(|d| d.is_integer());
    let mut all: Vec<Sample> = integers.map(|d| of(d, &[3, 7], 5)).collect();
    all.extend([
        of(DType::I32, &[], 3),
        of(DType::I32, &[0], 3),
        of(DType::I64, &[40_000], 10),
        of(DType::I64, &[50], 5000),
    ]);
    all
}

//! The kernel of `unique`: scratch is a key and an index for every element, and a place for each that is different.

use bytemuck::cast_slice_mut;
use tonnage_core::Bytes;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::Call;
use tonnage_ops::index::argsort::counts_in_i32;
use tonnage_ops::infer::elements;

use super::argsort::sorted;
use super::order::{Ordered, Packed, in_order, packed_bytes, with_ordered};
use crate::kernel::{Kernel, KernelDef};
use crate::parallel::strides;
use crate::strided::Positions;

/// The kernel of [`UNIQUE`](tonnage_ops::index::unique::UNIQUE).
pub static UNIQUE: KernelDef =
    KernelDef { run: kernel, scratch, has_epilogue: false, streaming: None };

/// Packed elements, then a place for each that is different.
fn scratch(call: &Call, _: usize) -> Bytes {
    let n = call.inputs.first().map_or(0, elements);
    let packed = call.inputs.first().map_or(8, |ty| packed_bytes(ty.dtype)) as u64;
    Bytes::new(n.saturating_mul(packed + 8))
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let n = k.inputs[0].layout.count();
    counts_in_i32("unique", n)?;
    with_ordered!(k.inputs[0].dtype, T, P => unique::<T, P>(k, n))
}

fn unique<T: Ordered, P: Packed>(k: &mut Kernel, n: usize) -> Result<()> {
    let x = &k.inputs[0];
    let [values, places, counts] = &mut *k.outputs else {
        return Err(bad_argument("unique", "the kernel was lent no three outputs", "report this"));
    };
    let (packed, firsts) = k.scratch.split_at_mut(n * size_of::<P>());
    let packed: &mut [P] = cast_slice_mut(packed);
    sorted::<T, P>(x, 0, false, packed, k.workers)?;
    // For each run of equal ones: where its first element stands, and where the run starts.
    let firsts: &mut [u64] = cast_slice_mut(firsts);
    let mut count = 0;
    for range in strides(k.workers, 0..n, 1) {
        for i in range {
            if i == 0 || packed[i - 1].packed_key() != packed[i].packed_key() {
                firsts[count] = (packed[i].index() as u64) << 32 | i as u64;
                count += 1;
            }
        }
    }
    let firsts = &mut firsts[..count];
    in_order(firsts, k.workers)?;
    let (data, positions) = (x.slice::<T>(), Positions::of(&x.layout));
    values.sizes[0] = count;
    counts.sizes[0] = count;
    let (values, places, counts) =
        (values.slice::<T>(), places.slice::<i32>(), counts.slice::<i64>());
    // Runs are some elements long each, and one may be of all.
    for place in strides(k.workers, 0..count, n / count.max(1)).flatten() {
        let first = firsts[place];
        values[place] = data[positions.at((first >> 32) as usize)];
        let start = first as u32 as usize;
        let key = packed[start].packed_key();
        let run = packed[start..].iter().take_while(|p| p.packed_key() == key);
        counts[place] = 0;
        for equal in run {
            places[equal.index()] = place as i32;
            counts[place] += 1;
        }
    }
    k.workers.check()
}

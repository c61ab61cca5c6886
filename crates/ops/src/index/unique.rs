//! `unique`: the different elements of a vector in the order in which they first appear, where each element is
//! among them, and how often each appears.
//!
//! How many there are only the data decide. NaN equals NaN here, and 0 equals -0. Scratch is a key and an index for
//! every element, and a place for each that is different.

use bytemuck::cast_slice_mut;
use smallvec::smallvec;
use tonnage_core::error::{ErrorKind, Result, bad_argument};
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, Bytes, DType, Dim, OpDef, Symbol, TensorType};

use super::argsort::{counts_in_i32, sorted};
use super::order::{Ordered, Packed, in_order, packed_bytes, with_ordered};
use crate::infer::{cost, elements, inputs, no_attrs};
use crate::parallel::strides;
use crate::rules;
use crate::strided::Positions;

/// `x [n] -> (values [m], places i32 [n], counts i64 [m])`
pub static UNIQUE: OpDef = OpDef {
    name: "unique",
    doc: "The different elements of a vector, where each is among them, and how often each appears.",
    infer,
    axes: |_| rules::axes::mixed(&[1, 1, 1]),
    mem: Mem::Alloc,
    scratch,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        let flops = call.inputs.first().map_or(0, elements).saturating_mul(40);
        cost(flops, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("which elements are equal has no gradient"),
    jvp: Jvp::Stop("which elements are equal has no gradient"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [x] = inputs("unique", call)?;
    no_attrs("unique", call)?;
    let [length] = &x.shape[..] else {
        let (shape, expected) = (x.shape.clone(), "1 (reshape it to a vector first)".into());
        return Err(ErrorKind::RankMismatch { op: "unique", shape, expected }.into());
    };
    counts_in_i32("unique", length.known().unwrap_or(0))?;
    let count = Dim::symbol(Symbol::counted("unique_count", length.clone(), 0));
    let of =
        |dtype, length: &Dim| TensorType { dtype, shape: [length.clone()].into_iter().collect() };
    Ok(smallvec![of(x.dtype, &count), of(DType::I32, length), of(DType::I64, &count)])
}

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

fn samples() -> Vec<Sample> {
    let of = |dtype, n: usize| Sample::of(&[TensorType::new(dtype, [n])], Attrs::None);
    let mut all: Vec<Sample> = DType::ALL.into_iter().map(|d| of(d, 12)).collect();
    all.extend([of(DType::F32, 0), of(DType::F32, 1), of(DType::I8, 1025)]);
    all
}

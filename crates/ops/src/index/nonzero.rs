//! `nonzero`: the indices of all elements that are true, in order, as rows of i64.
//!
//! How many there are only the data decide: the type has a symbol of its own, bounded by the elements.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::kernel::Kernel;
use tonnage_core::row::{
    Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types, no_scratch,
};
use tonnage_core::{Attrs, DType, Dim, OpDef, Symbol, TensorType};

use super::mask::{BooleanMask, Owned, mask_type};
use crate::infer::{cost, inputs, no_attrs};
use crate::rules;

/// `mask [..] -> i64 [count, rank]`
pub static NONZERO: OpDef = OpDef {
    name: "nonzero",
    doc: "The indices of all elements that are true, in order, as rows of i64.",
    infer,
    axes: |_| rules::axes::mixed(&[2]),
    mem: Mem::Alloc,
    scratch: no_scratch,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Slices(kernel),
    samples,
};

fn infer(call: &Call) -> Result<Types> {
    let [mask] = inputs("nonzero", call)?;
    no_attrs("nonzero", call)?;
    mask_type("nonzero", mask)?;
    let count = Dim::symbol(Symbol::counted("true_count", mask.shape.elements(), 0));
    let shape = [count, Dim::Known(mask.shape.rank())].into_iter().collect();
    Ok(smallvec![TensorType { dtype: DType::I64, shape }])
}

fn kernel(k: &mut Kernel) -> Result<()> {
    let mask = BooleanMask::new(&k.inputs[0]);
    let sizes = &k.inputs[0].layout.sizes;
    let rank = sizes.len();
    let out = &mut k.outputs[0];
    out.sizes[0] = mask.count(0, mask.len());
    let rows = out.sizes[0] * rank;
    let out = &mut out.slice::<i64>()[..rows];
    mask.for_each_part(k.workers, out, rank, Owned::Selected, &|part, rows| {
        let mut rows = rows.chunks_mut(rank);
        for number in (part.start..part.start + part.len).filter(|i| mask.get(*i)) {
            let Some(row) = rows.next() else { return };
            let mut rest = number;
            for (to, size) in row.iter_mut().zip(sizes).rev() {
                *to = (rest % size) as i64;
                rest /= size;
            }
        }
    })?;
    Ok(())
}

fn samples() -> Vec<Sample> {
    let of = |shape: &[usize]| Sample::of(&[TensorType::new(DType::Bool, shape)], Attrs::None);
    vec![of(&[7]), of(&[3, 4]), of(&[2, 3, 2]), of(&[0]), of(&[3, 0]), of(&[1025]), of(&[64, 300])]
}

//! `nonzero`: the indices of all elements that are true, in order, as rows of i64.
//!
//! How many there are only the data decide: the type has a symbol of its own, bounded by the elements.

use smallvec::smallvec;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::{Attrs, DType, Dim, OpDef, Symbol, TensorType};

use crate::infer::mask_type;
use crate::infer::{cost, inputs, no_attrs};
use crate::{OpId, rules};

/// `mask [..] -> i64 [count, rank]`
pub static NONZERO: OpDef = OpDef {
    id: OpId::Nonzero as u16,
    name: "nonzero",
    doc: "The indices of all elements that are true, in order, as rows of i64.",
    infer,
    axes: |_| rules::axes::mixed(&[2]),
    mem: Mem::Alloc,
    saves: Saves::NOTHING,
    remat: Remat::Cheap,
    cost: |call| {
        let made = infer(call).unwrap_or_default();
        cost(0, made.iter().chain(call.inputs))
    },
    grad: Grad::Stop("an index has no gradient"),
    jvp: Jvp::Stop("an index has no gradient"),
    fails: Fails::Never,
    lower: Lower::Kernel,
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

fn samples() -> Vec<Sample> {
    let of = |shape: &[usize]| Sample::of(&[TensorType::new(DType::Bool, shape)], Attrs::None);
    vec![of(&[7]), of(&[3, 4]), of(&[2, 3, 2]), of(&[0]), of(&[3, 0]), of(&[1025]), of(&[64, 300])]
}

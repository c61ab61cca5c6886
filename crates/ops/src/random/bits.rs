//! `random_bits`: random bits of an integer; a recipe of a key.

use tonnage_core::error::Result;
use tonnage_core::recipe::Distribution;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::{DType, OpDef};

use crate::{OpId, rules};

/// Random bits of an integer.
pub static RANDOM_BITS: OpDef = OpDef {
    id: OpId::RandomBits as u16,
    name: "random_bits",
    doc: "Random bits of an integer; takes no bytes until it is written to.",
    infer,
    axes: |call| rules::axes::mixed(&[infer(call).map_or(0, |t| t[0].shape.rank())]),
    mem: Mem::Recipe,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: rules::cost::free,
    grad: Grad::Stop("it has no inputs"),
    jvp: Jvp::Stop("it has no inputs"),
    fails: Fails::Never,
    lower: Lower::Recipe(super::recipe),
    samples: || {
        let integers = DType::ALL.into_iter().filter(|d| d.is_integer());
        let small = integers.map(|d| super::of(Distribution::Bits, d, &[2, 3]));
        small.chain([super::of(Distribution::Bits, DType::U32, &[1025])]).collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    super::infer(call, Distribution::Bits)
}

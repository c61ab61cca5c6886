//! `random_below`: random whole numbers from 0 up to, without, a number; a recipe of a key.

use tonnage_core::error::Result;
use tonnage_core::recipe::Distribution;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves, Types};
use tonnage_core::{DType, OpDef};

use crate::{OpId, rules};

/// Random whole numbers from 0 up to, without, a number.
pub static RANDOM_BELOW: OpDef = OpDef {
    id: OpId::RandomBelow as u16,
    name: "random_below",
    doc: "Random whole numbers from 0 up to, without, a number; takes no bytes until it is written to.",
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
        let small = integers.map(|d| super::of(Distribution::Below(100), d, &[2, 3]));
        small
            .chain([
                super::of(Distribution::Below(1), DType::I32, &[]),
                super::of(Distribution::Below(1 << 40), DType::I64, &[0, 3]),
                super::of(Distribution::Below(7), DType::I32, &[1025]),
            ])
            .collect()
    },
};

fn infer(call: &Call) -> Result<Types> {
    let (distribution, dtype, shape) = super::asked(call)?;
    match distribution {
        Distribution::Below(_) => super::drawn(call.op, distribution, dtype, shape),
        _ => Err(rules::infer::wrong_attrs(call)),
    }
}

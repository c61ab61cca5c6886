//! Of which class a float is: `is_nan`, `is_inf`, `is_finite`. They give booleans.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, rules, samples};

/// Where an element is not a number.
pub static IS_NAN: OpDef =
    row(OpId::IsNan, "is_nan", "Where an element is not a number.", |call, _| {
        super::classified(call, Prim::IsNan)
    });

/// Where an element is either infinity.
pub static IS_INF: OpDef =
    row(OpId::IsInf, "is_inf", "Where an element is either infinity.", |call, _| {
        super::classified(call, Prim::IsInf)
    });

/// Where an element is neither NaN nor an infinity.
pub static IS_FINITE: OpDef = row(
    OpId::IsFinite,
    "is_finite",
    "Where an element is neither NaN nor an infinity.",
    |call, _| super::classified(call, Prim::IsFinite),
);

/// A class by one primitive.
const fn row(id: OpId, name: &'static str, doc: &'static str, program: Make) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: super::classify,
        axes: rules::axes::elementwise,
        mem: Mem::Alloc,
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost(call, super::classify, 1),
        grad: Grad::Stop("a class has no gradient"),
        jvp: Jvp::Stop("a class has no gradient"),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: samples::unary_float,
    }
}

/// The tile program of a call.
type Make = fn(&Call, bool) -> Result<TileProgram>;

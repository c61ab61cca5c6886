//! Whole numbers near a float: `floor`, `ceil`, `round`.

use tonnage_core::OpDef;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Fails, Grad, Jvp, Lower, Mem, Remat, Saves};
use tonnage_core::tile::{Prim, TileProgram};

use crate::{OpId, rules, samples};

/// The next whole number below.
pub static FLOOR: OpDef = row(OpId::Floor, "floor", "The next whole number below.", |call, _| {
    super::one(call, Prim::Floor)
});

/// The next whole number above.
pub static CEIL: OpDef =
    row(OpId::Ceil, "ceil", "The next whole number above.", |call, _| super::one(call, Prim::Ceil));

/// The nearest whole number; halves go to the even one.
pub static ROUND: OpDef =
    row(OpId::Round, "round", "The nearest whole number; halves go to the even one.", |call, _| {
        super::one(call, Prim::Round)
    });

/// A rounding by one primitive.
const fn row(id: OpId, name: &'static str, doc: &'static str, program: Make) -> OpDef {
    OpDef {
        id: id as u16,
        name,
        doc,
        infer: rules::infer::unary_float,
        axes: rules::axes::elementwise,
        mem: Mem::Reuse(&[0]),
        saves: Saves::NOTHING,
        remat: Remat::Cheap,
        cost: |call| super::cost_one(call, Prim::Round.flops()),
        grad: Grad::Rule(super::flat),
        jvp: Jvp::Rule(super::flat_jvp),
        fails: Fails::Never,
        lower: Lower::Tile(program),
        samples: samples::unary_float,
    }
}

/// The tile program of a call.
type Make = fn(&Call, bool) -> Result<TileProgram>;

//! `polygamma`: the slope of `digamma`, of a given order: 1 for the first.
//!
//! Infinite at 0 and at the negative integers NaN. Below 0 the first slope comes by reflection; higher ones are NaN there,
//! as they are in other libraries.

use tonnage_core::attrs::Attrs;
use tonnage_core::emit::Emit;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Save, Saves, Types};
use tonnage_core::tile::Prim;
use tonnage_core::{Call, OpDef};

use crate::infer::bad_attrs;
use crate::tile::{RuleInput, slope};
use crate::{OpId, rules, samples};

/// The slope of `digamma`; its order as [`Attrs::Count`].
pub static POLYGAMMA: OpDef = OpDef {
    id: OpId::Polygamma as u16,
    name: "polygamma",
    doc: "The slope of digamma, of a given order: 1 for the first.",
    infer,
    axes: rules::axes::elementwise,
    mem: Mem::Reuse(&[0]),
    saves: Saves::one_of(&[&[Save::Input(0).always()]]),
    remat: Remat::Cheap,
    cost: |call| super::cost_one(call, Prim::Polygamma.flops()),
    grad: Grad::Rule(grad),
    jvp: Jvp::Symmetric,
    fails: Fails::Never,
    lower: Lower::Tile(|call, _| {
        let order = order(call.attrs)?;
        super::several(call, |p, x| {
            let order = p.number(order, x);
            p.two(Prim::Polygamma, order, x)
        })
    }),
    samples: || {
        let of = |order, low, high| {
            samples::with_attrs(samples::unary_float_between(low, high), Attrs::Count(order))
        };
        [of(1, 0.3, 20.0), of(2, 0.5, 6.0), of(3, 0.5, 6.0)].concat()
    },
};

/// The highest order whose factorial an f64 holds.
const MOST: usize = 170;

fn order(attrs: &Attrs) -> Result<usize> {
    match *attrs {
        Attrs::Count(order @ 1..=MOST) => Ok(order),
        Attrs::Count(order) => {
            let what = format!("the slope of order {order}");
            let help = "use an order from 1 to 170; `digamma` is that of order 0";
            Err(bad_argument("polygamma", what, help))
        }
        _ => Err(bad_attrs("polygamma", attrs, "the order of the slope")),
    }
}

fn infer(call: &Call) -> Result<Types> {
    order(call.attrs)?;
    rules::infer::unary_float(call)
}

fn grad(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let order = order(call.attrs)?;
    Ok(vec![slope(e, call, 0, [RuleInput::Grad, RuleInput::Input(0)], |p, [g, x]| {
        let next = p.number(order + 1, x);
        let slope = p.two(Prim::Polygamma, next, x);
        p.mul(g, slope)
    })?])
}

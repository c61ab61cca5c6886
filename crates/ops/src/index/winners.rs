//! The gradient of a scatter that keeps an extreme: those that are it share it evenly.

use tonnage_core::emit::{Emit, Value};
use tonnage_core::error::Result;
use tonnage_core::grad::{Cotangent, GradCall};
use tonnage_core::tile::Prim;

use super::gather_nd::GATHER_ND;
use super::scatter_nd_add::SCATTER_ND_ADD;
use crate::emit;
use crate::tile::{Ending, pass};

/// The rule of `scatter_nd_max` and `scatter_nd_min`.
pub fn shared(e: &mut dyn Emit, call: &GradCall) -> Result<Vec<Option<Cotangent>>> {
    let (g, indices, y) = (call.grad()?, call.input(1)?, call.output(0)?);
    let (table, rows) = (call.input(0)?, call.input(2)?);
    let reached = e.apply(&GATHER_ND, vec![y.clone(), indices.clone()], call.attrs.clone())?;
    let from_table = hits(e, table, y)?;
    let from_rows = hits(e, rows, reached)?;
    let counted = vec![from_table.clone(), indices.clone(), from_rows.clone()];
    let counted = e.apply(&SCATTER_ND_ADD, counted, call.attrs.clone())?;
    let share = emit::div(e, g, counted)?;
    let of_rows = match call.needs[2] {
        true => {
            let reached = vec![share.clone(), indices];
            let reached = e.apply(&GATHER_ND, reached, call.attrs.clone())?;
            emit::dense(emit::mul(e, from_rows, reached)?)
        }
        false => None,
    };
    let of_table = match call.needs[0] {
        true => emit::dense(emit::mul(e, from_table, share)?),
        false => None,
    };
    Ok(vec![of_table, None, of_rows])
}

/// 1 where both are equal, 0 elsewhere.
fn hits(e: &mut dyn Emit, a: Value, b: Value) -> Result<Value> {
    let dtype = a.ty().dtype;
    pass(e, [a, b], Ending::Store(dtype), |p, [a, b]| {
        let hit = p.two(Prim::Eq, a, b);
        p.cast(hit, dtype)
    })
}

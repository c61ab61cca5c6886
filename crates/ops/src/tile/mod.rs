//! Tile programs: elementwise chains with their broadcasts, casts and closing reduction, as data. What they run over,
//! how they are composed of recipes, how gradient rules write and differentiate them, and the ops that are such a
//! program.

pub mod chain;
mod compose;
mod derive;
pub mod file_order;
pub mod fused;
pub mod fused_store;
pub mod fused_update;
mod limits;
mod scalar;
mod slopes;
pub mod stored;

pub use chain::{Chain, Ending, RuleInput, pass, slope};
pub use compose::{Composed, chained, compose};
pub use limits::{TileLimits, last_uses, registers};
pub use scalar::element;
pub use stored::in_order;

use tonnage_core::error::Result;
use tonnage_core::row::Call;
use tonnage_core::shape::Shape;
use tonnage_core::tile::{Form, TileProgram};

/// What a program runs over: its inputs broadcast together. Bits have no shape of their own.
pub fn domain(call: &Call, program: &TileProgram) -> Result<Shape> {
    let mut domain = Shape::scalar();
    for (ty, form) in call.inputs.iter().zip(&program.loads) {
        if matches!(form, Form::Elements(_)) {
            domain = domain.broadcast(&ty.shape, call.op)?;
        }
    }
    Ok(domain)
}

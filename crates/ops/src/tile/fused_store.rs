//! `store`: a chain of elementwise ops whose result goes to a file, a piece at a time.
//!
//! A program makes it for what a variable that is stored in files becomes; users never see it. Nothing that it writes is
//! anybody's before the call ends, so it is no effect: it may run as soon as what it reads is there.
//!
//! Decision: `docs/decisions/variables-in-files.md`.

use tonnage_core::attrs::Attrs;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::row::{Fails, Grad, Jvp, Lower, Mem, Remat, Sample, Saves, Types};
use tonnage_core::tile::{Close, Form, TileProgram};
use tonnage_core::{Call, DType, OpDef};

use super::fused;
use crate::OpId;

/// A chain of elementwise ops whose result goes to a file.
pub static STORE: OpDef = OpDef {
    id: OpId::Store as u16,
    name: "store",
    doc: "A chain of elementwise ops whose result goes to a file, a piece at a time.",
    infer,
    axes: fused::axes,
    mem: Mem::File,
    saves: Saves::NOTHING,
    remat: Remat::Costly,
    cost: fused::cost,
    grad: Grad::Stop("it is made behind every gradient"),
    jvp: Jvp::Stop("it is made behind every gradient"),
    fails: Fails::OnIo,
    lower: Lower::Tile(|call, _| fused::program(call).cloned()),
    samples: Vec::<Sample>::new,
};

/// What makes it write a value as it is.
pub fn as_it_is(dtype: DType) -> Attrs {
    let mut program = TileProgram::loading(&[dtype]);
    program.store(0, dtype);
    Attrs::Tile(Box::new(program))
}

fn infer(call: &Call) -> Result<Types> {
    let program = fused::program(call)?;
    let elements = matches!(program.stores.as_slice(), [(_, Form::Elements(_))]);
    match program.close == Close::Store && elements {
        true => fused::infer(call),
        false => Err(bad_argument(call.op, "a reduction, or bits", "a file holds elements")),
    }
}

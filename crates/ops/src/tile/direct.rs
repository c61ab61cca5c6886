//! One instruction over elements that lie as they are computed: what most small eager ops are. There is
//! nothing to make ready, so the function is called at once.

use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::tile::{Close, Form, TileProgram};

use super::resolve::{Function, resolve};
use crate::simd::level;

/// Whether a program is one instruction on elements as they lie.
pub fn is_direct(program: &TileProgram) -> bool {
    let as_stored = |form: &Form| matches!(form, Form::Elements(d) if d.compute() == *d);
    match (program.code.as_slice(), program.stores.as_slice()) {
        ([instr], [(reg, Form::Elements(stored))]) => {
            program.close == Close::Store
                && instr.prim.arity() > 0
                && *reg as usize == program.loads.len()
                && instr.result() == *stored
                && program.loads.iter().all(as_stored)
        }
        _ => false,
    }
}

/// Runs a program of one instruction over inputs that lie close together in the domain's order, or have
/// one element for all. The program [`is_direct`].
pub fn direct(program: &TileProgram, inputs: &[&[u8]], out: &mut [u8]) -> Result<()> {
    debug_assert!(is_direct(program), "{program}");
    let Some(instr) = program.code.first() else { return Ok(()) };
    let mut args: SmallVec<[&[u8]; 3]> = SmallVec::new();
    for reg in &instr.args {
        args.push(inputs[*reg as usize]);
    }
    match (resolve(instr)?, args.as_slice()) {
        (Function::One(f), [a]) => f(level(), out, a),
        (Function::Two(f), [a, b]) => f(level(), out, a, b),
        (Function::Three(f), [a, b, c]) => f(level(), out, a, b, c),
        _ => {
            let what = format!("{:?} with {} operands", instr.prim, args.len());
            return Err(ErrorKind::BadGraph { what }.into());
        }
    }
    Ok(())
}

//! One instruction over elements that lie as they are computed: what most small eager ops are. There is
//! nothing to make ready, so its function is called at once; and which function that is follows from the op and
//! the dtypes, so each thread remembers it.

use std::cell::Cell;

use tonnage_core::DType;
use tonnage_core::attrs::Attrs;
use tonnage_core::error::Result;
use tonnage_core::row::{Call, Lower, OpDef};
use tonnage_core::tile::{Close, Form, TileProgram};

use super::resolve::{PrimitiveFn, resolve};
use tonnage_simd::level;

/// Operands of an instruction, at most.
const MOST: usize = 3;

/// One instruction, and which inputs are its operands.
#[derive(Clone, Copy)]
pub struct DirectOp {
    function: PrimitiveFn,
    args: [u8; MOST],
}

impl DirectOp {
    /// Of a program that is one instruction on elements as they lie.
    fn of(program: &TileProgram) -> Result<Option<DirectOp>> {
        let as_stored = |form: &Form| matches!(form, Form::Elements(d) if d.compute() == *d);
        let ([instr], [(reg, Form::Elements(stored))]) =
            (program.code.as_slice(), program.stores.as_slice())
        else {
            return Ok(None);
        };
        let is_direct = program.close == Close::Store
            && instr.prim.arity() > 0
            && *reg as usize == program.loads.len()
            && instr.result() == *stored
            && program.loads.len() <= MOST
            && program.loads.iter().all(as_stored);
        if !is_direct {
            return Ok(None);
        }
        let mut args = [0; MOST];
        for (to, reg) in args.iter_mut().zip(&instr.args) {
            *to = *reg as u8;
        }
        Ok(Some(DirectOp { function: resolve(instr)?, args }))
    }

    /// Runs it over inputs that lie close together in the result's order, or have one element for all.
    pub fn run(&self, inputs: [&[u8]; MOST], out: &mut [u8]) {
        let [a, b, c] = self.args.map(|i| inputs[i as usize]);
        match self.function {
            PrimitiveFn::One(f) => f(level(), out, a),
            PrimitiveFn::Two(f) => f(level(), out, a, b),
            PrimitiveFn::Three(f) => f(level(), out, a, b, c),
            // Through 16 bits: never stored as it is computed.
            PrimitiveFn::Round(..) => {}
        }
    }
}

/// An op and its inputs' dtypes, and what was found for them.
#[derive(Clone, Copy)]
struct DirectEntry {
    op: usize,
    dtypes: u32,
    direct: Option<DirectOp>,
}

/// Entries of the cache; of two that map to the same entry the later one replaces the earlier.
const ENTRIES: usize = 64;

thread_local! {
    static KNOWN: [Cell<DirectEntry>; ENTRIES] =
        const { [const { Cell::new(DirectEntry { op: 0, dtypes: 0, direct: None }) }; ENTRIES] };
}

/// The one instruction that a tile op is on inputs of these dtypes, if it is one. Attributes may mean anything,
/// so nothing is known of an op that has some.
pub fn direct(op: &'static OpDef, call: &Call) -> Result<Option<DirectOp>> {
    let Lower::Tile(make) = op.lower else { return Ok(None) };
    if call.inputs.len() > MOST || !matches!(call.attrs, Attrs::None) {
        return Ok(None);
    }
    let key = |ty: DType| 1 + ty as u32;
    let dtypes = call.inputs.iter().fold(0, |all, ty| all << 8 | key(ty.dtype));
    let at = std::ptr::from_ref(op).addr();
    let place = ((at / align_of::<OpDef>()) ^ dtypes as usize) % ENTRIES;
    let known = KNOWN.try_with(|known| known[place].get()).ok();
    if let Some(known) = known.filter(|known| known.op == at && known.dtypes == dtypes) {
        return Ok(known.direct);
    }
    let direct = DirectOp::of(&make(call, false)?)?;
    // A thread that is ending forgets.
    let _ = KNOWN.try_with(|known| known[place].set(DirectEntry { op: at, dtypes, direct }));
    Ok(direct)
}

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
use super::source::{Read, TileSource};
use tonnage_simd::level;

/// Operands of an instruction, at most.
const MOST: usize = 3;

/// One instruction, and which inputs are its operands.
#[derive(Clone, Copy)]
pub struct DirectOp {
    function: PrimitiveFn,
    args: [u8; MOST],
    output: DType,
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
        Ok(Some(DirectOp { function: resolve(instr)?, args, output: *stored }))
    }

    /// The dtype of its result.
    #[inline]
    pub fn output(&self) -> DType {
        self.output
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

/// Where an op on inputs of these dtypes has its entry, and what tells it from others that have the same.
#[inline]
fn key(op: &'static OpDef, dtypes: impl Iterator<Item = DType>) -> (usize, usize, u32) {
    let dtypes = dtypes.fold(0, |all, dtype| all << 8 | (1 + dtype as u32));
    let at = std::ptr::from_ref(op).addr();
    (((at / align_of::<OpDef>()) ^ dtypes as usize) % ENTRIES, at, dtypes)
}

fn found((place, op, dtypes): (usize, usize, u32)) -> Option<DirectEntry> {
    let known = KNOWN.try_with(|known| known[place].get()).ok();
    known.filter(|known| known.op == op && known.dtypes == dtypes)
}

/// The one instruction that a tile op without attributes was on inputs of these dtypes, where it ran on this thread before. The result of
/// inputs of one shape has that shape too.
#[inline]
pub fn known(op: &'static OpDef, dtypes: impl Iterator<Item = DType>) -> Option<DirectOp> {
    found(key(op, dtypes))?.direct
}

/// The one instruction that a tile op is on inputs of these dtypes, if it is one. Attributes may mean anything,
/// so nothing is known of an op that has some.
pub fn direct(op: &'static OpDef, call: &Call) -> Result<Option<DirectOp>> {
    let Lower::Tile(make) = op.lower else { return Ok(None) };
    if call.inputs.len() > MOST || !matches!(call.attrs, Attrs::None) {
        return Ok(None);
    }
    let key = key(op, call.inputs.iter().map(|ty| ty.dtype));
    if let Some(known) = found(key) {
        return Ok(known.direct);
    }
    let direct = DirectOp::of(&make(call, false)?)?;
    let (place, op, dtypes) = key;
    // A thread that is ending forgets.
    let _ = KNOWN.try_with(|known| known[place].set(DirectEntry { op, dtypes, direct }));
    Ok(direct)
}

/// Elements that one thread runs over at once.
const FEW: usize = 4096;

/// Runs a program that is one instruction over few elements as they lie: nothing is made ready for that. False of any other.
pub fn run_few(
    program: &TileProgram,
    domain: &[usize],
    sources: &[TileSource],
    outputs: &mut [&mut [u8]],
) -> Result<bool> {
    let (1, [out]) = (program.code.len(), outputs) else { return Ok(false) };
    let count: usize = domain.iter().product();
    if count > FEW || sources.len() > MOST {
        return Ok(false);
    }
    let mut inputs: [&[u8]; MOST] = [&[]; MOST];
    for ((input, source), form) in inputs.iter_mut().zip(sources).zip(&program.loads) {
        let (Read::Slice(bytes), Form::Elements(dtype)) = (&source.read, form) else {
            return Ok(false);
        };
        let (start, length) = (source.layout.offset * dtype.size(), count * dtype.size());
        let own = bytes.get(start..start + length);
        let Some(own) = own.filter(|_| source.layout.is_contiguous()) else { return Ok(false) };
        *input = own;
    }
    let Some(direct) = DirectOp::of(program)? else { return Ok(false) };
    direct.run(inputs, out);
    Ok(true)
}

//! A program made ready to run: primitives resolved, constants computed, registers given locations.

use bytemuck::{bytes_of, bytes_of_mut, cast_slice, cast_slice_mut};
use smallvec::SmallVec;
use tonnage_core::error::{Error, ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Generator;
use tonnage_core::tile::{Close, Form, Instr, Prim, Reg, TileProgram};
use tonnage_core::{DType, FromScalar, with_element};
use tonnage_ops::tile::{TileLimits, last_uses, registers};

use super::resolve::{PrimitiveFn, resolve};
use super::source::{Read, Reader, TileSource};
use tonnage_simd::cast::cast;
use tonnage_simd::level;

/// Bytes of a register's tile.
const SLOT: usize = 4096;

/// A register's tile: 4 KiB. At a cache line, since vectors that lie across two are read and written twice.
#[derive(Clone, Copy)]
#[repr(align(64))]
pub struct TileSlot {
    elements: [u64; SLOT / size_of::<u64>()],
    /// Of a load that repeats: which of its elements is the first, and how many there are.
    repeats: (usize, usize),
}

impl TileSlot {
    pub const EMPTY: TileSlot = TileSlot { elements: [0; SLOT / 8], repeats: (0, 0) };

    pub fn bytes(&self) -> &[u8] {
        cast_slice(&self.elements)
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        cast_slice_mut(&mut self.elements)
    }

    /// Notes which elements of what repeats are about to be here; false where they are already.
    pub fn turns_to(&mut self, first: usize, len: usize) -> bool {
        let there = self.repeats.0 == first && len <= self.repeats.1;
        if !there {
            self.repeats = (first, len);
        }
        !there
    }
}

/// Registers that are alive at once, at most: 128 KiB of stack.
pub const MOST_SLOTS: usize = 32;

/// Loads and instructions of a program, at most. All lists of a program that is made ready are on the stack.
pub const MOST_REGISTERS: usize = 128;

/// Outputs of a program, at most.
pub const MOST_STORES: usize = 4;

/// Programs that can be made ready, whatever their sources are.
pub const LIMITS: TileLimits =
    TileLimits { registers: MOST_REGISTERS, stores: MOST_STORES, live: MOST_SLOTS };

/// Where a register's value is while a tile runs.
#[derive(Clone, Copy)]
pub enum RegisterLocation<'a> {
    /// The same for every element: its bits.
    Scalar(u64),
    /// In these bytes, from that position on.
    Memory { bytes: &'a [u8], first: usize },
    /// In a slot.
    Slot(usize),
    /// In the output of that number, straight away.
    Output(usize),
    /// What the output of that number holds before the tile is stored.
    Before(usize),
    /// It has no readers.
    Nowhere,
}

/// How a load fills its slot.
pub enum LoadSource<'a> {
    Gather {
        from: &'a [u8],
        reader: Reader<'a>,
        layout: &'a Layout,
    },
    Generate {
        generator: &'a Generator,
        reader: Reader<'a>,
    },
    /// In place: from the output, which lies in the domain's order.
    Output(usize),
    Bits(&'a [u8]),
}

/// A load that has to be brought before the tile runs.
pub struct Load<'a> {
    pub fetch: LoadSource<'a>,
    pub slot: usize,
    /// As it lies in memory.
    pub stored: DType,
    /// As the register holds it.
    pub held: DType,
    /// After how many elements it repeats, where a tile holds that many: what a tile has brought the next need not bring.
    pub period: Option<usize>,
}

/// An instruction with its function.
pub struct TileInstruction<'a> {
    pub function: PrimitiveFn,
    pub reg: Reg,
    pub args: &'a [Reg],
    pub result: DType,
}

/// A program made ready. It is large and stays where it is made.
pub struct Ready<'a> {
    pub program: &'a TileProgram,
    pub loads: SmallVec<[Load<'a>; MOST_SLOTS]>,
    pub steps: SmallVec<[TileInstruction<'a>; MOST_REGISTERS]>,
    pub locations: SmallVec<[RegisterLocation<'a>; MOST_REGISTERS]>,
    pub slots: usize,
    /// Elements in a tile.
    pub tile: usize,
    /// The next tile is asked for while one is computed.
    pub ahead: bool,
    /// Results are written past the caches.
    pub far: bool,
}

impl<'a> Ready<'a> {
    pub fn empty(program: &'a TileProgram) -> Ready<'a> {
        Ready {
            program,
            loads: SmallVec::new(),
            steps: SmallVec::new(),
            locations: SmallVec::new(),
            slots: 0,
            tile: tile_length(program),
            ahead: false,
            far: false,
        }
    }

    /// Whether results can be made beside where they go: nothing is read from there, and a tile of each fits a slot.
    pub fn stores_apart(&self) -> bool {
        let fits = |form: &Form| match form {
            Form::Elements(dtype) => self.tile * dtype.size() <= SLOT,
            Form::Bits => true,
        };
        self.program.stores.iter().all(|(_, form)| fits(form))
            && !self.loads.iter().any(|load| matches!(load.fetch, LoadSource::Output(_)))
            && !self.locations.iter().any(|at| matches!(at, RegisterLocation::Before(_)))
    }

    /// Whether something comes from outside of memory.
    pub fn reads_files(&self) -> bool {
        self.loads.iter().any(
            |load| matches!(load.fetch, LoadSource::Generate { generator, .. } if generator.is_stored()),
        )
    }

    /// Resolves the program for what it reads.
    pub fn resolve(&mut self, sources: &'a [TileSource<'a>]) -> Result<()> {
        let program = self.program;
        if sources.len() != program.loads.len() {
            let what = format!("{} sources for {} loads", sources.len(), program.loads.len());
            return Err(ErrorKind::BadGraph { what }.into());
        }
        if registers(program) > MOST_REGISTERS || program.stores.len() > MOST_STORES {
            return Err(too_large(program));
        }
        let last = last_uses(program);
        let mut free = Free::default();
        for (i, source) in sources.iter().enumerate() {
            let location = match last[i] {
                0 => RegisterLocation::Nowhere,
                _ => match in_place(program, i as Reg, source) {
                    Some(output) => RegisterLocation::Before(output),
                    None => self.load(program.loads[i], source, &mut free)?,
                },
            };
            self.locations.push(location);
        }
        for (i, instr) in program.code.iter().enumerate() {
            let reg = (program.loads.len() + i) as Reg;
            let location = match last[reg as usize] {
                0 => RegisterLocation::Nowhere,
                _ => self.instruction(instr, reg, &mut free)?,
            };
            self.locations.push(location);
            for arg in &instr.args {
                let dies = usize::from(last[*arg as usize]) == i + 1;
                if let (true, RegisterLocation::Slot(slot)) = (dies, self.locations[*arg as usize])
                    && !self.loads.iter().any(|load| load.slot == slot && load.period.is_some())
                {
                    free.give(slot);
                }
            }
        }
        self.slots = free.most;
        Ok(())
    }

    /// Where an instruction's result goes. Its slot is taken before those of its operands are given back:
    /// never in place.
    fn instruction(
        &mut self,
        instr: &'a Instr,
        reg: Reg,
        free: &mut Free,
    ) -> Result<RegisterLocation<'a>> {
        if let Prim::Const(value) = instr.prim {
            let mut bits = 0u64;
            with_element!(instr.dtype, T => {
                let value: T = T::from_scalar(value);
                bytes_of_mut(&mut bits)[..size_of::<T>()].copy_from_slice(bytes_of(&value));
            });
            return Ok(RegisterLocation::Scalar(bits));
        }
        let (function, result) = (resolve(instr)?, instr.result());
        let step = TileInstruction { function, reg, args: &instr.args, result };
        if step
            .args
            .iter()
            .all(|r| matches!(self.locations[*r as usize], RegisterLocation::Scalar(_)))
        {
            return Ok(RegisterLocation::Scalar(self.once(&step)));
        }
        self.steps.push(step);
        match direct_store(self.program, reg) {
            Some(output) => Ok(RegisterLocation::Output(output)),
            None => Ok(RegisterLocation::Slot(free.take().ok_or_else(|| too_large(self.program))?)),
        }
    }

    /// Where a load's value is.
    fn load(
        &mut self,
        form: Form,
        source: &'a TileSource<'a>,
        free: &mut Free,
    ) -> Result<RegisterLocation<'a>> {
        let held = form.register();
        let reader = Reader::new(&source.layout);
        let stored = match form {
            Form::Elements(dtype) => dtype,
            Form::Bits => DType::Bool,
        };
        let read = match &source.read {
            Read::Generator(Generator::Stored { elements, .. }) => match elements.0.mapped() {
                Some(bytes) => Read::Slice(bytes),
                None => source.read,
            },
            read => *read,
        };
        let fetch = match (form, &read) {
            (Form::Bits, Read::Slice(bytes)) => LoadSource::Bits(bytes),
            (Form::Elements(_), Read::Slice([])) => return Ok(RegisterLocation::Scalar(0)), // never read
            (Form::Elements(_), Read::Slice(bytes)) if reader.is_uniform() => {
                let mut raw = 0u64;
                reader.gather(stored, bytes, 0, &mut bytes_of_mut(&mut raw)[..stored.size()]);
                return Ok(RegisterLocation::Scalar(widened(stored, held, raw)));
            }
            (Form::Elements(_), Read::Slice(bytes)) => match reader.contiguous() {
                Some(first) if stored == held => {
                    return Ok(RegisterLocation::Memory { bytes, first });
                }
                _ => LoadSource::Gather { from: bytes, reader, layout: &source.layout },
            },
            (_, Read::Output(output)) => LoadSource::Output(*output),
            // A number that each call brings, a counter at one place: made once, not once an element.
            (Form::Elements(_), Read::Generator(generator))
                if reader.is_uniform() && !source.layout.sizes.contains(&0) =>
            {
                let mut raw = 0u64;
                reader.generate(generator, 0, &mut bytes_of_mut(&mut raw)[..stored.size()]);
                return Ok(RegisterLocation::Scalar(widened(stored, held, raw)));
            }
            (_, Read::Generator(generator)) => LoadSource::Generate { generator, reader },
        };
        let slot = free.take().ok_or_else(|| too_large(self.program))?;
        // Its slot is nobody else's then: there have to be enough for that.
        let keeps =
            matches!(fetch, LoadSource::Gather { .. }) && registers(self.program) <= MOST_SLOTS;
        let period = period(&source.layout).filter(|n| keeps && *n <= self.tile);
        self.loads.push(Load { fetch, slot, stored, held, period });
        Ok(RegisterLocation::Slot(slot))
    }

    /// The value of a step whose operands are all scalars.
    fn once(&self, step: &TileInstruction) -> u64 {
        let mut bits = 0u64;
        let arg = |i: usize| match self.locations[step.args[i] as usize] {
            RegisterLocation::Scalar(bits) => bits,
            _ => 0,
        };
        let size = |i: usize| self.program.register(step.args[i]).size();
        let (a, b, c) = (
            arg(0),
            if step.args.len() > 1 { arg(1) } else { 0 },
            if step.args.len() > 2 { arg(2) } else { 0 },
        );
        let out = &mut bytes_of_mut(&mut bits)[..step.result.size()];
        match step.function {
            PrimitiveFn::One(f) => f(level(), out, &bytes_of(&a)[..size(0)]),
            PrimitiveFn::Two(f) => {
                f(level(), out, &bytes_of(&a)[..size(0)], &bytes_of(&b)[..size(1)])
            }
            PrimitiveFn::Three(f) => f(
                level(),
                out,
                &bytes_of(&a)[..size(0)],
                &bytes_of(&b)[..size(1)],
                &bytes_of(&c)[..size(2)],
            ),
            PrimitiveFn::Round(narrow, wide) => {
                let mut half = 0u16;
                narrow(level(), bytes_of_mut(&mut half), &bytes_of(&a)[..size(0)]);
                wide(level(), out, bytes_of(&half));
            }
        }
        bits
    }
}

#[cold]
fn too_large(program: &TileProgram) -> Error {
    let (registers, stores) = (registers(program), program.stores.len());
    let what = format!("a tile program of {registers} registers and {stores} results does not fit");
    ErrorKind::BadGraph { what }.into()
}

/// Slots that are taken and given back: those that are free as bits.
#[derive(Default)]
struct Free {
    back: u32,
    most: usize,
}

const _: () = assert!(MOST_SLOTS <= u32::BITS as usize);

impl Free {
    fn take(&mut self) -> Option<usize> {
        if self.back != 0 {
            let slot = self.back.trailing_zeros();
            self.back &= self.back - 1;
            return Some(slot as usize);
        }
        self.most += 1;
        (self.most <= MOST_SLOTS).then(|| self.most - 1)
    }

    fn give(&mut self, slot: usize) {
        self.back |= 1 << slot;
    }
}

/// The output that a register can be computed straight into: where it is stored once, as it is, and read
/// by nothing else.
fn direct_store(program: &TileProgram, reg: Reg) -> Option<usize> {
    let mut stores = program.stores.iter().enumerate().filter(|(_, (r, _))| *r == reg);
    let (output, (_, form)) = stores.next()?;
    let once = stores.next().is_none();
    let same = *form == Form::Elements(program.register(reg));
    let read = program.code.iter().any(|i| i.args.contains(&reg));
    (program.close == Close::Store && same && once && !read).then_some(output)
}

/// The output that a load is of, where that is read where it lies: it is overwritten by the last instruction alone, which does not
/// read it.
fn in_place(program: &TileProgram, reg: Reg, source: &TileSource) -> Option<usize> {
    let (Read::Output(output), [(stored, _)]) = (&source.read, program.stores.as_slice()) else {
        return None;
    };
    let last = registers(program).checked_sub(1)? as Reg;
    let (own, writer) = (program.loads[reg as usize], program.code.last()?);
    let kept = *stored == last && *output == 0 && !writer.args.contains(&reg);
    (kept && own == Form::Elements(own.register()) && direct_store(program, last).is_some())
        .then_some(*output)
}

/// Elements in a tile: as many as fit into a slot, of the widest register.
fn tile_length(program: &TileProgram) -> usize {
    let widest =
        (0..registers(program)).map(|r| program.register(r as Reg).size()).max().unwrap_or(8);
    SLOT / widest.max(4)
}

/// After how many elements of the domain a load repeats, where it does.
fn period(layout: &Layout) -> Option<usize> {
    let outer = layout
        .sizes
        .iter()
        .zip(&layout.strides)
        .take_while(|(n, stride)| **n == 1 || **stride == 0);
    let (axes, times) = outer.fold((0, 1), |(axes, times), (n, _)| (axes + 1, times * n));
    (times > 1).then(|| layout.sizes[axes..].iter().product())
}

/// One element as a register holds it.
fn widened(stored: DType, held: DType, raw: u64) -> u64 {
    let mut wide = 0u64;
    let out = &mut bytes_of_mut(&mut wide)[..held.size()];
    cast(stored, held)(level(), out, &bytes_of(&raw)[..stored.size()]);
    wide
}

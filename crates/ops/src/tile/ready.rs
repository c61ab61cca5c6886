//! A program made ready to run: primitives resolved, constants computed, registers given places.

use bytemuck::{bytes_of, bytes_of_mut};
use smallvec::SmallVec;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::recipe::Generator;
use tonnage_core::tile::{Form, Prim, Reg, TileProgram};
use tonnage_core::{DType, FromScalar, with_element};

use super::resolve::{Function, resolve};
use super::source::{Read, Runs, Source};
use crate::simd::cast::cast;
use crate::simd::level;

/// A register's tile: 4 KiB.
pub type Slot = [u64; 512];
/// Registers that are alive at once, at most: 128 KiB of stack.
pub const MOST_SLOTS: usize = 32;

/// Where a register's value is while a tile runs.
#[derive(Clone, Copy)]
pub enum Place {
    /// The same for every element: its bits.
    Scalar(u64),
    /// In the bytes that load reads, from that position on.
    Memory { load: usize, first: usize },
    /// In a slot.
    Slot(usize),
    /// In the output of that number, straight away.
    Output(usize),
    /// Nobody reads it.
    Nowhere,
}

/// How a load fills its slot.
pub enum Fetch<'a> {
    Gather {
        from: &'a [u8],
        runs: Runs,
    },
    Generate {
        generator: Generator,
        runs: Runs,
    },
    /// In place: from the output, which lies in the domain's order.
    Output(usize),
    Bits(&'a [u8]),
}

/// A load that has to be brought before the tile runs.
pub struct Load<'a> {
    pub fetch: Fetch<'a>,
    pub slot: usize,
    /// As it lies in memory.
    pub stored: DType,
    /// As the register holds it.
    pub held: DType,
}

/// An instruction with its function.
pub struct Step {
    pub function: Function,
    pub reg: Reg,
    pub args: SmallVec<[Reg; 3]>,
    pub result: DType,
}

/// A program made ready.
pub struct Ready<'a> {
    pub program: &'a TileProgram,
    pub loads: SmallVec<[Load<'a>; 4]>,
    pub memory: SmallVec<[&'a [u8]; 4]>,
    pub steps: SmallVec<[Step; 4]>,
    pub places: SmallVec<[Place; 8]>,
    pub slots: usize,
    /// Elements in a tile.
    pub tile: usize,
}

impl<'a> Ready<'a> {
    pub fn new(program: &'a TileProgram, sources: &[Source<'a>]) -> Result<Ready<'a>> {
        if sources.len() != program.loads.len() {
            let what = format!("{} sources for {} loads", sources.len(), program.loads.len());
            return Err(ErrorKind::BadGraph { what }.into());
        }
        let count = program.loads.len() + program.code.len();
        let last = last_uses(program);
        let mut ready = Ready {
            program,
            loads: SmallVec::new(),
            memory: SmallVec::new(),
            steps: SmallVec::new(),
            places: SmallVec::from_elem(Place::Nowhere, count),
            slots: 0,
            tile: tile_length(program),
        };
        let mut free = Free::default();
        for (i, source) in sources.iter().enumerate() {
            if last[i] != 0 {
                ready.place_load(i, source, &mut free);
            }
        }
        let direct = direct_stores(program, &last);
        for (i, instr) in program.code.iter().enumerate() {
            let (reg, at) = (program.loads.len() + i, i + 1);
            if last[reg] == 0 {
                continue;
            }
            if let Prim::Const(value) = instr.prim {
                let mut bits = 0u64;
                with_element!(instr.dtype, T => {
                    let value: T = T::from_scalar(value);
                    bytes_of_mut(&mut bits)[..size_of::<T>()].copy_from_slice(bytes_of(&value));
                });
                ready.places[reg] = Place::Scalar(bits);
                continue;
            }
            let step = Step {
                function: resolve(instr)?,
                reg: reg as Reg,
                args: instr.args.clone(),
                result: instr.result(),
            };
            if instr.args.iter().all(|r| matches!(ready.places[*r as usize], Place::Scalar(_))) {
                ready.places[reg] = Place::Scalar(ready.once(&step));
                continue;
            }
            // The result's slot is taken before the operands' are given back: never in place.
            ready.places[reg] = match direct[reg] {
                Some(output) => Place::Output(output),
                None => Place::Slot(free.take()),
            };
            for arg in &instr.args {
                if let (true, Place::Slot(slot)) =
                    (last[*arg as usize] == at, ready.places[*arg as usize])
                {
                    free.give(slot);
                }
            }
            ready.steps.push(step);
        }
        ready.slots = free.most;
        if ready.slots > MOST_SLOTS {
            let what = format!("a tile program with {} live registers", ready.slots);
            return Err(ErrorKind::BadGraph { what }.into());
        }
        Ok(ready)
    }

    fn place_load(&mut self, i: usize, source: &Source<'a>, free: &mut Free) {
        let form = self.program.loads[i];
        let held = form.register();
        let runs = Runs::new(&source.layout);
        let stored = match form {
            Form::Elements(dtype) => dtype,
            Form::Bits => DType::Bool,
        };
        let fetch = match (form, source.read) {
            (Form::Bits, Read::Slice(bytes)) => Fetch::Bits(bytes),
            (Form::Elements(_), Read::Slice(bytes)) if runs.is_uniform() => {
                self.places[i] = match bytes.is_empty() {
                    true => Place::Scalar(0), // an empty domain: never read
                    false => {
                        let (mut raw, mut wide) = (0u64, 0u64);
                        runs.gather(stored, bytes, 0, &mut bytes_of_mut(&mut raw)[..stored.size()]);
                        cast(stored, held)(
                            level(),
                            &mut bytes_of_mut(&mut wide)[..held.size()],
                            &bytes_of(&raw)[..stored.size()],
                        );
                        Place::Scalar(wide)
                    }
                };
                return;
            }
            (Form::Elements(_), Read::Slice(bytes)) => match runs.contiguous() {
                Some(first) if stored == held => {
                    self.places[i] = Place::Memory { load: self.memory.len(), first };
                    self.memory.push(bytes);
                    return;
                }
                _ => Fetch::Gather { from: bytes, runs },
            },
            (_, Read::Output(output)) => Fetch::Output(output),
            (_, Read::Generator(generator)) => Fetch::Generate { generator, runs },
        };
        let slot = free.take();
        self.places[i] = Place::Slot(slot);
        self.loads.push(Load { fetch, slot, stored, held });
    }

    /// The value of a step whose operands are all scalars.
    fn once(&self, step: &Step) -> u64 {
        let mut bits = 0u64;
        let arg = |i: usize| match self.places[step.args[i] as usize] {
            Place::Scalar(bits) => bits,
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
            Function::One(f) => f(level(), out, &bytes_of(&a)[..size(0)]),
            Function::Two(f) => f(level(), out, &bytes_of(&a)[..size(0)], &bytes_of(&b)[..size(1)]),
            Function::Three(f) => f(
                level(),
                out,
                &bytes_of(&a)[..size(0)],
                &bytes_of(&b)[..size(1)],
                &bytes_of(&c)[..size(2)],
            ),
            Function::Round(narrow, wide) => {
                let mut half = 0u16;
                narrow(level(), bytes_of_mut(&mut half), &bytes_of(&a)[..size(0)]);
                wide(level(), out, bytes_of(&half));
            }
        }
        bits
    }
}

/// Slots that are taken and given back.
#[derive(Default)]
struct Free {
    back: SmallVec<[usize; 8]>,
    most: usize,
}

impl Free {
    fn take(&mut self) -> usize {
        self.back.pop().unwrap_or_else(|| {
            self.most += 1;
            self.most - 1
        })
    }

    fn give(&mut self, slot: usize) {
        if !self.back.contains(&slot) {
            self.back.push(slot);
        }
    }
}

/// For each register, one more than the instruction that reads it last; past the end where it is
/// stored; 0 where nobody reads it.
fn last_uses(program: &TileProgram) -> SmallVec<[usize; 16]> {
    let loads = program.loads.len();
    let mut last: SmallVec<[usize; 16]> = SmallVec::from_elem(0, loads + program.code.len());
    for (reg, _) in &program.stores {
        last[*reg as usize] = program.code.len() + 1;
    }
    for (i, instr) in program.code.iter().enumerate().rev() {
        if last[loads + i] != 0 {
            for arg in &instr.args {
                last[*arg as usize] = last[*arg as usize].max(i + 1);
            }
        }
    }
    last
}

/// Registers that can be computed straight into an output: stored once, as they are, and read by
/// nobody else.
fn direct_stores(program: &TileProgram, last: &[usize]) -> SmallVec<[Option<usize>; 16]> {
    let mut direct: SmallVec<[Option<usize>; 16]> = SmallVec::from_elem(None, last.len());
    if !matches!(program.close, tonnage_core::tile::Close::Store) {
        return direct;
    }
    for (output, (reg, form)) in program.stores.iter().enumerate() {
        let same = *form == Form::Elements(program.register(*reg));
        let once = program.stores.iter().filter(|(r, _)| r == reg).count() == 1;
        let read = program.code.iter().any(|i| i.args.contains(reg));
        if same && once && !read {
            direct[*reg as usize] = Some(output);
        }
    }
    direct
}

/// Elements in a tile: as many as fit into a slot, of the widest register.
fn tile_length(program: &TileProgram) -> usize {
    let count = program.loads.len() + program.code.len();
    let widest = (0..count).map(|r| program.register(r as Reg).size()).max().unwrap_or(8);
    size_of::<Slot>() / widest.max(4)
}

/// The most slots that a program can need, whatever its sources are.
pub fn most_slots(program: &TileProgram) -> usize {
    let last = last_uses(program);
    let loads = program.loads.len();
    let mut live = last[..loads].iter().filter(|l| **l != 0).count();
    let mut most = live;
    for i in 0..program.code.len() {
        if last[loads + i] != 0 {
            live += 1;
            most = most.max(live);
        }
        live -= last.iter().take(loads + i).filter(|l| **l == i + 1).count();
    }
    most
}

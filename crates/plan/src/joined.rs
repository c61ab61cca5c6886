//! Which elementwise steps run as one: those over one domain, where a later one reads what an earlier one reads or makes, and
//! the elementwise steps between them have nothing to do with it. What they share is loaded once, and what one makes the next
//! takes from a register: the moments of an optimizer, the weight and its rounded copy are one pass over memory.
//!
//! It changes neither bytes nor bits. A later step begins no buffer, so all that the joined program writes lives anyway while
//! the first of them runs; each step keeps its place in the plan, where a later one has nothing left to do.
//!
//! Decision: `docs/decisions/joined-steps.md`.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::tile::{Close, Form, Prim, TileProgram};
use tonnage_core::{DType, Sizes, ValueId};
use tonnage_ops::tile::TileLimits;

use crate::place::{StorageKey, store};
use crate::plan::{Placed, Run, Step, TileRead, TileRun};
use crate::program::{ProgramBuilder, ProgramOperand};

/// Loads and instructions beyond which a program gains nothing more by what it shares.
const LONGEST: usize = 64;

/// How many passes a step may be moved over.
const MOST_BETWEEN: usize = 8;

/// Joins steps, as far as the limits of the device allow.
pub(crate) fn join(places: &[Option<Placed>], steps: &mut [Step], limits: &TileLimits) {
    let mut is_epilogue = vec![false; steps.len()];
    steps.iter().filter_map(|step| step.epilogue).for_each(|at| is_epilogue[at] = true);
    let mut passes: Vec<Pass> = Vec::new();
    for at in 0..steps.len() {
        let step = &steps[at];
        let run = match &step.run {
            Run::Nothing if is_still(step) => continue,
            Run::Tile(run) if !is_epilogue[at] && is_plain(step, run) => run,
            // Nothing is moved over anything else.
            _ => {
                passes.clear();
                continue;
            }
        };
        let Some(own) = Pass::new(places, at, step, run, limits) else {
            passes.clear();
            continue;
        };
        let can_move = own.joined.is_some() && step.awaits.is_empty() && step.begins.is_empty();
        let longer = can_move.then(|| own.as_part_of(&passes, places, step, run, limits));
        let Some((before, joined)) = longer.flatten() else {
            // What is further back is not looked at again.
            if passes.len() == MOST_BETWEEN {
                passes.remove(0);
            }
            passes.push(own);
            continue;
        };
        let by = passes[before].by;
        let updates = step.updates;
        steps[at].run = Run::Nothing;
        steps[by].updates |= updates;
        joined.put(&mut steps[by]);
        let longer = &mut passes[before];
        longer.joined = Some(joined);
        longer.touches.add(own.touches);
    }
}

/// Whether nothing at all happens in a step.
fn is_still(step: &Step) -> bool {
    !step.dynamic && step.awaits.is_empty() && step.begins.is_empty()
}

/// Whether a tile step is of sizes that are known, in memory, and cannot fail.
fn is_plain(step: &Step, run: &TileRun) -> bool {
    !step.dynamic
        && step.staging.is_none()
        && step.streamed.is_empty()
        // A file is read at one's own pace, and may fail.
        && run.reads.iter().all(|read| !matches!(read, TileRead::Generator(g, _) if g.is_stored()))
}

/// Bytes that a pass reads and writes.
#[derive(Debug, Default)]
struct Touches {
    reads: Vec<StorageKey>,
    writes: Vec<StorageKey>,
}

impl Touches {
    fn add(&mut self, more: Touches) {
        self.reads.extend(more.reads);
        self.writes.extend(more.writes);
    }

    /// Whether one may run before the other.
    fn is_apart_from(&self, other: &Touches) -> bool {
        let none_in = |keys: &[StorageKey], of: &[StorageKey]| !keys.iter().any(|k| of.contains(k));
        none_in(&self.writes, &other.writes)
            && none_in(&self.writes, &other.reads)
            && none_in(&self.reads, &other.writes)
    }
}

/// A tile step that runs.
#[derive(Debug)]
struct Pass {
    /// Its number.
    by: usize,
    touches: Touches,
    /// Without where it is not to be part of several.
    joined: Option<JoinedStep>,
}

impl Pass {
    /// `None` where it is not known what it touches.
    fn new(
        places: &[Option<Placed>],
        by: usize,
        step: &Step,
        run: &TileRun,
        limits: &TileLimits,
    ) -> Option<Pass> {
        let keys = |values: &[ValueId]| -> Option<Vec<StorageKey>> {
            let placed = |value: &ValueId| places.get(value.index())?.as_ref();
            // Of a recipe there are no bytes.
            values
                .iter()
                .map(|value| placed(value).map(|p| store(&p.at)))
                .collect::<Option<Vec<_>>>()
                .map(|keys| keys.into_iter().flatten().collect())
        };
        let mut touches = Touches { reads: keys(&step.reads)?, writes: keys(&step.writes)? };
        touches.writes.extend(step.begins.iter().map(|buffer| StorageKey::Buffer(buffer.0)));
        let joined = stores_elements(step, run)
            .then(|| JoinedStep::default().with(places, step, run, limits));
        Some(Pass { by, touches, joined: joined.flatten() })
    }

    /// The latest of the passes before that it can run as part of, and what the two are.
    fn as_part_of(
        &self,
        passes: &[Pass],
        places: &[Option<Placed>],
        step: &Step,
        run: &TileRun,
        limits: &TileLimits,
    ) -> Option<(usize, JoinedStep)> {
        for (at, before) in passes.iter().enumerate().rev() {
            if let Some(joined) = &before.joined
                && let Some(joined) = joined.with(places, step, run, limits)
            {
                return Some((at, joined));
            }
            if !self.touches.is_apart_from(&before.touches) {
                return None;
            }
        }
        None
    }
}

/// Whether all that a step stores are elements, one by one.
fn stores_elements(step: &Step, run: &TileRun) -> bool {
    let stores = &run.program.stores;
    run.program.close == Close::Store
        && stores.len() == step.writes.len()
        && stores.iter().all(|(_, form)| matches!(form, Form::Elements(_)))
}

/// What a load of several steps is of, by which two are one.
#[derive(Debug, Clone, PartialEq)]
enum Operand {
    /// Those bytes, through that layout over the domain.
    Bytes(StorageKey, Layout),
    /// What is made as it is read.
    Made(TileRead),
}

/// What leaves the steps: elements in the order of the domain.
#[derive(Debug, Clone)]
struct Leaving {
    value: ValueId,
    /// Whose bytes, and from which element on.
    at: (StorageKey, usize),
    operand: ProgramOperand,
    dtype: DType,
}

/// Steps that run as one.
#[derive(Debug, Clone, Default)]
struct JoinedStep {
    domain: Sizes,
    program: ProgramBuilder<Operand>,
    /// A value that lies where an operand does that is in bytes.
    named: Vec<(Operand, ValueId)>,
    leaving: Vec<Leaving>,
}

impl JoinedStep {
    /// The same with one more step behind; `None` where that has nothing in common with them, or cannot run as part of them.
    fn with(
        &self,
        places: &[Option<Placed>],
        step: &Step,
        run: &TileRun,
        limits: &TileLimits,
    ) -> Option<JoinedStep> {
        let is_first = self.leaving.is_empty();
        if !is_first && self.domain != run.domain {
            return None;
        }
        let mut joined = JoinedStep { domain: run.domain.clone(), ..self.clone() };
        let loaded = joined.program.loads().count();
        let mut registers: SmallVec<[ProgramOperand; 32]> = SmallVec::new();
        let mut shares = false;
        for (read, form) in run.reads.iter().zip(&run.program.loads) {
            let register = joined.load(places, step, read, *form)?;
            shares |= !matches!(register, ProgramOperand::Load(at) if usize::from(at) >= loaded);
            registers.push(register);
        }
        if !shares && !is_first {
            return None;
        }
        for instr in &run.program.code {
            let args = instr.args.iter().map(|reg| registers[usize::from(*reg)]).collect();
            registers.push(joined.program.code(instr.prim, instr.dtype, args));
        }
        for ((reg, form), value) in run.program.stores.iter().zip(&step.writes) {
            joined.store(places, registers[usize::from(*reg)], *form, *value)?;
        }
        let fits = is_first || (joined.program.len() <= LONGEST && joined.fits(limits));
        fits.then_some(joined)
    }

    /// What a load of one more step is: one that is there, what the steps so far have made, or another load. `None` where it reads
    /// what they have made in any other way than element by element.
    fn load(
        &mut self,
        places: &[Option<Placed>],
        step: &Step,
        read: &TileRead,
        form: Form,
    ) -> Option<ProgramOperand> {
        let TileRead::Input(input, layout) = read else {
            return Some(self.program.load(Operand::Made(read.clone()), form));
        };
        let value = *step.reads.get(*input)?;
        let key = store(&places.get(value.index())?.as_ref()?.at)?;
        if let Some(made) = self.leaving.iter().find(|made| made.at.0 == key) {
            let (operand, dtype) = (made.operand, made.dtype);
            let in_order = self.in_order(layout) && layout.offset == made.at.1;
            return (in_order && form == Form::Elements(dtype))
                .then(|| self.rounded(operand, dtype));
        }
        let operand = Operand::Bytes(key, layout.clone());
        if !self.named.iter().any(|(known, _)| *known == operand) {
            self.named.push((operand.clone(), value));
        }
        Some(self.program.load(operand, form))
    }

    /// What is read of a value that was stored.
    fn rounded(&mut self, operand: ProgramOperand, dtype: DType) -> ProgramOperand {
        match dtype.compute() == dtype {
            true => operand,
            false => {
                let args = SmallVec::from_slice(&[operand]);
                self.program.code(Prim::RoundTo(dtype), dtype.compute(), args)
            }
        }
    }

    /// Lets an operand leave as a value; `None` where loads would read it in any other way than element by element.
    fn store(
        &mut self,
        places: &[Option<Placed>],
        operand: ProgramOperand,
        form: Form,
        value: ValueId,
    ) -> Option<()> {
        let (placed, Form::Elements(dtype)) = (places.get(value.index())?.as_ref()?, form) else {
            return None;
        };
        let (key, offset) = (store(&placed.at)?, placed.layout.offset);
        let count: usize = self.domain.iter().product();
        if !placed.layout.is_contiguous() || placed.layout.count() != count {
            return None;
        }
        let reads_it = |load: &(Operand, Form)| match load {
            (Operand::Bytes(of, layout), form) if *of == key => {
                *form == Form::Elements(dtype) && self.in_order(layout) && layout.offset == offset
            }
            _ => true,
        };
        let apart = self.leaving.iter().all(|made| made.at.0 != key);
        if !apart || !self.program.loads().all(reads_it) {
            return None;
        }
        self.leaving.push(Leaving { value, at: (key, offset), operand, dtype });
        Some(())
    }

    /// Whether elements lie in the order of the domain.
    fn in_order(&self, layout: &Layout) -> bool {
        layout.sizes == self.domain && layout.is_contiguous()
    }

    fn finished(&self) -> (TileProgram, Vec<Operand>) {
        let leaves = |made: &Leaving| (made.operand, Form::Elements(made.dtype));
        let stores: SmallVec<[_; 4]> = self.leaving.iter().map(leaves).collect();
        self.program.clone().finish(&stores, Close::Store)
    }

    fn fits(&self, limits: &TileLimits) -> bool {
        limits.fit(&self.finished().0)
    }

    /// Lets a step run all of them.
    fn put(&self, step: &mut Step) {
        let (program, operands) = self.finished();
        let mut reads = Vec::new();
        step.reads.clear();
        for operand in operands {
            reads.push(match operand {
                Operand::Made(read) => read,
                Operand::Bytes(..) => {
                    let of = self.named.iter().find(|(known, _)| *known == operand);
                    step.reads.extend(of.map(|(_, value)| *value));
                    let Operand::Bytes(_, layout) = operand else { continue };
                    TileRead::Input(step.reads.len() - 1, layout)
                }
            });
        }
        step.writes = self.leaving.iter().map(|made| made.value).collect();
        step.run = Run::Tile(Arc::new(TileRun::new(program, self.domain.clone(), reads)));
    }
}

//! Loops: iteration after iteration of a body in the same scratch, with carried values in place or between two places.

use smallvec::SmallVec;
use tonnage_core::ValueId;
use tonnage_core::error::{Result, bad_argument};
use tonnage_core::looping::Iterations;
use tonnage_core::row::Cost;
use tonnage_core::shape::Sizes;
use tonnage_plan::schedule::Online;
use tonnage_plan::{CheckpointPolicy, LoopPlan, OutputPlan, Sliced, Step, TileRead, TileRun};

use super::bytes::{self, copy};
use super::frame::{ExecutionFrame, Lanes};
use super::places::{Places, undecided};
use super::region::{ByteRanges, part, seconds};
use super::step::{node_of, run_tile};
use crate::lend::{ByteRange, Lender};

/// A loop as it runs: all but its state.
pub struct Runner<'p> {
    plan: &'p LoopPlan,
    scratch: ByteRange,
    /// The sliced inputs, whole.
    sliced: ByteRanges,
    /// Loop-invariant inputs: what is only read.
    pub read: ByteRanges,
    ids: &'p [ValueId],
    /// How many iterations there are, where rows depend on it.
    iterations: u64,
}

/// Rows of a value that lie one after the other.
#[derive(Clone, Copy)]
pub struct StackedRows {
    whole: ByteRange,
    bytes: usize,
}

impl StackedRows {
    pub fn new(whole: ByteRange, bytes: usize) -> StackedRows {
        StackedRows { whole, bytes }
    }

    /// A row; an error where there are fewer.
    pub fn row(&self, row: u64) -> Result<ByteRange> {
        let at = (row as usize).saturating_mul(self.bytes);
        self.whole.part(at, self.bytes, self.whole.align)
    }
}

/// The rows of a value that lies close together from the start of `whole`.
fn stacked_rows(places: &Places, id: ValueId, whole: ByteRange) -> Result<StackedRows> {
    let ty = places.ty(id);
    let sizes = ty.shape.sizes().ok_or_else(|| undecided(id))?;
    let bytes = sizes.iter().skip(1).product::<usize>() * ty.dtype.size();
    Ok(StackedRows::new(whole, bytes))
}

/// The rows of a value that is being made.
pub fn made_rows(frame: &mut ExecutionFrame, id: ValueId) -> Result<StackedRows> {
    let whole = frame.made(id)?;
    stacked_rows(&frame.places, id, whole)
}

/// Runs a loop to its end.
pub fn while_loop<'p>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender,
    step: &Step,
    plan: &'p LoopPlan,
) -> Result<()> {
    let scratch = frame.places.region_scratch(step);
    let node = node_of(frame.places.plan(), step)?;
    let spec = &plan.spec;
    let (carried, rest) = node.outputs.split_at(spec.carried);
    let (stacked, checkpoints) = rest.split_at(spec.stacked);
    let homes = carried.iter().map(|id| frame.made(*id)).collect::<Result<ByteRanges>>()?;
    let of = |ids: &[ValueId], frame: &mut ExecutionFrame| {
        ids.iter().map(|id| made_rows(frame, *id)).collect::<Result<SmallVec<[StackedRows; 4]>>>()
    };
    let stacked = of(stacked, frame)?;
    let states = if spec.spills { 0 } else { checkpoints.len().min(spec.carried) };
    let checkpoint_rows = of(&checkpoints[..states], frame)?;
    let runner = Runner::new(&frame.places, plan, scratch, &node.inputs)?;
    let limit = runner.limit();
    // A loop of no iterations makes nothing, and has no scratch.
    let second = match limit {
        0 => homes.clone(),
        _ => seconds(&plan.second, &homes, scratch)?,
    };
    let mut places = StateBuffers {
        current: homes.clone(),
        other: second.clone(),
        stays: plan.body.written.iter().take(spec.carried).map(|written| !written).collect(),
    };
    let mut sizes = start_sizes(&frame.places, carried, &node.inputs)?;
    let mut schedule = CheckpointSchedule::new(&plan.checkpoint_policy);
    let mut iteration = 0;
    let known = matches!(spec.iterations, Iterations::Times(_));
    let mut file = match &plan.checkpoint_policy {
        CheckpointPolicy::File(planned) => Some((planned.name, frame.states.open(planned, known)?)),
        _ => None,
    };
    while iteration < limit && runner.holds(frame, lender, &places.current, &sizes, iteration)? {
        if let Err(stopped) = frame.stop.between_iterations() {
            // Variables that are carried have the values of the last whole iteration.
            for (now, home) in places.current.iter().zip(&homes) {
                copy(lender, *now, *home)?;
            }
            return Err(stopped);
        }
        if iteration > 0
            && let Some((_, file)) = &mut file
        {
            frame.states.write(lender, file, iteration, &places.current)?;
        }
        if !known && let Some(row) = schedule.checkpoint(iteration) {
            for (now, rows) in places.current.iter().zip(&checkpoint_rows) {
                copy(lender, *now, rows.row(row as u64)?)?;
            }
        }
        // Where the end is known, a state that is checkpointed is made where it stays, if it can.
        let checkpoint = match known && iteration + 1 < limit {
            true => schedule.checkpoint(iteration + 1),
            false => None,
        };
        let at = |row: usize| checkpoint_rows.iter().map(|rows| rows.row(row as u64)).collect();
        let rows: Option<ByteRanges> = checkpoint.map(at).transpose()?;
        let next = places.next(rows.as_ref());
        let row = spec.row(iteration, limit);
        let made = next.iter().map(|byte_range| Ok(*byte_range));
        let made = made.chain(stacked.iter().map(|rows| rows.row(row)));
        let made = made.collect::<Result<SmallVec<[ByteRange; 4]>>>()?;
        runner.run_iteration(frame, lender, &places.current, &mut sizes, made, iteration)?;
        for (now, row) in next.iter().zip(rows.iter().flatten()) {
            copy(lender, *now, *row)?;
        }
        places.move_to(next, &homes, &second);
        iteration += 1;
    }
    for (now, home) in places.current.iter().zip(&homes) {
        copy(lender, *now, *home)?;
    }
    for (id, sizes) in carried.iter().zip(sizes.iter().flatten()) {
        frame.decide(*id, sizes);
    }
    if let Some((name, file)) = file {
        frame.states.keep(name, file);
    }
    // Only the data knew how many iterations there would be; or that number stands for a file.
    let iterations = checkpoints.get(if spec.spills { 0 } else { spec.carried });
    if let Some(id) = iterations {
        let home = frame.made(*id)?;
        bytes::put_integer(lender, home, iteration as i64)?;
    }
    Ok(())
}

/// Sizes of the carried values, of a loop where the data decide any.
fn start_sizes(
    places: &Places,
    outputs: &[ValueId],
    inputs: &[ValueId],
) -> Result<Option<Vec<Sizes>>> {
    let known = |id: &ValueId| places.ty(*id).shape.sizes().is_some();
    if outputs.iter().all(known) {
        return Ok(None);
    }
    let sizes = |id: &ValueId| Ok(places.layout(*id)?.sizes.clone());
    Ok(Some(inputs.iter().take(outputs.len()).map(sizes).collect::<Result<_>>()?))
}

/// Where the state of a loop lies, and where the next one can: a value that is made in place has one place for both.
struct StateBuffers {
    current: ByteRanges,
    other: ByteRanges,
    /// Whether an iteration leaves the state that it starts from as it is. (One that overwrites it would spoil a checkpoint.)
    stays: SmallVec<[bool; 4]>,
}

impl StateBuffers {
    /// Where the next state is made: in the rows of its checkpoint, if it has one.
    fn next(&self, rows: Option<&ByteRanges>) -> ByteRanges {
        let Some(rows) = rows else { return self.other.clone() };
        let all = self.current.iter().zip(&self.other).zip(rows).zip(&self.stays);
        all.map(
            |(((now, other), row), stays)| if *stays && !same(now, other) { *row } else { *other },
        )
        .collect()
    }

    /// The next state is where it was made, and the one after it can be at home or beside, where this one is not.
    fn move_to(&mut self, next: ByteRanges, homes: &[ByteRange], second: &[ByteRange]) {
        for ((other, next), (home, second)) in
            self.other.iter_mut().zip(&next).zip(homes.iter().zip(second))
        {
            if same(next, other) {
                *other = if same(next, home) { *second } else { *home };
            }
        }
        self.current = next;
    }
}

fn same(a: &ByteRange, b: &ByteRange) -> bool {
    a.base == b.base && a.offset == b.offset
}

/// Says which states are checkpointed, and in which rows.
pub struct CheckpointSchedule<'p> {
    these: &'p [u64],
    next: usize,
    online: Option<Online>,
}

impl<'p> CheckpointSchedule<'p> {
    pub fn new(checkpoint_policy: &'p CheckpointPolicy) -> CheckpointSchedule<'p> {
        match checkpoint_policy {
            CheckpointPolicy::Nothing | CheckpointPolicy::File(_) => {
                CheckpointSchedule { these: &[], next: 0, online: None }
            }
            CheckpointPolicy::These(these) => CheckpointSchedule { these, next: 0, online: None },
            CheckpointPolicy::Online { max_checkpoints } => CheckpointSchedule {
                these: &[],
                next: 0,
                online: Some(Online::new(*max_checkpoints)),
            },
        }
    }

    /// The row for the state before an iteration; iterations come in order.
    pub fn checkpoint(&mut self, iteration: u64) -> Option<usize> {
        if iteration == 0 {
            return None; // the first state stays where it is
        }
        if let Some(online) = &mut self.online {
            return online.checkpoint(iteration);
        }
        let is_checkpoint = self.these.get(self.next) == Some(&iteration);
        self.next += usize::from(is_checkpoint);
        is_checkpoint.then(|| self.next - 1)
    }
}

impl<'p> Runner<'p> {
    /// The loop whose own inputs these are.
    pub fn new(
        places: &Places,
        plan: &'p LoopPlan,
        scratch: ByteRange,
        ids: &'p [ValueId],
    ) -> Result<Runner<'p>> {
        let given = |ids: &[ValueId]| {
            ids.iter().map(|id| places.given(*id)).collect::<Result<ByteRanges>>()
        };
        let (sliced, read) = ids[plan.spec.carried..].split_at(plan.spec.sliced);
        let iterations = plan.spec.known_iterations().unwrap_or(0);
        Ok(Runner { plan, scratch, sliced: given(sliced)?, read: given(read)?, ids, iterations })
    }

    /// The most iterations there may be.
    pub fn limit(&self) -> u64 {
        match &self.plan.spec.iterations {
            Iterations::While { most } => most.unwrap_or(u64::MAX),
            Iterations::Times(_) => self.iterations,
        }
    }

    /// The row of an iteration; its number where there are no rows.
    pub fn row(&self, iteration: u64) -> u64 {
        self.plan.spec.row(iteration, self.iterations.max(iteration + 1))
    }

    /// Whether another iteration is to be run.
    pub fn holds(
        &self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        state: &[ByteRange],
        sizes: &Option<Vec<Sizes>>,
        iteration: u64,
    ) -> Result<bool> {
        let Some(condition) = &self.plan.condition else { return Ok(true) };
        let answer = part(self.scratch, self.plan.answer, 1)?;
        let generators =
            frame.generators.of_region(Some(self.plan.spec.key), 0, self.row(iteration));
        let inputs: ByteRanges = state.iter().chain(&self.read).copied().collect();
        let arena = (self.scratch, self.plan.inner);
        let outputs = SmallVec::from_iter([answer]);
        let mut child = frame.child(condition, arena, inputs.clone(), outputs, generators)?;
        self.tell(frame, &mut child, sizes, 0)?;
        child.run(lender, Lanes::default(), false)?;
        frame.used.lent(&answer);
        frame.ran(&mut child);
        // A condition that is an input lies there.
        let byte_range = match &condition.outputs[0] {
            OutputPlan::Input { input, .. } => inputs[*input],
            _ => answer,
        };
        bytes::is_true(lender, byte_range)
    }

    /// Runs an iteration, from a state to what it makes: the next state, and rows of the stacked outputs.
    pub fn run_iteration(
        &self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        state: &[ByteRange],
        sizes: &mut Option<Vec<Sizes>>,
        made: SmallVec<[ByteRange; 4]>,
        iteration: u64,
    ) -> Result<()> {
        let row = self.row(iteration);
        let mut inputs: ByteRanges = state.into();
        inputs.extend(self.rows(frame, lender, row)?);
        inputs.extend(self.read.iter().copied());
        let generators = frame.generators.of_region(Some(self.plan.spec.key), 1, row);
        let arena = (self.scratch, self.plan.inner);
        made.iter().for_each(|byte_range| frame.used.lent(byte_range));
        let mut child = frame.child(&self.plan.body, arena, inputs, made, generators)?;
        self.tell(frame, &mut child, sizes, self.plan.spec.sliced)?;
        child.run(lender, Lanes::default(), false)?;
        frame.ran(&mut child);
        if let Some(sizes) = sizes {
            self.grow(&child, sizes)?;
        }
        Ok(())
    }

    /// The rows that an iteration sees of the sliced inputs.
    pub fn rows(
        &self,
        frame: &mut ExecutionFrame<'p>,
        lender: &mut Lender,
        row: u64,
    ) -> Result<ByteRanges> {
        rows(frame, lender, &self.plan.sliced, &self.sliced, self.scratch, row)
    }

    /// How many inputs its regions have: what is carried, rows, and what is only read.
    pub fn inputs(&self) -> usize {
        self.ids.len()
    }

    /// Tells a region of sizes that the data decided: of carried values, and of what is only read.
    pub fn tell(
        &self,
        frame: &ExecutionFrame<'p>,
        child: &mut ExecutionFrame<'p>,
        sizes: &Option<Vec<Sizes>>,
        rows: usize,
    ) -> Result<()> {
        let plan = child.places.plan();
        let graph = &plan.graph;
        for (id, sizes) in graph.inputs.iter().zip(sizes.iter().flatten()) {
            if graph.ty(*id).shape.sizes().is_none() {
                child.sizes.forget(graph.ty(*id));
                child.decide(*id, sizes);
            }
        }
        let carried = self.plan.spec.carried;
        for (i, id) in self.ids[carried + self.plan.spec.sliced..].iter().enumerate() {
            frame.tell(child, carried + rows + i, *id)?;
        }
        Ok(())
    }

    /// The sizes that an iteration left the carried values with, which their bounds must hold.
    fn grow(&self, child: &ExecutionFrame, sizes: &mut [Sizes]) -> Result<()> {
        let graph = &child.places.plan().graph;
        for (j, now) in sizes.iter_mut().enumerate() {
            let made = child.ty(graph.outputs[j]);
            let most = graph.ty(graph.inputs[j]).shape.most();
            let (Some(made), Some(most)) = (made.shape.sizes(), most) else {
                return Err(undecided(graph.outputs[j]));
            };
            if made.iter().zip(&most).any(|(n, most)| n > most) {
                let what = format!("loop variable {j} grew to {made:?}, over its bound {most:?}");
                return Err(bad_argument("while_loop", what, "give it a larger bound"));
            }
            *now = made;
        }
        Ok(())
    }
}

/// Rows of inputs: where they lie, or computed now.
pub fn rows<'p>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender,
    sliced: &'p [Sliced],
    whole: &[ByteRange],
    scratch: ByteRange,
    row: u64,
) -> Result<ByteRanges> {
    let mut all = ByteRanges::new();
    for (sliced, whole) in sliced.iter().zip(whole) {
        all.push(match sliced {
            Sliced::Bytes { first, stride, layout, size } => {
                // A row without elements lies nowhere in a whole without elements.
                let end = layout.end();
                let at = match end {
                    0 => 0,
                    _ => (first + row as isize * stride) as usize * size,
                };
                whole.part(at, end * size, *size)?
            }
            Sliced::Recipe { run, strides, at, row: ty } => {
                let len = ty.bytes("while_loop")?.as_usize();
                let byte_range = scratch.part(at.as_usize(), len, ty.dtype.size())?;
                let run = nth_row(run, strides, row);
                let writes = SmallVec::from_iter([byte_range]);
                run_tile(frame, lender, &run, &[], writes, None, Cost::default())?;
                byte_range
            }
        });
    }
    Ok(all)
}

fn nth_row(first: &TileRun, strides: &[isize], row: u64) -> TileRun {
    let mut run = first.clone();
    for (read, stride) in run.reads.iter_mut().zip(strides) {
        let (TileRead::Generator(_, layout) | TileRead::Input(_, layout)) = read;
        layout.offset = (layout.offset as isize + row as isize * stride) as usize;
    }
    run
}

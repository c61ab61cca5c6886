//! What a plan reads from files as it runs, and writes to them: tensors that stay in theirs, which steps leave them
//! there, and which make new ones.
//!
//! Decision: `docs/decisions/plans-know-the-form-of-a-recipe.md`.

use std::sync::Arc;

use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::looping::Loop;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::Mem;
use tonnage_core::{Bytes, DType};
use tonnage_ops::index::rows::puts_rows;

use crate::budget::Machine;
use crate::loops::{LoopPlan, Sliced};
use crate::place::{InputSpec, Planner};
use crate::plan::{At, Plan, Run, Step, StepMemory, Streamed, TileRead, TileRun};

/// A value that goes to a file and outlives the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileValuePlan {
    /// How many elements.
    pub count: usize,
    /// Of what.
    pub dtype: DType,
}

impl FileValuePlan {
    /// What it takes in its file.
    pub fn bytes(&self) -> Bytes {
        Bytes::of(self.count * self.dtype.size())
    }
}

/// An input that a step's kernel reads from a file as it goes.
#[derive(Debug, Clone)]
pub struct StreamedInput {
    /// Which.
    pub input: usize,
    /// What lies there: a later step may bring the same value into memory.
    pub recipe: Arc<Recipe>,
    /// Elements of it that are read.
    pub count: usize,
}

impl Plan {
    /// What a call reads from files: each step that uses a tensor in a file reads it again, in every iteration of a
    /// loop; of branches the one that reads most counts, and of a loop whose iterations the data decide on the most
    /// that there can be, or one. A variable in files that is one number everywhere, as an optimizer's are at first,
    /// counts as if it lay there. It is no part of the peak.
    pub fn reads(&self) -> Bytes {
        self.steps.iter().map(Step::reads_stored).sum()
    }

    /// What a call writes to files that outlive it: new values of variables that live there. It is no part of the peak.
    pub fn writes(&self) -> Bytes {
        self.file_values.iter().map(FileValuePlan::bytes).sum()
    }

    /// Seconds that reading and writing take, at the rates that were measured for files.
    pub fn seconds_of_files(&self, machine: &Machine) -> f64 {
        seconds_of_files(self.reads(), self.writes(), machine)
    }
}

/// Seconds that it takes to read and to write that many bytes of files.
pub(crate) fn seconds_of_files(reads: Bytes, writes: Bytes, machine: &Machine) -> f64 {
    let machine = if machine.has_disk() { machine } else { &Machine::DEFAULT };
    reads.get() as f64 / machine.read + writes.get() as f64 / machine.write
}

/// Whether a call reads from files, or writes to files that outlive it.
pub(crate) fn uses_files(graph: &Graph, inputs: &[InputSpec]) -> bool {
    let stored = |spec: &InputSpec| match spec {
        InputSpec::Recipe(recipe) => recipe.sources.iter().any(|(of, _)| of.is_stored()),
        InputSpec::Bytes { .. } => false,
    };
    inputs.iter().any(stored) || graph.nodes.iter().any(|node| node.op.mem == Mem::File)
}

/// Whether a value that is to be stored in a file need not be written: it is in one, or one number everywhere.
pub(crate) fn is_there(recipe: &Arc<Recipe>) -> bool {
    recipe.as_stored().is_some() || recipe.uniform().is_some()
}

/// A step whose result goes to a file, through a few pieces in memory.
pub(crate) fn in_file(planner: &mut Planner, node: &Node, run: TileRun) {
    let file_value = planner.put_in_file(node.outputs[0], &run.domain);
    let target = planner.target();
    let room = planner.graph().with_call(node, |call| target.scratch(node.op, call, &[]));
    let run = Run::ToFile { run: Arc::new(run), file_value };
    planner.step(node, run, StepMemory::ToFile, room);
}

/// Plans rows that are put into a table where that lies in a file, and is to lie in one then: a variable that lives
/// there. It never is in memory. False for any other node.
pub(crate) fn rows_in_file(planner: &mut Planner, node: &Node) -> Result<bool> {
    let [table, indices, rows] = node.inputs[..] else { return Ok(false) };
    let At::Recipe(recipe) = planner.place(table)?.at.clone() else { return Ok(false) };
    let lies = |layout: &Layout| layout.is_contiguous() && layout.offset == 0;
    let stored = recipe.as_stored().is_some_and(|(_, layout)| lies(layout));
    let sizes = recipe.sizes.clone();
    let (Some(tall), Some(many)) = (sizes.first(), planner.graph().ty(indices).shape.sizes())
    else {
        return Ok(false);
    };
    let many = many.iter().product();
    let target = planner.target().clone();
    let order = target.rows_in_file(node.op, &node.attrs, *tall, many);
    let Some(order) = order.filter(|_| stored && goes_to_file(planner, node.outputs[0])) else {
        return Ok(false);
    };
    planner.materialize(node, indices)?;
    planner.materialize(node, rows)?;
    let file_value = planner.put_in_file(node.outputs[0], &sizes);
    let count = sizes.iter().product();
    let room = order + target.file_pieces(Bytes::of(count * recipe.dtype().size()));
    planner.step(node, Run::RowsToFile { file_value }, StepMemory::ToFile, room);
    planner.stream(Streamed::from_iter([StreamedInput { input: 0, recipe, count }]));
    Ok(true)
}

/// Whether a value is to lie in a file: as it is, with more rows put into it, or as a part of what is computed as it is
/// written there.
fn goes_to_file(planner: &Planner, id: ValueId) -> bool {
    planner.later_nodes().iter().any(|node| match puts_rows(node.op, &node.attrs) {
        true => node.inputs[0] == id && goes_to_file(planner, node.outputs[0]),
        false => node.op.mem == Mem::File && node.inputs.contains(&id),
    })
}

impl Step {
    /// What it reads from files.
    pub(crate) fn reads_stored(&self) -> Bytes {
        let read = |of: &StreamedInput| Bytes::of(of.count * of.recipe.dtype().size());
        let streamed = self.streamed.iter().map(read).sum::<Bytes>();
        streamed
            + match &self.run {
                Run::Tile(run) | Run::Copy { run, .. } | Run::ToFile { run, .. } => of_tiles(run),
                Run::Branch { branches, .. } => {
                    let all = branches.iter().map(|branch| branch.plan.reads());
                    all.max().unwrap_or(Bytes::ZERO)
                }
                Run::Loop(of) => of_loop(of, iterations(&of.spec)),
                Run::LoopGrad(of) => {
                    let backward =
                        times(of.step.reads() + of_rows(&of.seeds), iterations(&of.spec.of));
                    backward + of_loop(&of.forward, of.recomputed_iterations.unwrap_or(1))
                }
                Run::Nothing | Run::Kernel(_) | Run::Transfer(_) | Run::RowsToFile { .. } => {
                    Bytes::ZERO
                }
            }
    }
}

fn of_loop(of: &LoopPlan, iterations: u64) -> Bytes {
    let condition = of.condition.as_ref().map_or(Bytes::ZERO, Plan::reads);
    times(of.body.reads() + condition + of_rows(&of.sliced), iterations)
}

/// What each iteration reads of inputs that it takes a row of.
fn of_rows(sliced: &[Sliced]) -> Bytes {
    let read = |of: &Sliced| match of {
        Sliced::Recipe { run, .. } => of_tiles(run),
        Sliced::Bytes { .. } => Bytes::ZERO,
    };
    sliced.iter().map(read).sum()
}

fn iterations(spec: &Loop) -> u64 {
    spec.max_iterations().unwrap_or(1)
}

fn times(bytes: Bytes, iterations: u64) -> Bytes {
    Bytes::new(bytes.get().saturating_mul(iterations))
}

fn of_tiles(run: &TileRun) -> Bytes {
    let read = |read: &TileRead| match read {
        TileRead::Generator(generator, layout) if generator.is_stored() => bytes(generator, layout),
        TileRead::Generator(..) | TileRead::Input(..) => Bytes::ZERO,
    };
    run.reads.iter().map(read).sum()
}

/// Every element as often as it is read.
fn bytes(generator: &Generator, layout: &Layout) -> Bytes {
    Bytes::of(layout.count() * generator.dtype().size())
}

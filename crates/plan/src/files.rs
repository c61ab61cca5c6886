//! What a plan reads from files as it runs: tensors that stay in theirs, and which steps leave them there.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::Bytes;
use tonnage_core::error::Result;
use tonnage_core::graph::Node;
use tonnage_core::layout::Layout;
use tonnage_core::looping::Loop;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::Lower;

use crate::budget::Machine;
use crate::loops::{LoopPlan, Sliced};
use crate::place::Planner;
use crate::plan::{At, Plan, Run, Step, Streamed, TileRead, TileRun};

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
    /// What a call reads from files: each step that uses a tensor in a file reads it again, in every round of a loop; of branches the one that
    /// reads most counts, and of a loop whose rounds the data decide on the most that there can be, or one. It is no part of the peak.
    pub fn reads(&self) -> Bytes {
        self.steps.iter().map(Step::reads_stored).sum()
    }

    /// Seconds that reading takes, at the rate that was measured for files.
    pub fn seconds_of_reads(&self, machine: &Machine) -> f64 {
        match machine.has_disk() {
            true => self.reads().get() as f64 / machine.read,
            false => self.reads().get() as f64 / Machine::DEFAULT.read,
        }
    }
}

impl Planner<'_> {
    /// Makes every input of a node that is a recipe resident, but for what its kernel reads from outside of memory: those are handed back.
    pub(crate) fn in_memory(&mut self, node: &Node) -> Result<Streamed> {
        let mut streamed = Streamed::new();
        for (i, id) in node.inputs.iter().enumerate() {
            if let (Lower::Streaming { reads, .. }, At::Recipe(recipe)) =
                (node.op.lower, &self.place(*id)?.at)
                && let Some((_, layout)) = recipe.as_stored()
                && let Some(count) = self.graph.with_call(node, |call| reads(call, i, layout))
            {
                streamed.push(StreamedInput { input: i, recipe: recipe.clone(), count });
                continue;
            }
            self.materialize(node, *id)?;
        }
        Ok(streamed)
    }
}

/// Where the inputs of a kernel lie that it reads from files, in the order of all of its inputs.
pub(crate) fn layouts(streamed: &Streamed, inputs: usize) -> SmallVec<[Option<&Layout>; 3]> {
    let layout = |input: usize| {
        let found = streamed.iter().find(|streamed| streamed.input == input)?;
        Some(found.recipe.as_stored()?.1)
    };
    (0..inputs).map(layout).collect()
}

impl Step {
    /// What it reads from files.
    pub(crate) fn reads_stored(&self) -> Bytes {
        let read = |of: &StreamedInput| Bytes::of(of.count * of.recipe.dtype().size());
        let streamed = self.streamed.iter().map(read).sum::<Bytes>();
        streamed
            + match &self.run {
                Run::Tile(run) | Run::Copy { run, .. } => of_tiles(run),
                Run::Branch { branches, .. } => {
                    let all = branches.iter().map(|branch| branch.plan.reads());
                    all.max().unwrap_or(Bytes::ZERO)
                }
                Run::Loop(of) => of_loop(of, rounds(&of.spec)),
                Run::LoopGrad(of) => {
                    let back = times(of.step.reads() + of_rows(&of.seeds), rounds(&of.spec.of));
                    back + of_loop(&of.forward, of.again.unwrap_or(1))
                }
                Run::Nothing | Run::Kernel | Run::Transfer(_) => Bytes::ZERO,
            }
    }
}

fn of_loop(of: &LoopPlan, rounds: u64) -> Bytes {
    let condition = of.condition.as_ref().map_or(Bytes::ZERO, Plan::reads);
    times(of.body.reads() + condition + of_rows(&of.sliced), rounds)
}

/// What each round reads of inputs that it takes a row of.
fn of_rows(sliced: &[Sliced]) -> Bytes {
    let read = |of: &Sliced| match of {
        Sliced::Recipe { run, .. } => of_tiles(run),
        Sliced::Bytes { .. } => Bytes::ZERO,
    };
    sliced.iter().map(read).sum()
}

fn rounds(spec: &Loop) -> u64 {
    spec.most_rounds().unwrap_or(1)
}

fn times(bytes: Bytes, rounds: u64) -> Bytes {
    Bytes::new(bytes.get().saturating_mul(rounds))
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

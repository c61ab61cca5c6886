//! A plan as data.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Key, Recipe};
use tonnage_core::row::{Cost, Transfer};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::{Form, TileProgram};
use tonnage_core::{Bytes, Graph, Kind, Source, ValueId};

use crate::budget::{Fitted, Segment};
use crate::files::{FileValuePlan, StreamedInput};
use crate::kept::Kept;
use crate::loops::{CheckpointPolicy, LoopGradPlan, LoopPlan, StateFilePlan};
use crate::place::InputSpec;
use crate::target::SharedTarget;

/// The number of a buffer in its plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BufferId(pub usize);

/// Whose bytes a value lies in.
#[derive(Debug, Clone, PartialEq)]
pub enum At {
    /// Those of the graph's input of that number.
    Input(usize),
    /// A buffer in the arena.
    Buffer(BufferId),
    /// Those that the caller gave for the output of that number.
    Output(usize),
    /// None: it is computed as it is read.
    Recipe(Arc<Recipe>),
}

/// Where a value lies.
#[derive(Debug, Clone, PartialEq)]
pub struct Placed {
    /// Whose bytes.
    pub at: At,
    /// Where in them; sizes that the data decide stand at their bound.
    pub layout: Layout,
}

impl Placed {
    /// Nowhere: computed as it is read.
    pub(crate) fn recipe(recipe: Arc<Recipe>) -> Placed {
        let layout = Layout::contiguous(recipe.sizes.clone());
        Placed { at: At::Recipe(recipe), layout }
    }
}

/// Where buffers are. Each space is packed on its own, and a budget is one of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Space {
    /// The arena.
    Memory,
    /// Host memory: what a device spills.
    Host,
    /// The call's spill file: what the host spills.
    Disk,
}

/// What a step keeps busy. Lanes run side by side; a step that waits says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Lane {
    /// The processor, or the device's.
    Compute,
    /// The link between a device and host memory.
    Copies,
    /// The spill file.
    Disk,
    /// What is between ranks.
    Network,
}

/// A buffer of the arena, or of what is spilled.
#[derive(Debug, Clone)]
pub struct BufferPlan {
    /// Where it is.
    pub space: Space,
    /// Its size, rounded: what it takes of its space.
    pub bytes: Bytes,
    /// What the elements take that it is made for, to the byte: what is written there. It may move only to where that
    /// fits.
    pub elements: Bytes,
    /// Where it starts in its space.
    pub offset: Bytes,
    /// The first step at which it lives.
    pub first: usize,
    /// The last step at which it lives.
    pub last: usize,
    /// What the ledger calls it.
    pub kind: Kind,
    /// The op that makes it.
    pub what: &'static str,
    /// The user's line.
    pub source: Source,
    /// Whether it outlives the call: then it starts on a page.
    pub outlives_call: bool,
}

/// What becomes of an output.
#[derive(Debug, Clone)]
pub enum OutputPlan {
    /// It is in a buffer of the arena, which outlives the call.
    Buffer {
        /// Which.
        buffer: BufferId,
        /// Where in it.
        layout: Layout,
    },
    /// It is small and gets bytes of its own from the start.
    Own {
        /// How many, rounded.
        bytes: Bytes,
        /// Where in them.
        layout: Layout,
    },
    /// It is an input, or a view of one.
    Input {
        /// Which.
        input: usize,
        /// Where in it.
        layout: Layout,
    },
    /// It stays a recipe.
    Recipe(Arc<Recipe>),
    /// It is in the bytes that the caller gave for it.
    Given,
}

impl OutputPlan {
    /// Bytes of its own, if it is small.
    pub fn own_bytes(&self) -> Bytes {
        match self {
            OutputPlan::Own { bytes, .. } => *bytes,
            _ => Bytes::ZERO,
        }
    }
}

/// What a step does to memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StepMemory {
    /// New bytes for its results.
    Allocates,
    /// Takes over the bytes of the input of that number.
    InPlace(usize),
    /// Another view of an input's bytes.
    Aliases,
    /// No bytes: a description.
    Recipe,
    /// Writes into a variable.
    Updates,
    /// Bytes to work in alone: the result goes to a file.
    ToFile,
    /// Writes straight where the result will live.
    Output,
    /// Begins to spill a value.
    Spills,
    /// New bytes, which begin to be filled with what was spilled.
    ReadsBack,
    /// Waits for the lane that spills.
    Waits,
}

/// Why a step does not take over an input's bytes, although its row would allow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    /// Somebody reads it, or a view of it, later.
    ReadLater,
    /// It is an argument or a constant that the caller holds.
    NotGivenUp,
    /// It has another number of bytes than the result.
    OtherSize,
    /// Its elements do not lie close together.
    Strided,
    /// Another input of the step lies in the same bytes in another way.
    Shared,
    /// It has no bytes of its own: it is a recipe.
    Recipe,
}

/// What a load of a tile step reads.
#[derive(Debug, Clone, PartialEq)]
pub enum TileRead {
    /// The node's input of that number, through that layout over the domain.
    Input(usize, Layout),
    /// A generator, through that layout over the domain.
    Generator(Generator, Layout),
}

/// A tile program with all that is known of its run beforehand.
#[derive(Debug, Clone)]
pub struct TileRun {
    /// With recipes among the inputs written out.
    pub program: TileProgram,
    /// What it runs over.
    pub domain: Sizes,
    /// What its loads read.
    pub reads: Vec<TileRead>,
    /// The inputs of the step that are recipes when it runs; a later step may write them out.
    pub recipes: Vec<Option<Arc<Recipe>>>,
    /// What it takes.
    pub cost: Cost,
}

impl TileRun {
    /// A run over a domain; no input is a recipe.
    pub fn new(program: TileProgram, domain: Sizes, reads: Vec<TileRead>) -> TileRun {
        let elements: u64 = domain.iter().map(|n| *n as u64).product();
        let size = |form: &Form| match form {
            Form::Elements(dtype) => dtype.size() as u64,
            Form::Bits => 0,
        };
        let bytes: u64 = program.loads.iter().map(size).sum::<u64>()
            + program.stores.iter().map(|(_, form)| size(form)).sum::<u64>();
        let cost = Cost::local(elements * program.flops(), elements * bytes);
        TileRun { program, domain, reads, recipes: Vec::new(), cost }
    }
}

/// A branch.
#[derive(Debug, Clone)]
pub struct BranchPlan {
    /// What it does.
    pub plan: Plan,
    /// For each result that belongs into a variable, where it lies in the step's scratch until it is copied there;
    /// `None` where the branch writes it in place, and for other results.
    pub second: Vec<Option<Bytes>>,
    /// Where its arena starts in the scratch.
    pub inner: Bytes,
}

/// How a step runs.
#[derive(Debug, Clone)]
pub enum Run {
    /// There is nothing to do.
    Nothing,
    /// A tile program.
    Tile(Arc<TileRun>),
    /// A last copy, of a result that has to lie elsewhere.
    Copy {
        /// The program.
        run: Arc<TileRun>,
        /// The result.
        from: ValueId,
        /// Where it has to lie.
        to: Placed,
    },
    /// The kernel of the op, with what its call needs; without where the data decide sizes.
    Kernel(Option<Box<KernelCall>>),
    /// One of these, as the first input says: true, false; or the one of that number, the last one for any
    /// other number.
    Branch {
        /// What random ops in them are made of.
        key: Option<Key>,
        /// In order.
        branches: Vec<BranchPlan>,
    },
    /// A loop.
    Loop(Box<LoopPlan>),
    /// The gradient of a loop.
    LoopGrad(Box<LoopGradPlan>),
    /// To where values are spilled, or back.
    Transfer(Transfer),
    /// A tile program whose result goes to a file, a piece at a time.
    ToFile {
        /// The program.
        run: Arc<TileRun>,
        /// Which of the plan's [`Plan::file_values`] it makes.
        file_value: usize,
    },
    /// Rows that are put into a table in a file: what that is then goes to a file, a piece at a time.
    RowsToFile {
        /// Which of the plan's [`Plan::file_values`] it makes.
        file_value: usize,
    },
}

/// What the call of a kernel needs that its types say, found when it is planned.
#[derive(Debug, Clone)]
pub struct KernelCall {
    /// How the elements of the outputs lie, in order.
    pub outputs: SmallVec<[Layout; 1]>,
    /// What it takes.
    pub cost: Cost,
}

/// One node of the graph, as it will run.
#[derive(Debug, Clone)]
pub struct Step {
    /// Its number in the graph; of a last copy: none, `usize::MAX`.
    pub node: usize,
    /// How it runs.
    pub run: Run,
    /// What it does to memory.
    pub memory: StepMemory,
    /// Whether it writes into a variable.
    pub updates: bool,
    /// Inputs that its row would let it take over, and why it does not.
    pub refused: SmallVec<[(usize, Refusal); 1]>,
    /// Buffers that begin here, scratch included.
    pub begins: Vec<BufferId>,
    /// Buffers that end here.
    pub ends: Vec<BufferId>,
    /// Workspace.
    pub scratch: Option<BufferId>,
    /// Of a step that runs on the host for a device that has no kernel for it: host memory for what it reads and makes, and for its
    /// workspace there.
    pub staging: Option<Bytes>,
    /// Whether sizes that the data decide are involved: layouts are known at run time alone.
    pub dynamic: bool,
    /// Bytes that live in the arena while it runs.
    pub live: Bytes,
    /// Values that it reads.
    pub reads: SmallVec<[ValueId; 4]>,
    /// Values that it makes.
    pub writes: SmallVec<[ValueId; 2]>,
    /// The later step, on what it makes alone, that runs as part of it.
    pub epilogue: Option<usize>,
    /// Inputs that its kernel reads from files as it goes.
    pub streamed: Streamed,
    /// Whether it runs on the network lane, beside the steps behind it, until one awaits it or the call ends.
    pub in_flight: bool,
    /// Steps on the network lane that have ended before this one does anything.
    pub awaits: SmallVec<[usize; 1]>,
}

/// Inputs that stay recipes.
pub type Streamed = SmallVec<[StreamedInput; 1]>;

impl Step {
    /// What it keeps busy, of a plan that spills to that space.
    pub(crate) fn lane(&self, spills_to: Space) -> Lane {
        match (&self.run, spills_to) {
            (Run::Transfer(Transfer::Write | Transfer::Read), Space::Disk) => Lane::Disk,
            (Run::Transfer(Transfer::Write | Transfer::Read), _) => Lane::Copies,
            _ if self.in_flight => Lane::Network,
            _ => Lane::Compute,
        }
    }

    /// Iterations that gradients of loops recompute in it, in its regions too; `None` where only the data know.
    pub fn recomputed_iterations(&self) -> Option<u64> {
        // Zero times something unknown is zero.
        let times = |plan: &Plan, count: Option<u64>| match plan.recomputed_iterations()? {
            0 => Some(0),
            each => Some(each.saturating_mul(count?)),
        };
        match &self.run {
            Run::Branch { branches, .. } => {
                let mut all = branches.iter().map(|b| b.plan.recomputed_iterations());
                let first = all.next().unwrap_or(Some(0));
                if all.all(|other| other == first) { first } else { None }
            }
            Run::Loop(plan) => times(&plan.body, plan.spec.known_iterations()),
            Run::LoopGrad(plan) => {
                let iterations = plan.spec.of.known_iterations();
                let inner = times(&plan.forward.body, plan.recomputed_iterations)?
                    .saturating_add(times(&plan.step, iterations)?);
                Some(plan.recomputed_iterations?.saturating_add(inner))
            }
            _ => Some(0),
        }
    }
}

impl Step {
    /// The file of states that it writes, with how often, of the plans in it too; as far as that is known.
    pub(crate) fn state_files(&self, times: u64, found: &mut dyn FnMut(&StateFilePlan, u64)) {
        let mut inner = |plan: &Plan, times: u64| {
            plan.steps.iter().for_each(|step| step.state_files(times, found));
        };
        let own = match &self.run {
            Run::Branch { branches, .. } => {
                branches.iter().for_each(|branch| inner(&branch.plan, times));
                None
            }
            Run::Loop(plan) => {
                inner(&plan.body, times.saturating_mul(plan.spec.max_iterations().unwrap_or(0)));
                match &plan.checkpoint_policy {
                    CheckpointPolicy::File(file) => Some(file),
                    _ => None,
                }
            }
            Run::LoopGrad(plan) => {
                let back = plan.spec.of.max_iterations().unwrap_or(0);
                inner(
                    &plan.forward.body,
                    times.saturating_mul(plan.recomputed_iterations.unwrap_or(back)),
                );
                inner(&plan.step, times.saturating_mul(back));
                plan.file.as_ref().filter(|_| !plan.written)
            }
            _ => None,
        };
        own.into_iter().for_each(|file| found(file, times));
    }
}

/// An order, an address for every buffer, and the peak.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The graph as it runs.
    pub graph: Arc<Graph>,
    /// The same with its nodes in the order of the program.
    pub program: Arc<Graph>,
    /// What it was planned for.
    pub specs: Vec<InputSpec>,
    /// The device that it was planned for.
    pub target: SharedTarget,
    /// Where each value lies, by its number.
    pub places: Vec<Option<Placed>>,
    /// In the order in which they run.
    pub steps: Vec<Step>,
    /// Buffers of the arena and of the spill file.
    pub buffers: Vec<BufferPlan>,
    /// What becomes of the outputs.
    pub outputs: Vec<OutputPlan>,
    /// The arena's size.
    pub arena: Bytes,
    /// The largest sum of buffers that live together: no arena is smaller.
    pub bound: Bytes,
    /// How long the spill file is; nothing where there is none.
    pub disk: Bytes,
    /// Host memory for what a device spills; nothing where it is the host's plan.
    pub host_spill: Bytes,
    /// What goes to files and outlives the call.
    pub file_values: Vec<FileValuePlan>,
    /// Which inputs are written: variables, and arguments that were given up.
    pub written: Vec<bool>,
    /// What the inputs take: bytes of arguments, variables and constants that are no recipes.
    pub inputs: Bytes,
    /// The same input by input; nothing for a second input in the same bytes.
    pub input_bytes: Vec<Bytes>,
    /// Whether a branch or a size that the data decide is involved, so that a run may take less.
    pub is_bound: bool,
    /// Whether it prints or calls back: it runs on the thread of its caller then.
    pub calls_host: bool,
    /// What was done to fit a budget, where one was asked for.
    pub fitted: Option<Fitted>,
    /// Segments that run in pieces to fit it.
    pub segments: Vec<Segment>,
    /// What the device keeps of it.
    pub kept: Kept,
}

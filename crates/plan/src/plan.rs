//! A plan as data.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::shape::Sizes;
use tonnage_core::tile::TileProgram;
use tonnage_core::{Bytes, Graph, Kind, Source, ValueId};

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

/// A buffer of the arena.
#[derive(Debug, Clone)]
pub struct BufferPlan {
    /// Its size, rounded.
    pub bytes: Bytes,
    /// Where it starts in the arena.
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
    pub kept: bool,
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
    /// Writes straight where the result will live.
    Output,
}

/// What a load of a tile step reads.
#[derive(Debug, Clone)]
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
}

/// A loop.
#[derive(Debug, Clone)]
pub struct LoopPlan {
    /// Inputs that the body changes.
    pub carried: usize,
    /// The most rounds there may be.
    pub most: Option<u64>,
    /// The condition; its only output is one boolean.
    pub condition: Plan,
    /// The body.
    pub body: Plan,
    /// For each carried value, where its second copy lies in the step's scratch; `None` where the body
    /// updates it in place.
    pub second: Vec<Option<Bytes>>,
    /// Where the condition's boolean lies in the scratch.
    pub answer: Bytes,
    /// Where the arenas of condition and body start in the scratch.
    pub inner: Bytes,
}

/// The gradient of a loop.
#[derive(Debug, Clone)]
pub struct LoopGradPlan {
    /// The loop, run forwards between checkpoints.
    pub forward: LoopPlan,
    /// One step back.
    pub step: Plan,
    /// Which carried values have a gradient.
    pub active: Vec<bool>,
    /// Which inputs that are only read have a gradient.
    pub wanted: Vec<bool>,
    /// States that are kept at once.
    pub slots: usize,
    /// Bytes of one state.
    pub state: Bytes,
    /// Where each carried value lies in a state.
    pub parts: Vec<Bytes>,
    /// Where the states start in the scratch: `slots` of them, then three to work on.
    pub states: Bytes,
    /// For each active carried value and wanted input, where its second copy lies in the scratch;
    /// `None` where the step updates it in place.
    pub second: Vec<Option<Bytes>>,
    /// Where the step's arena starts in the scratch.
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
    /// The row's kernel.
    Kernel,
    /// One of these, as the first input says: true, false.
    Branch(Vec<Plan>),
    /// A loop.
    Loop(Box<LoopPlan>),
    /// The gradient of a loop.
    LoopGrad(Box<LoopGradPlan>),
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
    /// Buffers that begin here, scratch included.
    pub begins: Vec<BufferId>,
    /// Buffers that end here.
    pub ends: Vec<BufferId>,
    /// Workspace.
    pub scratch: Option<BufferId>,
    /// Whether sizes that the data decide are involved: layouts are known at run time alone.
    pub dynamic: bool,
    /// Bytes that live in the arena while it runs.
    pub live: Bytes,
    /// Values that it reads.
    pub reads: SmallVec<[ValueId; 4]>,
    /// Values that it makes.
    pub writes: SmallVec<[ValueId; 2]>,
}

/// An order, an address for every buffer, and the peak.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The graph as it runs.
    pub graph: Graph,
    /// Where each value lies, by its number.
    pub places: Vec<Option<Placed>>,
    /// In the order in which they run.
    pub steps: Vec<Step>,
    /// Buffers of the arena.
    pub buffers: Vec<BufferPlan>,
    /// What becomes of the outputs.
    pub outputs: Vec<OutputPlan>,
    /// The arena's size.
    pub arena: Bytes,
    /// The largest sum of buffers that live together: no arena is smaller.
    pub bound: Bytes,
    /// Which inputs are written: variables, and arguments that were given up.
    pub written: Vec<bool>,
    /// What the inputs take: bytes of arguments, variables and constants that are no recipes.
    pub inputs: Bytes,
    /// Whether a branch or a size that the data decide is involved, so that a run may take less.
    pub is_bound: bool,
}

impl Plan {
    /// Bytes of small outputs, which have bytes of their own from the start.
    pub fn own_outputs(&self) -> Bytes {
        self.outputs
            .iter()
            .map(|o| match o {
                OutputPlan::Own { bytes, .. } => *bytes,
                _ => Bytes::ZERO,
            })
            .sum()
    }

    /// What the call obtains: the arena and the small outputs.
    pub fn obtains(&self) -> Bytes {
        self.arena + self.own_outputs()
    }

    /// The peak: inputs, and everything that the call obtains.
    pub fn peak(&self) -> Bytes {
        self.inputs + self.obtains()
    }

    /// Where a value lies.
    pub fn place(&self, id: ValueId) -> Option<&Placed> {
        self.places[id.index()].as_ref()
    }

    /// The buffers that live at the peak of the arena, largest first.
    pub fn live_at_peak(&self) -> Vec<&BufferPlan> {
        let at = self.steps.iter().enumerate().max_by_key(|(_, s)| s.live).map_or(0, |(i, _)| i);
        let mut live: Vec<&BufferPlan> =
            self.buffers.iter().filter(|b| b.first <= at && at <= b.last).collect();
        live.sort_by_key(|b| std::cmp::Reverse(b.bytes));
        live
    }
}

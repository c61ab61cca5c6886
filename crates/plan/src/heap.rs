//! What a plan itself takes on the heap.

use tonnage_core::Bytes;
use tonnage_core::heap::{Heap, Seen};

use crate::budget::Segment;
use crate::files::FileValuePlan;
use crate::loops::{CheckpointPolicy, LoopGradPlan, LoopPlan, Sliced, StateSource};
use crate::place::InputSpec;
use crate::plan::{
    At, BranchPlan, BufferId, BufferPlan, KernelCall, OutputPlan, Placed, Plan, Run, Step,
    TileRead, TileRun,
};
use crate::target::Target;

impl Plan {
    /// What the plan itself takes on the heap, with its graph and the plans of bodies and branches.
    pub fn bytes(&self) -> Bytes {
        Bytes::of(self.heap(&mut Seen::default()))
    }
}

impl Heap for Plan {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.graph.heap(seen)
            + self.program.heap(seen)
            + self.specs.heap(seen)
            + self.target.heap(seen)
            + self.places.heap(seen)
            + self.steps.heap(seen)
            + self.buffers.heap(seen)
            + self.outputs.heap(seen)
            + self.written.heap(seen)
            + self.input_bytes.capacity() * size_of::<Bytes>()
            + self.segments.capacity() * size_of::<Segment>()
            + self.file_values.capacity() * size_of::<FileValuePlan>()
    }
}

impl Heap for dyn Target {
    // Names and tables of a device are the device's.
    fn heap(&self, _: &mut Seen) -> usize {
        0
    }
}

impl Heap for InputSpec {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            InputSpec::Bytes { layout, .. } => layout.heap(seen),
            InputSpec::Recipe(recipe) => recipe.heap(seen),
        }
    }
}

impl Heap for Placed {
    fn heap(&self, seen: &mut Seen) -> usize {
        let recipe = match &self.at {
            At::Recipe(recipe) => recipe.heap(seen),
            _ => 0,
        };
        recipe + self.layout.heap(seen)
    }
}

impl Heap for Step {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.run.heap(seen)
            + self.begins.heap(seen)
            + self.ends.heap(seen)
            + if self.refused.spilled() { size_of_val(&*self.refused) } else { 0 }
            + self.reads.heap(seen)
            + self.writes.heap(seen)
            + self.streamed.iter().map(|s| s.recipe.heap(seen)).sum::<usize>()
            + if self.streamed.spilled() { size_of_val(&*self.streamed) } else { 0 }
    }
}

impl Heap for Run {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Run::Kernel(call) => call.heap(seen),
            Run::Nothing | Run::Transfer(_) | Run::RowsToFile { .. } => 0,
            Run::Tile(run) | Run::ToFile { run, .. } => run.heap(seen),
            Run::Copy { run, to, .. } => run.heap(seen) + to.heap(seen),
            Run::Branch { branches, .. } => branches.heap(seen),
            Run::Loop(plan) => plan.heap(seen),
            Run::LoopGrad(plan) => plan.heap(seen),
        }
    }
}

impl Heap for KernelCall {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.outputs.heap(seen)
    }
}

impl Heap for TileRun {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.program.heap(seen)
            + self.domain.heap(seen)
            + self.reads.heap(seen)
            + self.recipes.heap(seen)
    }
}

impl Heap for TileRead {
    fn heap(&self, seen: &mut Seen) -> usize {
        let (TileRead::Input(_, layout) | TileRead::Generator(_, layout)) = self;
        layout.heap(seen)
    }
}

impl Heap for LoopPlan {
    fn heap(&self, seen: &mut Seen) -> usize {
        let policy = match &self.checkpoint_policy {
            CheckpointPolicy::These(iterations) => iterations.capacity() * size_of::<u64>(),
            CheckpointPolicy::Nothing | CheckpointPolicy::Online { .. } => 0,
            CheckpointPolicy::File(file) => file.parts.heap(seen),
        };
        self.spec.heap(seen)
            + self.condition.heap(seen)
            + self.body.heap(seen)
            + self.sliced.heap(seen)
            + self.second.heap(seen)
            + policy
    }
}

impl Heap for BranchPlan {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.plan.heap(seen) + self.second.heap(seen)
    }
}

impl Heap for Sliced {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            Sliced::Bytes { layout, .. } => layout.heap(seen),
            Sliced::Recipe { run, strides, row, .. } => {
                run.heap(seen) + strides.capacity() * size_of::<isize>() + row.heap(seen)
            }
        }
    }
}

impl Heap for LoopGradPlan {
    fn heap(&self, seen: &mut Seen) -> usize {
        let state_sources: usize =
            self.state_sources.iter().map(|h| h.capacity() * size_of::<StateSource>()).sum();
        self.spec.of.heap(seen)
            + self.forward.heap(seen)
            + self.step.heap(seen)
            + self.seeds.heap(seen)
            + state_sources
            + self.checkpoints.heap(seen)
            + self.parts.heap(seen)
            + self.second.heap(seen)
            + self.file.as_ref().map_or(0, |file| file.parts.heap(seen))
    }
}

impl Heap for OutputPlan {
    fn heap(&self, seen: &mut Seen) -> usize {
        match self {
            OutputPlan::Buffer { layout, .. }
            | OutputPlan::Own { layout, .. }
            | OutputPlan::Input { layout, .. } => layout.heap(seen),
            OutputPlan::Recipe(recipe) => recipe.heap(seen),
            OutputPlan::Given => 0,
        }
    }
}

impl Heap for BufferPlan {
    fn heap(&self, _: &mut Seen) -> usize {
        0
    }
}

impl Heap for BufferId {
    fn heap(&self, _: &mut Seen) -> usize {
        0
    }
}

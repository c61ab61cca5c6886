//! What a plan for a device takes of host memory: what it spills there, and what passes through there, where a step runs on the host
//! because the device has no kernel for it, or where states of loops go to files.
//!
//! The invariant: these are the very bytes that such a step obtains, so that the figure is known before the run.

use std::ops::Range;

use tonnage_core::bytes::Bytes;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::layout::Layout;
use tonnage_core::tile::Form;

use crate::loops::{CheckpointPolicy, LoopPlan, StateFilePlan};
use crate::plan::{At, Placed, Plan, Run, Space, Step, Streamed, TileRead, TileRun};
use crate::target::Target;

/// The bytes of an operand that are copied to host memory: all from its first element to its last one. Those of bits start with their
/// storage.
pub fn staged_range(layout: &Layout, form: Form) -> Range<usize> {
    let window = layout.window();
    match form {
        Form::Elements(dtype) => window.start * dtype.size()..window.end * dtype.size(),
        Form::Bits => 0..window.end.div_ceil(8),
    }
}

/// Notes which steps run on the host for a device that has no kernel for them, and what that takes.
pub(crate) fn note(
    graph: &Graph,
    places: &[Option<Placed>],
    steps: &mut [Step],
    target: &dyn Target,
) {
    if target.spill_space() == Space::Disk {
        return;
    }
    let staging = Staging { graph, places };
    for step in steps {
        step.staging = match (&step.run, graph.nodes.get(step.node)) {
            (Run::Kernel(_), Some(node)) => graph
                .with_call(node, |call| target.host_scratch(node.op, call, &staging.layouts(node)))
                .map(|scratch| scratch.rounded() + staging.kernel(node, &step.streamed)),
            (Run::Tile(run), Some(node)) => target
                .host_tile_scratch(run)
                .map(|scratch| scratch.rounded() + staging.tile(node, run, &step.writes)),
            (Run::Copy { run, from, .. }, _) => {
                target.host_tile_scratch(run).map(|scratch| scratch.rounded() + staging.made(*from))
            }
            _ => None,
        };
    }
}

/// What copies in host memory take: of what a step reads, but for what it overwrites, and of what it makes.
struct Staging<'a> {
    graph: &'a Graph,
    places: &'a [Option<Placed>],
}

impl Staging<'_> {
    fn placed(&self, id: ValueId) -> Option<&Placed> {
        self.places.get(id.index())?.as_ref()
    }

    fn layouts(&self, node: &Node) -> Vec<&Layout> {
        node.inputs.iter().filter_map(|id| Some(&self.placed(*id)?.layout)).collect()
    }

    fn kernel(&self, node: &Node, streamed: &Streamed) -> Bytes {
        let made: Bytes = node.outputs.iter().map(|id| self.made(*id)).sum();
        let in_memory = node.inputs.iter().enumerate().filter(|(i, id)| {
            streamed.iter().all(|streamed| streamed.input != *i)
                && !self.overwritten(**id, &node.outputs)
        });
        let read = in_memory.filter_map(|(_, id)| {
            let form = Form::Elements(self.graph.ty(*id).dtype);
            Some(copied(&self.placed(*id)?.layout, form))
        });
        made + read.sum()
    }

    fn tile(&self, node: &Node, run: &TileRun, writes: &[ValueId]) -> Bytes {
        let made: Bytes = writes.iter().map(|id| self.made(*id)).sum();
        let read = run.reads.iter().zip(&run.program.loads).filter_map(|(read, form)| match read {
            TileRead::Input(i, layout) if !self.overwritten(node.inputs[*i], writes) => {
                Some(copied(layout, *form))
            }
            _ => None,
        });
        made + read.sum()
    }

    fn made(&self, id: ValueId) -> Bytes {
        let size = self.graph.ty(id).dtype.size();
        let count = self.placed(id).map_or(0, |placed| placed.layout.count());
        Bytes::of(count * size).rounded()
    }

    /// Whether a value starts at the same byte as one that is written.
    fn overwritten(&self, id: ValueId, writes: &[ValueId]) -> bool {
        let at = |id: ValueId| {
            self.placed(id).map(|placed| &placed.at).filter(|at| !matches!(at, At::Recipe(_)))
        };
        at(id).is_some_and(|from| writes.iter().any(|made| at(*made) == Some(from)))
    }
}

fn copied(layout: &Layout, form: Form) -> Bytes {
    Bytes::of(staged_range(layout, form).len()).rounded()
}

impl StateFilePlan {
    /// The largest of the carried values, as it lies in a state.
    fn largest_part(&self) -> Bytes {
        let ends = self.parts.iter().skip(1).chain([&self.state]);
        let lengths = self.parts.iter().zip(ends).map(|(start, end)| end.saturating_sub(*start));
        lengths.max().unwrap_or(Bytes::ZERO)
    }
}

impl LoopPlan {
    /// The plans of its condition and body.
    fn regions(&self) -> impl Iterator<Item = &Plan> {
        self.condition.iter().chain([&self.body])
    }

    fn states_file(&self) -> Option<&StateFilePlan> {
        match &self.checkpoint_policy {
            CheckpointPolicy::File(file) => Some(file),
            _ => None,
        }
    }
}

impl Step {
    /// The plans of its regions.
    fn regions(&self) -> impl Iterator<Item = &Plan> {
        let (branches, loops, back) = match &self.run {
            Run::Branch { branches, .. } => (&branches[..], None, None),
            Run::Loop(plan) => (&[][..], Some(&**plan), None),
            Run::LoopGrad(plan) => (&[][..], Some(&plan.forward), Some(&plan.step)),
            _ => (&[][..], None, None),
        };
        branches
            .iter()
            .map(|b| &b.plan)
            .chain(loops.into_iter().flat_map(LoopPlan::regions))
            .chain(back)
    }

    /// The most host memory that it takes at once for what passes through there, in its regions too.
    fn staged(&self) -> Bytes {
        let states = match &self.run {
            Run::Loop(plan) => plan.states_file(),
            Run::LoopGrad(plan) => plan.file.as_ref().or(plan.forward.states_file()),
            _ => None,
        };
        let inner = self.regions().map(Plan::staged).max();
        inner.max(states.map(StateFilePlan::largest_part)).max(self.staging).unwrap_or(Bytes::ZERO)
    }
}

impl Plan {
    /// The most host memory that a step takes at once for what passes through there; nothing for the host's own plans.
    fn staged(&self) -> Bytes {
        match self.target.spill_space() {
            Space::Disk => Bytes::ZERO,
            Space::Host | Space::Memory => {
                self.steps.iter().map(Step::staged).max().unwrap_or(Bytes::ZERO)
            }
        }
    }

    /// An op that the device leaves to the host because it has no kernel for it, in regions too.
    pub fn host_step(&self) -> Option<&'static str> {
        self.steps.iter().find_map(|step| {
            let node = self.graph.nodes.get(step.node);
            let own = match (step.staging, node) {
                (Some(_), Some(node)) if !node.calls_host() => Some(node.op.name),
                (Some(_), None) => Some("copy"),
                _ => None,
            };
            own.or_else(|| step.regions().find_map(Plan::host_step))
        })
    }

    /// Whether a step of a plan for a device runs on the host, in regions too: one that calls back, or one that the device has no kernel for.
    pub fn has_host_steps(&self) -> bool {
        let on_host =
            |step: &Step| step.staging.is_some() || step.regions().any(Plan::has_host_steps);
        self.steps.iter().any(on_host)
    }

    /// What a call of a plan for a device obtains of host memory: what it spills there, and what the largest step takes that passes
    /// through there. Nothing for the host's own plans, whose bytes are all in [`Plan::peak`].
    pub fn host_bytes(&self) -> Bytes {
        self.host_spill + self.staged()
    }
}

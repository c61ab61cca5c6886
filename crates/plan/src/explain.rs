//! A plan explained: what lives at the peak, and what every step does to memory, as plain data. The table that a
//! plan prints is made of it, and so is whatever a tool wants to draw.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use serde::Serialize;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Bytes, Kind, Source, ValueId};

use crate::budget::{Fitted, Machine, Segment};
use crate::plan::{At, Lane, Placed, Plan, Refusal, Run, Space, Step, StepMemory};
use crate::sort;
use crate::suggest::Suggestion;

/// What a plan says, for people and tools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Explanation {
    /// The peak: inputs, the arena and small results.
    pub peak: Bytes,
    /// Arguments, variables and constants that lie in memory.
    pub inputs: Bytes,
    /// One block for all buffers.
    pub arena: Bytes,
    /// The largest sum of buffers that live together: no arena is smaller.
    pub bound: Bytes,
    /// Results too small to lie in the arena.
    pub small_results: Bytes,
    /// Whether a branch or a size that the data decide is involved, so that a run may take less.
    pub is_bound: bool,
    /// The device that it was planned for, where that is not the host.
    pub device: Option<String>,
    /// What is spilled and read back.
    pub spilled: Bytes,
    /// Of a plan for a device: what it obtains of host memory, for what it spills and for steps that pass through there.
    pub host: Bytes,
    /// What is read from tensors that stay in their files.
    pub reads: Bytes,
    /// What is written to files that hold variables.
    pub writes: Bytes,
    /// How long its files are.
    pub disk: Bytes,
    /// What was done to fit a budget.
    pub fitted: Option<Fitted>,
    /// Segments that run in pieces to fit it.
    pub segments: Vec<Segment>,
    /// The step at which the arena is fullest.
    pub peak_step: usize,
    /// What lives then, largest first; what comes from one line and is of one kind is one entry.
    pub live_at_peak: Vec<SourceShare>,
    /// What lives then by kind, largest first. With [`Explanation::gaps`] that is the peak.
    pub by_kind: Vec<Share>,
    /// The same by layer of the model, as [scopes of names](Source::for_layer) say; what is in none is under no name.
    pub by_layer: Vec<Share>,
    /// What of the arena lies idle at its fullest, between buffers and at its end.
    pub gaps: Bytes,
    /// The lines that would pay most to change, the one that saves most first; at most ten.
    pub suggestions: Vec<Suggestion>,
    /// Iterations of loops that gradients will recompute; `None` where only the data know.
    pub recomputed_iterations: Option<u64>,
    /// Every step.
    pub steps: Vec<StepLine>,
}

/// What of the peak is of one kind, or of one layer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Share {
    /// The kind or the layer; empty outside of layers.
    pub name: String,
    /// How many buffers.
    pub count: usize,
    /// Their sum.
    pub bytes: Bytes,
}

/// Bytes of one kind that come from one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceShare {
    /// What they are.
    pub kind: Kind,
    /// The op that makes them, or the variable's name.
    pub what: String,
    /// The user's line.
    pub source: Source,
    /// How many buffers.
    pub count: usize,
    /// Their sum.
    pub bytes: Bytes,
}

/// What one step does to memory.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepLine {
    /// The op.
    pub op: &'static str,
    /// How many primitives run in one pass, where several were joined.
    pub fused: Option<usize>,
    /// Whether it recomputes what was computed before, so that it need not be held.
    pub recomputed: bool,
    /// What it does to memory.
    pub memory: StepMemory,
    /// Why it does not work in place although its row would allow it: which input, and why.
    pub refused: Vec<(usize, Refusal)>,
    /// Bytes that begin here, workspace included; of a step that spills: bytes that are spilled.
    pub bytes: Bytes,
    /// Of a step that runs on the host for a device: what that takes of host memory.
    pub staging: Option<Bytes>,
    /// What it keeps busy.
    pub lane: Lane,
    /// Steps on the network lane that it awaits.
    pub awaits: Vec<usize>,
    /// Bytes that live in the arena while it runs.
    pub live: Bytes,
    /// The user's line.
    pub source: Option<Source>,
    /// The layer of the model.
    pub layer: Option<Arc<str>>,
    /// Of the gradient of a loop: what it saves, and what that costs.
    pub loop_grad: Option<LoopGradLine>,
}

/// What the gradient of a loop saves, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoopGradLine {
    /// How many iterations the loop has; `None` where only the data know.
    pub iterations: Option<u64>,
    /// States that are checkpointed in memory besides the first.
    pub states: usize,
    /// Whether all of them wait in a file.
    pub in_file: bool,
    /// What one takes.
    pub state: Bytes,
    /// Iterations that are recomputed; `None` where only the data know.
    pub recomputed_iterations: Option<u64>,
}

impl Plan {
    /// The step at which the arena is fullest.
    pub fn peak_step(&self) -> usize {
        // The first of several.
        let fullest = self.steps.iter().map(|s| s.live).max();
        self.steps.iter().position(|s| Some(s.live) == fullest).unwrap_or(0)
    }

    /// Everything that lives at the peak, one by one: inputs, buffers of the arena at its fullest, small results.
    fn alive(&self) -> impl Iterator<Item = (Kind, &str, Source, Bytes)> {
        let at = self.peak_step();
        let inputs = self.graph.inputs.iter().zip(&self.input_bytes).map(|(id, bytes)| {
            let info = self.graph.value(*id);
            (info.kind, info.name.as_deref().unwrap_or("argument"), info.source, *bytes)
        });
        let memory = self.buffers.iter().filter(|b| b.space == Space::Memory);
        let alive = memory.filter(move |b| b.first <= at && at <= b.last);
        let buffers = alive.map(|b| (b.kind, b.what, b.source, b.bytes));
        let small = self.graph.outputs.iter().zip(&self.outputs).map(|(id, output)| {
            (Kind::Output, "result", self.graph.value(*id).source, output.own_bytes())
        });
        inputs.chain(buffers).chain(small).filter(|(.., bytes)| !bytes.is_zero())
    }

    /// What lives at the peak, largest first: inputs, buffers of the arena at its fullest, small results.
    pub fn live_at_peak(&self) -> Vec<SourceShare> {
        let mut holders: HashMap<(Kind, &str, Source), SourceShare> = HashMap::new();
        for (kind, what, source, bytes) in self.alive() {
            let none =
                || SourceShare { kind, what: what.into(), source, count: 0, bytes: Bytes::ZERO };
            let holder = holders.entry((kind, what, source)).or_insert_with(none);
            holder.count += 1;
            holder.bytes += bytes;
        }
        let mut holders: Vec<SourceShare> = holders.into_values().collect();
        let by_name = |h: &SourceShare| (h.source, h.kind, h.what.clone());
        sort::by(&mut holders, |a, b| {
            b.bytes.cmp(&a.bytes).then_with(|| by_name(a).cmp(&by_name(b)))
        });
        holders
    }

    /// What lives at the peak, summed up by a name.
    fn shares(&self, name: impl Fn(Kind, Source) -> String) -> Vec<Share> {
        let mut sums: HashMap<String, (usize, Bytes)> = HashMap::new();
        for (kind, _, source, bytes) in self.alive() {
            let sum = sums.entry(name(kind, source)).or_default();
            *sum = (sum.0 + 1, sum.1 + bytes);
        }
        let share = |(name, (count, bytes))| Share { name, count, bytes };
        let mut shares: Vec<Share> = sums.into_iter().map(share).collect();
        sort::by(&mut shares, |a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        shares
    }

    /// All of it as data.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tonnage_core::graph::Builder;
    /// # use tonnage_core::{Attrs, DType, Emit, Kind, TensorType};
    /// # use tonnage_plan::{DescribedTarget, InputSpec, PlanOptions, StepMemory, lower, plan};
    /// let mut builder = Builder::new();
    /// let ty = TensorType::new(DType::F32, [1000, 1000]);
    /// let x = builder.input(ty.clone(), Kind::Input, None);
    /// let y = builder.apply(&tonnage_ops::math::tanh::TANH, vec![x], Attrs::None)?;
    /// let graph = Arc::new(lower(&builder.finish(&[y])?, &DescribedTarget::default())?);
    /// let inputs = [InputSpec::contiguous(&ty, "example", false)?];
    /// let options = PlanOptions::new(Arc::new(DescribedTarget::default()));
    /// let explained = plan(&graph, &inputs, options)?.explain();
    /// assert_eq!(explained.steps[0].memory, StepMemory::Allocates);
    /// assert_eq!(explained.steps[0].refused[0].1.to_string(), "it was not given up");
    /// # Ok::<(), tonnage_core::Error>(())
    /// ```
    ///
    /// What lines would save is found by planning the program as it would be then, once for each: that takes longer than
    /// printing the plan.
    pub fn explain(&self) -> Explanation {
        self.explain_on(&self.target.machine())
    }

    /// The same with what work takes on that machine.
    pub fn explain_on(&self, machine: &Machine) -> Explanation {
        Explanation { suggestions: self.suggestions(machine), ..self.told() }
    }

    /// All of it but for the suggestions.
    pub(crate) fn told(&self) -> Explanation {
        let by_kind = self.shares(|kind, _| kind.name().to_string());
        let held: Bytes = by_kind.iter().map(|share| share.bytes).sum();
        let recomputed = self.recomputed_nodes();
        Explanation {
            peak: self.peak(),
            inputs: self.inputs,
            arena: self.arena,
            bound: self.bound,
            small_results: self.own_outputs(),
            is_bound: self.is_bound,
            device: (self.target.spill_space() != Space::Disk).then(|| self.target.name()),
            spilled: self.spilled(),
            host: self.host_bytes(),
            reads: self.reads(),
            writes: self.writes(),
            disk: self.on_disk(),
            fitted: self.fitted,
            segments: self.segments.clone(),
            peak_step: self.peak_step(),
            live_at_peak: self.live_at_peak(),
            gaps: self.peak().saturating_sub(held),
            by_kind,
            by_layer: self
                .shares(|_, source| source.layer().map_or(String::new(), |l| l.to_string())),
            suggestions: Vec::new(),
            recomputed_iterations: self.recomputed_iterations(),
            steps: self.steps.iter().map(|step| self.line(step, &recomputed)).collect(),
        }
    }

    fn bytes_of(&self, id: ValueId) -> Bytes {
        match self.place(id) {
            Some(Placed { at: At::Buffer(b), .. }) => self.buffers[b.0].bytes,
            _ => Bytes::ZERO,
        }
    }

    fn line(&self, step: &Step, recomputed: &HashSet<usize>) -> StepLine {
        let node = self.graph.nodes.get(step.node);
        let fused = match (node.map(|n| &n.attrs), &step.run) {
            (Some(Attrs::Tile(program)), Run::Tile(_) | Run::ToFile { .. }) => {
                Some(program.code.len())
            }
            _ => None,
        };
        StepLine {
            op: node.map_or("copy", |n| n.op.name),
            fused,
            recomputed: recomputed.contains(&step.node) && step.memory != StepMemory::Recipe,
            memory: step.memory,
            refused: step.refused.to_vec(),
            bytes: match step.memory {
                StepMemory::Spills => step.writes.iter().map(|id| self.bytes_of(*id)).sum(),
                _ => step.begins.iter().map(|b| self.buffers[b.0].bytes).sum(),
            },
            staging: step.staging,
            lane: step.lane(self.target.spill_space()),
            awaits: step.awaits.to_vec(),
            live: step.live,
            source: node.map(|n| n.source),
            layer: node.and_then(|n| n.source.layer()),
            loop_grad: match &step.run {
                Run::LoopGrad(plan) => Some(LoopGradLine {
                    iterations: plan.spec.of.known_iterations(),
                    states: plan.rows,
                    in_file: plan.file.is_some(),
                    state: plan.state,
                    recomputed_iterations: plan.recomputed_iterations,
                }),
                _ => None,
            },
        }
    }
}

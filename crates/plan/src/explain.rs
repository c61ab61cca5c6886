//! A plan explained: what lives at the peak, and what every step does to memory, as plain data. The table that a
//! plan prints is made of it, and so is whatever a tool wants to draw.

use std::collections::HashMap;

use serde::Serialize;
use tonnage_core::attrs::Attrs;
use tonnage_core::{Bytes, Kind, Source, ValueId};

use crate::budget::Fitted;
use crate::plan::{At, Lane, Placed, Plan, Refusal, Run, Space, Step, StepMemory};

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
    /// What is written to a file and read back.
    pub spilled: Bytes,
    /// How long that file is.
    pub disk: Bytes,
    /// What was done to fit a budget.
    pub fitted: Option<Fitted>,
    /// The step at which the arena is fullest.
    pub peak_step: usize,
    /// What lives then, largest first; what comes from one line and is of one kind is one entry.
    pub live_at_peak: Vec<Holder>,
    /// Rounds of loops that gradients will run again; `None` where only the data know.
    pub rounds_again: Option<u64>,
    /// Every step.
    pub steps: Vec<StepLine>,
}

/// Bytes of one kind that come from one line.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Holder {
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
    /// What it does to memory.
    pub memory: StepMemory,
    /// Why it does not work in place although its row would allow it: which input, and why.
    pub refused: Vec<(usize, Refusal)>,
    /// Bytes that begin here, workspace included; of a step that spills: bytes that go to the file.
    pub bytes: Bytes,
    /// What it keeps busy.
    pub lane: Lane,
    /// Bytes that live in the arena while it runs.
    pub live: Bytes,
    /// The user's line.
    pub source: Option<Source>,
    /// Of the gradient of a loop: what it keeps, and what that costs.
    pub back: Option<BackLine>,
}

/// What the gradient of a loop keeps, and what that costs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BackLine {
    /// How many rounds the loop has; `None` where only the data know.
    pub rounds: Option<u64>,
    /// States that are kept besides the first.
    pub states: usize,
    /// What one takes.
    pub state: Bytes,
    /// Rounds that are run again; `None` where only the data know.
    pub again: Option<u64>,
}

impl Plan {
    /// The step at which the arena is fullest.
    pub fn peak_step(&self) -> usize {
        // The first of several.
        let fullest = self.steps.iter().map(|s| s.live).max();
        self.steps.iter().position(|s| Some(s.live) == fullest).unwrap_or(0)
    }

    /// What lives at the peak, largest first: inputs, buffers of the arena at its fullest, small results.
    pub fn live_at_peak(&self) -> Vec<Holder> {
        let at = self.peak_step();
        let inputs = self.graph.inputs.iter().zip(&self.input_bytes).map(|(id, bytes)| {
            let info = self.graph.value(*id);
            let name = info.name.as_deref().unwrap_or("argument");
            (info.kind, name.to_string(), info.source, *bytes)
        });
        let memory = self.buffers.iter().filter(|b| b.space == Space::Memory);
        let alive = memory.filter(|b| b.first <= at && at <= b.last);
        let buffers = alive.map(|b| (b.kind, b.what.to_string(), b.source, b.bytes));
        let small = self.graph.outputs.iter().zip(&self.outputs).map(|(id, output)| {
            let source = self.graph.value(*id).source;
            (Kind::Output, "result".to_string(), source, output.own_bytes())
        });
        let mut holders: HashMap<(Kind, String, Source), Holder> = HashMap::new();
        let all = inputs.chain(buffers).chain(small).filter(|(.., bytes)| !bytes.is_zero());
        for (kind, what, source, bytes) in all {
            let none = Holder { kind, what: what.clone(), source, count: 0, bytes: Bytes::ZERO };
            let holder = holders.entry((kind, what, source)).or_insert(none);
            holder.count += 1;
            holder.bytes += bytes;
        }
        let mut holders: Vec<Holder> = holders.into_values().collect();
        let by_name = |h: &Holder| (h.source, h.kind, h.what.clone());
        holders.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| by_name(a).cmp(&by_name(b))));
        holders
    }

    /// All of it as data.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use tonnage_core::graph::Builder;
    /// # use tonnage_core::{Attrs, DType, Emit, Kind, TensorType};
    /// # use tonnage_plan::{InputSpec, Options, StepMemory, lower, plan};
    /// let mut builder = Builder::new();
    /// let ty = TensorType::new(DType::F32, [1000, 1000]);
    /// let x = builder.input(ty.clone(), Kind::Input, None);
    /// let y = builder.apply(&tonnage_ops::math::tanh::TANH, vec![x], Attrs::None)?;
    /// let graph = Arc::new(lower(&builder.finish(&[y])?)?);
    /// let inputs = [InputSpec::contiguous(&ty, "example", false)?];
    /// let options = Options { threads: 1, outputs_given: false };
    /// let explained = plan(&graph, &inputs, options)?.explain();
    /// assert_eq!(explained.steps[0].memory, StepMemory::Allocates);
    /// assert_eq!(explained.steps[0].refused[0].1.to_string(), "it was not given up");
    /// # Ok::<(), tonnage_core::Error>(())
    /// ```
    pub fn explain(&self) -> Explanation {
        Explanation {
            peak: self.peak(),
            inputs: self.inputs,
            arena: self.arena,
            bound: self.bound,
            small_results: self.own_outputs(),
            is_bound: self.is_bound,
            spilled: self.spilled(),
            disk: self.disk,
            fitted: self.fitted,
            peak_step: self.peak_step(),
            live_at_peak: self.live_at_peak(),
            rounds_again: self.rounds_again(),
            steps: self.steps.iter().map(|step| self.line(step)).collect(),
        }
    }

    fn bytes_of(&self, id: ValueId) -> Bytes {
        match self.place(id) {
            Some(Placed { at: At::Buffer(b), .. }) => self.buffers[b.0].bytes,
            _ => Bytes::ZERO,
        }
    }

    fn line(&self, step: &Step) -> StepLine {
        let node = self.graph.nodes.get(step.node);
        let fused = match (node.map(|n| &n.attrs), &step.run) {
            (Some(Attrs::Tile(program)), Run::Tile(_)) => Some(program.code.len()),
            _ => None,
        };
        StepLine {
            op: node.map_or("copy", |n| n.op.name),
            fused,
            memory: step.memory,
            refused: step.refused.to_vec(),
            bytes: match step.memory {
                StepMemory::Spills => step.writes.iter().map(|id| self.bytes_of(*id)).sum(),
                _ => step.begins.iter().map(|b| self.buffers[b.0].bytes).sum(),
            },
            lane: step.lane(),
            live: step.live,
            source: node.map(|n| n.source),
            back: match &step.run {
                Run::LoopGrad(plan) => Some(BackLine {
                    rounds: plan.spec.of.known_rounds(),
                    states: plan.rows,
                    state: plan.state,
                    again: plan.again,
                }),
                _ => None,
            },
        }
    }
}

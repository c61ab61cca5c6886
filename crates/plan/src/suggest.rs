//! What a user could change to take less, each with what it would save: found by planning the program as it would be
//! then, so that a suggestion is true to the byte.
//!
//! Three kinds: an argument that is moved into the call instead of lent to it; what a line makes recomputed in the
//! backward pass instead of saved; a value that is held only because one line reads it late. Candidates are the lines
//! that hold the most at the peak; each line is named once, with what saves most there.
//!
//! Decision: `docs/decisions/suggestions-are-plans.md`.

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::sync::Arc;

use serde::Serialize;
use tonnage_core::error::Result;
use tonnage_core::graph::{Graph, Node, ValueId};
use tonnage_core::row::{Lower, Mem, Remat};
use tonnage_core::{Bytes, Kind, Source};

use crate::arena::{end_of, pack_space};
use crate::budget::Machine;
use crate::place::{InputSpec, PlanOptions, plan, plan_in_order};
use crate::plan::{At, BufferId, BufferPlan, Placed, Plan, Space, Step};
use crate::sort;

/// Lines that are looked at.
const LINES: usize = 16;
/// Lines that are told.
const TOLD: usize = 10;

/// What could be done.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// The argument is moved into the call by its last holder, instead of lent: its bytes can be taken over.
    GiveUp {
        /// Its number among the inputs.
        input: usize,
    },
    /// What the line makes is recomputed in the backward pass, by `checkpoint`, instead of saved.
    Recompute {
        /// Other lines that have to be inside of the checkpoint: their gradients read what the line makes.
        with: Vec<Source>,
        /// Nodes that would be recomputed.
        nodes: usize,
        /// The time that the call would take, as a multiple of what it takes now, by the machine's figures.
        times_the_time: f64,
    },
    /// What the line makes is held only because that other line reads it: read earlier, or not, it could go.
    LetGo {
        /// The line that reads it last.
        reader: Source,
        /// Whether it is the gradient of that line that reads it.
        by_gradient: bool,
    },
}

/// A line that would pay to change.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suggestion {
    /// The line.
    pub source: Source,
    /// The op that makes what is held, or the argument.
    pub what: String,
    /// What to do.
    pub change: Change,
    /// What the peak would be less.
    pub saves: Bytes,
    /// What the peak would be.
    pub peak: Bytes,
}

impl Suggestion {
    /// What to do, in words.
    pub fn advice(&self) -> String {
        let what = &self.what;
        match &self.change {
            Change::GiveUp { input } => {
                format!("move {what} {input} into the call instead of lending it")
            }
            Change::Recompute { with, nodes, times_the_time } => {
                let nodes = if *nodes == 1 { "1 node".into() } else { format!("{nodes} nodes") };
                let with: String = with.iter().map(|line| format!(" and {line}")).collect();
                format!(
                    "recompute {what} in the backward pass, by `checkpoint` around this line{with}: {nodes}, {times_the_time:.2} times the time"
                )
            }
            Change::LetGo { reader, by_gradient } => {
                let of = if *by_gradient { "the gradient of " } else { "" };
                format!("{what} is held only because {of}{reader} reads it")
            }
        }
    }
}

impl fmt::Display for Suggestion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let saves = self.saves.to_string();
        write!(f, "{saves:>10}  {}: {}", self.source, self.advice())
    }
}

/// A line as people see it: a source knows the column too, and a line can have several ops.
fn line_of(source: Source) -> (&'static str, u32) {
    (source.file(), source.line())
}

/// Whether a node is of the backward pass.
fn is_backward(graph: &Graph, node: &Node) -> bool {
    node.outputs.first().is_some_and(|id| graph.value(*id).kind == Kind::Gradient)
}

impl Plan {
    /// The lines that would pay most to change, the one that saves most first.
    pub(crate) fn suggestions(&self, machine: &Machine) -> Vec<Suggestion> {
        let mut best: HashMap<(&'static str, u32), Suggestion> = HashMap::new();
        // Of equal savings the first found stays: the one that costs the user least.
        let mut offer = |found: Option<Suggestion>| {
            let Some(found) = found.filter(|found| !found.saves.is_zero()) else { return };
            let known = best.entry(line_of(found.source)).or_insert_with(|| found.clone());
            if found.saves > known.saves {
                *known = found;
            }
        };
        for (input, id) in self.graph.inputs.iter().enumerate() {
            if self.graph.value(*id).kind == Kind::Input {
                offer(self.given_up(input));
            }
        }
        let held = self.live_at_peak();
        let mut seen = HashSet::new();
        let lines = held.iter().filter(|h| seen.insert(line_of(h.source))).take(LINES);
        let seconds = machine.graph(&self.program);
        for line in lines.map(|holder| holder.source).collect::<Vec<_>>() {
            offer(self.recomputed(line, machine, seconds));
        }
        let mut large: Vec<usize> = (0..self.buffers.len()).collect();
        let at = self.peak_step();
        large.retain(|b| self.buffers[*b].first <= at && at <= self.buffers[*b].last);
        large
            .retain(|b| self.buffers[*b].space == Space::Memory && !self.buffers[*b].outlives_call);
        sort::by_key(&mut large, |b| std::cmp::Reverse(self.buffers[*b].bytes));
        for buffer in large.into_iter().take(LINES) {
            offer(self.let_go(BufferId(buffer)));
        }
        let mut all: Vec<Suggestion> = best.into_values().collect();
        sort::by(&mut all, |a, b| b.saves.cmp(&a.saves).then(a.source.cmp(&b.source)));
        all.truncate(TOLD);
        all
    }

    fn suggestion(
        &self,
        source: Source,
        what: &str,
        change: Change,
        peak: Bytes,
    ) -> Option<Suggestion> {
        let saves = self.peak().saturating_sub(peak);
        Some(Suggestion { source, what: what.into(), change, saves, peak })
    }

    /// A program planned as this one was: in the best order, or as a budget's levers put it.
    fn planned(&self, program: &Arc<Graph>, specs: &[InputSpec]) -> Result<Plan> {
        let options = PlanOptions::new(self.target.clone());
        match self.fitted {
            None => plan(program, specs, options),
            Some(_) => plan_in_order(program, specs, &[], options),
        }
    }

    fn given_up(&self, input: usize) -> Option<Suggestion> {
        let mut specs = self.specs.clone();
        match specs.get_mut(input)? {
            InputSpec::Bytes { donated, bytes, .. } if !*donated && !bytes.is_zero() => {
                *donated = true;
            }
            _ => return None,
        }
        let peak = self.planned(&self.program, &specs).ok()?.peak();
        let info = self.graph.value(self.graph.inputs[input]);
        let what = info.name.as_deref().unwrap_or("argument");
        self.suggestion(info.source, what, Change::GiveUp { input }, peak)
    }

    fn recomputed(&self, line: Source, machine: &Machine, seconds: f64) -> Option<Suggestion> {
        let (graph, recomputed, with) = recompute(&self.program, line)?;
        let more: f64 = recomputed.iter().map(|node| machine.node(&graph, node)).sum();
        let peak = self.planned(&Arc::new(graph), &self.specs).ok()?.peak();
        // Which order is found depends on where one starts to look: the one that this plan runs in is another start.
        let options = PlanOptions::new(self.target.clone());
        let in_order = recompute_in(&self.graph, line);
        let in_order = in_order.and_then(|g| plan_in_order(&g, &self.specs, &[], options).ok());
        let peak = in_order.map_or(peak, |plan| plan.peak().min(peak));
        let times_the_time = if seconds > 0.0 { 1.0 + more / seconds } else { 1.0 };
        let nodes = recomputed.len();
        let what = recomputed.last()?.op.name;
        self.suggestion(line, what, Change::Recompute { with, nodes, times_the_time }, peak)
    }

    /// What would be if the line that reads a buffer last did not read it.
    fn let_go(&self, buffer: BufferId) -> Option<Suggestion> {
        let whole = &self.buffers[buffer.0];
        let lies = |id: &ValueId| matches!(self.place(*id), Some(Placed { at: At::Buffer(b), .. }) if *b == buffer);
        let line = |step: &Step| self.graph.nodes.get(step.node).map(|n| n.source);
        let is_late = |step: &Step| {
            self.graph.nodes.get(step.node).is_some_and(|n| is_backward(&self.graph, n))
        };
        let uses = (whole.first..=whole.last).filter(|at| {
            let step = &self.steps[*at];
            step.reads.iter().chain(&step.writes).any(lies)
        });
        let uses: Vec<usize> = uses.collect();
        // The last step that uses it, and those before it that are the same line's, unless they make it.
        let last = &self.steps[*uses.last()?];
        let (reader, by_gradient) = (line(last)?, is_late(last));
        let same = |at: &&usize| {
            let step = &self.steps[**at];
            line(step).map(line_of) == Some(line_of(reader)) && is_late(step) == by_gradient
        };
        let late = uses.iter().rev().take_while(same).count();
        let before = *uses.get(uses.len().checked_sub(late + 1)?)?;
        let from = uses[uses.len() - late];
        // Between two uses at the peak: a value that is used there is needed there.
        let idle = before < self.peak_step() && self.peak_step() < from;
        if line_of(reader) == line_of(whole.source) || !idle {
            return None;
        }
        let mut buffers = self.buffers.clone();
        // What takes over its bytes then has bytes of its own.
        if self.steps[from..].iter().any(|step| step.writes.iter().any(lies)) {
            buffers.push(BufferPlan { first: from, ..whole.clone() });
        }
        buffers[buffer.0].last = before;
        pack_space(&mut buffers, Space::Memory).ok()?;
        let arena = self.target.block(end_of(&buffers, Space::Memory));
        let peak = self.inputs + arena + self.own_outputs();
        self.suggestion(whole.source, whole.what, Change::LetGo { reader, by_gradient }, peak)
    }

    /// Nodes that compute what another did before them: common subexpressions were merged, so that is on purpose.
    pub(crate) fn recomputed_nodes(&self) -> HashSet<usize> {
        let mut seen = HashSet::new();
        let digests = crate::rewrite::digests(&self.graph);
        let own = |node: &Node| {
            let moves = matches!(node.op.lower, Lower::Transfer(_));
            !moves && !node.outputs.is_empty() && !matches!(node.op.mem, Mem::View(_) | Mem::Recipe)
        };
        let nodes = self.graph.nodes.iter().zip(digests).enumerate();
        nodes.filter(|(_, (n, d))| own(n) && !seen.insert(*d)).map(|(at, _)| at).collect()
    }
}

/// The same of a graph in another order, alone.
fn recompute_in(graph: &Graph, line: Source) -> Option<Arc<Graph>> {
    recompute(graph, line).map(|(graph, ..)| Arc::new(graph))
}

/// The program with what a line makes in the forward pass recomputed for the backward pass, just before its first
/// reader there; and the nodes that are recomputed, and the other lines whose gradients read them. `None` where
/// nothing of it is read in the backward pass, or it may not be recomputed.
fn recompute(graph: &Graph, line: Source) -> Option<(Graph, Vec<Node>, Vec<Source>)> {
    let mut makers: HashMap<ValueId, usize> = HashMap::new();
    for (at, node) in graph.nodes.iter().enumerate() {
        makers.extend(node.outputs.iter().map(|id| (*id, at)));
    }
    let is_view = |node: &Node| matches!(node.op.mem, Mem::View(_));
    let of_line = |node: &Node| {
        line_of(node.source) == line_of(line)
            && !is_backward(graph, node)
            && node.op.remat != Remat::Never
            && !matches!(node.op.mem, Mem::Update(_))
    };
    let mut made = graph.clone();
    made.nodes.clear();
    let mut second: HashMap<ValueId, ValueId> = HashMap::new();
    let mut copies: Vec<Node> = Vec::new();
    let mut with: Vec<Source> = Vec::new();
    for node in &graph.nodes {
        let mut node = node.clone();
        let mut is_new = false;
        if is_backward(graph, &node) {
            for id in &mut node.inputs {
                let mut emit = RecomputeCopier {
                    graph,
                    makers: &makers,
                    made: &mut made,
                    copies: &mut copies,
                };
                let new = emit.value(*id, &mut second, &of_line, &is_view);
                is_new |= new != *id;
                *id = new;
            }
        }
        if is_new && line_of(node.source) != line_of(line) {
            with.push(node.source);
        }
        made.nodes.push(node);
    }
    copies.retain(|node| !is_view(node));
    with.sort();
    with.dedup_by_key(|source| line_of(*source));
    (!copies.is_empty()).then_some((made, copies, with))
}

struct RecomputeCopier<'a> {
    graph: &'a Graph,
    makers: &'a HashMap<ValueId, usize>,
    made: &'a mut Graph,
    copies: &'a mut Vec<Node>,
}

impl RecomputeCopier<'_> {
    /// The replacement of a value in the backward pass: itself, or what is recomputed.
    fn value(
        &mut self,
        id: ValueId,
        second: &mut HashMap<ValueId, ValueId>,
        of_line: &dyn Fn(&Node) -> bool,
        is_view: &dyn Fn(&Node) -> bool,
    ) -> ValueId {
        if let Some(known) = second.get(&id) {
            return *known;
        }
        let Some(maker) = self.makers.get(&id).map(|at| &self.graph.nodes[*at]) else { return id };
        let inputs = match (of_line(maker), is_view(maker)) {
            (false, false) => return id,
            _ => maker.inputs.clone(),
        };
        let inputs: Vec<ValueId> =
            inputs.into_iter().map(|id| self.value(id, second, of_line, is_view)).collect();
        // A view of a value that is not recomputed stays as it is.
        if !of_line(maker) && inputs == maker.inputs {
            return id;
        }
        let mut copy = Node { inputs, ..maker.clone() };
        for output in &mut copy.outputs {
            let info = self.graph.value(*output).clone();
            let new = self.made.add_value(info);
            second.insert(*output, new);
            *output = new;
        }
        self.copies.push(copy.clone());
        self.made.nodes.push(copy);
        second.get(&id).copied().unwrap_or(id)
    }
}

//! Memory over time as plain data: the one form that every view is made of.
//!
//! The invariant: bars that live together do not overlap in addresses, and their sum never exceeds the peak.

use std::collections::HashMap;

use serde::Serialize;
use tonnage_core::{Kind, Source};
use tonnage_plan::{Plan, Space};
use tonnage_runtime::timeline::Timeline;

use crate::stack::Stack;

/// Spans of calls that are told step by step; of a longer recording the calls alone.
const STEPS: usize = 200_000;

/// What the axis of time counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Along {
    /// Steps of a plan.
    Steps,
    /// Nanoseconds of a recording.
    Nanoseconds,
}

/// Who holds buffers.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct BufferOwner {
    /// As what.
    pub kind: Kind,
    /// The op, or the name that the user gave.
    pub what: String,
    /// The user's line.
    pub line: Source,
    /// The layer of the model; empty outside of layers.
    pub layer: String,
}

/// One buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Bar {
    /// When it begins.
    pub from: u64,
    /// When it has ended.
    pub to: u64,
    /// Where it starts.
    pub address: u64,
    /// How much it takes.
    pub bytes: u64,
    /// A number in [`Picture::owners`].
    pub owner: u32,
}

/// That many bytes from a moment on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Point {
    /// When.
    pub at: u64,
    /// How many.
    pub bytes: u64,
}

/// A span of time with a name: a call, or a step of one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tick {
    /// When it begins.
    pub from: u64,
    /// When it has ended.
    pub to: u64,
    /// The op, or that it is a call.
    pub name: String,
    /// The user's line.
    pub line: Option<Source>,
    /// Whether it is part of the call before it.
    pub inside: bool,
}

/// Memory over time.
///
/// ```
/// # use std::sync::Arc;
/// # use tonnage_core::graph::Builder;
/// # use tonnage_core::{Attrs, DType, Emit, Kind, TensorType};
/// # use tonnage_plan::{DescribedTarget, InputSpec, PlanOptions, lower, plan};
/// # use tonnage_report::Picture;
/// # let mut builder = Builder::new();
/// # let ty = TensorType::new(DType::F32, [1000, 1000]);
/// # let x = builder.input(ty.clone(), Kind::Input, None);
/// # let y = builder.apply(&tonnage_ops::math::tanh::TANH, vec![x], Attrs::None)?;
/// # let graph = Arc::new(lower(&builder.finish(&[y])?, &DescribedTarget::default())?);
/// # let inputs = [InputSpec::contiguous(&ty, "example", false)?];
/// let plan = plan(&graph, &inputs, PlanOptions::new(Arc::new(DescribedTarget::default())))?;
/// let picture = Picture::of_plan("tanh", &plan);
/// assert_eq!(picture.peak.bytes, plan.peak().get());
/// print!("{}", picture.chart(80, 10, None, false));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Picture {
    /// What it is of.
    pub title: String,
    /// What time counts.
    pub along: Along,
    /// How long it is.
    pub length: u64,
    /// The most, and when first.
    pub peak: Point,
    /// Who holds something.
    pub owners: Vec<BufferOwner>,
    /// Every buffer, in the order in which they begin.
    pub bars: Vec<Bar>,
    /// What is in use, from each of these moments on.
    pub curve: Vec<Point>,
    /// Calls and steps.
    pub ticks: Vec<Tick>,
    /// What a recording had no room for.
    pub lost: u64,
}

/// Owners by number, each once.
#[derive(Default)]
struct Owners {
    all: Vec<BufferOwner>,
    numbers: HashMap<BufferOwner, u32>,
}

impl Owners {
    fn number(&mut self, kind: Kind, what: &str, line: Source) -> u32 {
        let layer = line.layer().map_or(String::new(), |layer| layer.to_string());
        let owner = BufferOwner { kind, what: what.to_string(), line, layer };
        let next = self.all.len() as u32;
        let number = *self.numbers.entry(owner.clone()).or_insert(next);
        if number == next {
            self.all.push(owner);
        }
        number
    }
}

impl Picture {
    /// What a plan will hold, step by step: at the bottom its inputs, above them the arena, above it small results.
    pub fn of_plan(title: &str, plan: &Plan) -> Picture {
        let (mut owners, mut bars) = (Owners::default(), Vec::new());
        let length = plan.steps.len().max(1) as u64;
        let mut address = 0;
        for (id, bytes) in plan.graph.inputs.iter().zip(&plan.input_bytes) {
            let info = plan.graph.value(*id);
            let what = info.name.as_deref().unwrap_or("argument");
            let owner = owners.number(info.kind, what, info.source);
            bars.push(Bar { from: 0, to: length, address, bytes: bytes.get(), owner });
            address += bytes.get();
        }
        for buffer in plan.buffers.iter().filter(|b| b.space == Space::Memory) {
            bars.push(Bar {
                from: buffer.first as u64,
                to: buffer.last as u64 + 1,
                address: address + buffer.offset.get(),
                bytes: buffer.bytes.get(),
                owner: owners.number(buffer.kind, buffer.what, buffer.source),
            });
        }
        let mut address = address + plan.arena.get();
        for (id, output) in plan.graph.outputs.iter().zip(&plan.outputs) {
            let bytes = output.own_bytes().get();
            let owner = owners.number(Kind::Output, "result", plan.graph.value(*id).source);
            bars.push(Bar { from: 0, to: length, address, bytes, owner });
            address += bytes;
        }
        bars.retain(|bar| bar.bytes > 0);
        bars.sort_by_key(|bar| (bar.from, bar.address));
        let always = plan.inputs + plan.own_outputs();
        let point = |(at, step): (usize, &tonnage_plan::Step)| Point {
            at: at as u64,
            bytes: (always + step.live).get(),
        };
        let mut curve: Vec<Point> = plan.steps.iter().enumerate().map(point).collect();
        if curve.is_empty() {
            curve.push(Point { at: 0, bytes: always.get() });
        }
        let ticks = plan.steps.iter().enumerate().map(|(at, step)| {
            let node = plan.graph.nodes.get(step.node);
            let name = node.map_or("copy", |n| n.op.name).to_string();
            let (from, line) = (at as u64, node.map(|n| n.source));
            Tick { from, to: from + 1, name, line, inside: false }
        });
        Picture {
            title: title.to_string(),
            along: Along::Steps,
            length,
            peak: Point { at: plan.peak_step() as u64, bytes: plan.peak().get() },
            ticks: ticks.collect(),
            owners: owners.all,
            bars,
            curve,
            lost: 0,
        }
    }

    /// What a recording saw. The ledger knows no addresses of blocks, so they are stacked: each where there is room.
    pub fn of_timeline(title: &str, timeline: &Timeline) -> Picture {
        let mut owners = Owners::default();
        let numbers: Vec<u32> = timeline
            .owners
            .iter()
            .map(|o| owners.number(o.kind, o.name.as_deref().unwrap_or(o.what), o.source))
            .collect();
        let length = timeline.length.max(1);
        let mut stack = Stack::default();
        let bar = |span: &tonnage_runtime::timeline::Span| {
            let (to, bytes) = (span.to.unwrap_or(length), span.bytes.get());
            let address = stack.put(span.from, to, bytes);
            let owner = numbers.get(span.owner as usize).copied().unwrap_or(0);
            Bar { from: span.from, to, address, bytes, owner }
        };
        let bars = timeline.spans.iter().map(bar).collect();
        let peak = timeline.peak();
        Picture {
            title: title.to_string(),
            along: Along::Nanoseconds,
            length,
            peak: Point { at: peak.at, bytes: peak.in_use.get() },
            ticks: ticks(timeline),
            owners: owners.all,
            bars,
            curve: timeline
                .curve
                .iter()
                .map(|m| Point { at: m.at, bytes: m.in_use.get() })
                .collect(),
            lost: timeline.lost,
        }
    }
}

/// The calls of a recording, and their steps where those are not too many.
fn ticks(timeline: &Timeline) -> Vec<Tick> {
    let steps: usize = timeline.calls.iter().map(|call| call.steps.len()).sum();
    let mut ticks = Vec::new();
    for call in &timeline.calls {
        let length = call.steps.last().copied().unwrap_or(0);
        let name = match call.used {
            Some(_) => format!("call of plan {}", call.plan),
            None => format!("call of plan {}, which failed", call.plan),
        };
        let (from, to) = (call.from, call.from + length);
        ticks.push(Tick { from, to, name, line: None, inside: false });
        let Some(plan) = timeline.plans.get(call.plan as usize).filter(|_| steps <= STEPS) else {
            continue;
        };
        let mut from = call.from;
        for (step, end) in plan.steps.iter().zip(&call.steps) {
            let node = plan.graph.nodes.get(step.node);
            let name = node.map_or("copy", |n| n.op.name).to_string();
            let (to, line) = (call.from + end, node.map(|n| n.source));
            ticks.push(Tick { from, to, name, line, inside: true });
            from = to;
        }
    }
    ticks
}

//! What is known of a program before anything is dropped: which values are idle for long, and what it takes to
//! recompute each or to write it to a file and back.
//!
//! An *idle interval* is the longest time between two uses of a value. A dropped value is not held during its idle
//! interval: what reads it after the idle interval reads a second one. `draw` draws the program with values dropped.
//!
//! A value can be read back only before the first update of a variable: reading may fail, and a call that fails leaves
//! variables as they were.
//!
//! Decisions: `docs/decisions/idle-intervals.md`, `docs/decisions/reads-before-updates.md`.

use smallvec::SmallVec;
use tonnage_core::graph::{Graph, ValueId};
use tonnage_core::row::{Mem, Remat};

use super::cost::Machine;
use super::draw::{Drawing, Sketch};
use crate::order::pressure::Pressure;
use crate::sort;

/// Values of fewer bytes are not spilled: the calls would take longer than the bytes are worth.
const SPILLED: u64 = 64 << 10;

/// What becomes of a value during its idle interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RematDecision {
    /// It is held.
    Keep,
    /// It is recomputed.
    Recompute,
    /// It waits in a file.
    Spill,
}

/// A value that may be dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct DropCandidate {
    /// Its root.
    pub root: u32,
    /// The node that makes it.
    pub made: usize,
    /// The last use before the idle interval.
    pub from: usize,
    /// The first use after it.
    pub to: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Seconds to recompute it, with all that would have to be recomputed for it alone; infinite
    /// where it cannot be.
    pub seconds: f64,
    /// Seconds to write it to a file and to read it back; infinite where it cannot be.
    pub disk: f64,
}

impl DropCandidate {
    /// Seconds a byte to recompute it.
    pub fn price(&self) -> f64 {
        self.seconds / self.bytes.max(1) as f64
    }

    pub fn can_recompute(&self) -> bool {
        self.seconds.is_finite()
    }

    pub fn can_spill(&self) -> bool {
        self.disk.is_finite()
    }
}

/// What is known of a program before anything is dropped.
#[derive(Debug)]
pub struct ProgramProfile {
    pub pressure: Pressure,
    pub machine: Machine,
    /// The node that makes each root; `usize::MAX` for inputs.
    pub maker: Vec<usize>,
    pub seconds: Vec<f64>,
    /// For each root the nodes that use it, in order.
    pub uses: Vec<Vec<u32>>,
    /// The first node that overwrites each root.
    pub updated: Vec<usize>,
    /// Which nodes may be recomputed.
    pub recomputable: Vec<bool>,
    /// Which roots have a size that is known.
    sized: Vec<bool>,
    /// The first node that updates a variable, or comes after one that does: nothing may fail from there on.
    barrier: usize,
    /// Values that may be dropped, in the order in which they are made.
    pub candidates: Vec<DropCandidate>,
    /// For each candidate, the bytes of candidates that are still to be read, before their idle interval, just after it is
    /// made: what a span that starts there would have to start from.
    pub crossing: Vec<u64>,
}

impl ProgramProfile {
    /// Reads a graph in the order in which it will run.
    pub fn of(graph: &Graph, pressure: Pressure, machine: &Machine) -> ProgramProfile {
        let values = pressure.size.len();
        let mut made = ProgramProfile {
            maker: vec![usize::MAX; values],
            seconds: graph.nodes.iter().map(|n| machine.node(graph, n)).collect(),
            uses: vec![Vec::new(); values],
            updated: vec![usize::MAX; values],
            recomputable: graph.nodes.iter().map(is_recomputable).collect(),
            sized: (0..values).map(|i| graph.ty(ValueId::new(i)).shape.sizes().is_some()).collect(),
            barrier: waits(graph).iter().position(|w| *w).unwrap_or(usize::MAX),
            machine: *machine,
            candidates: Vec::new(),
            crossing: Vec::new(),
            pressure,
        };
        for (at, (node, needs)) in graph.nodes.iter().zip(&made.pressure.nodes).enumerate() {
            for root in needs.makes.iter().chain(&needs.reads) {
                let uses = &mut made.uses[*root as usize];
                if uses.last() != Some(&(at as u32)) {
                    uses.push(at as u32);
                }
            }
            for root in &needs.makes {
                made.maker[*root as usize] = at;
            }
            for (input, _) in node.updates() {
                let root = made.pressure.root[node.inputs[input].index()] as usize;
                made.updated[root] = made.updated[root].min(at);
            }
        }
        made.candidates = made.find();
        made.crossing = made.crossing();
        made
    }

    fn crossing(&self) -> Vec<u64> {
        let mut change = vec![0i64; self.pressure.nodes.len() + 2];
        for c in &self.candidates {
            change[c.made + 1] += c.bytes as i64;
            change[c.from + 1] -= c.bytes as i64;
        }
        let mut now = 0;
        let at: Vec<i64> = change
            .into_iter()
            .map(|c| {
                now += c;
                now
            })
            .collect();
        self.candidates.iter().map(|c| at[c.made + 1].max(0) as u64).collect()
    }

    /// Seconds that the program takes with nothing dropped.
    pub fn seconds(&self) -> f64 {
        self.seconds.iter().sum()
    }

    fn find(&self) -> Vec<DropCandidate> {
        let mut found = Vec::new();
        for root in 0..self.uses.len() {
            let made = self.maker[root];
            let able = made != usize::MAX
                && self.pressure.in_arena[root]
                && !self.pressure.stays[root]
                && self.updated[root] == usize::MAX;
            let idle = self.uses[root]
                .windows(2)
                .map(|w| (w[0] as usize, w[1] as usize))
                .max_by_key(|(a, b)| (b - a, usize::MAX - a))
                .filter(|(a, b)| b - a > 1);
            let (true, Some((from, to))) = (able, idle) else { continue };
            let bytes = self.pressure.size[root];
            let seconds = self.price(root, to).unwrap_or(f64::INFINITY);
            let spills = self.machine.has_disk()
                && bytes >= SPILLED
                && self.sized[root]
                && to < self.barrier;
            let disk = match spills {
                true => self.machine.transfer(bytes, true) + self.machine.transfer(bytes, false),
                false => f64::INFINITY,
            };
            let found_one =
                DropCandidate { root: root as u32, made, from, to, bytes, seconds, disk };
            if found_one.can_recompute() || found_one.can_spill() {
                found.push(found_one);
            }
        }
        sort::by_key(&mut found, |c| (c.made, c.root));
        found
    }

    /// What it takes to recompute a root at a node, with nothing else dropped; `None` where it cannot be.
    fn price(&self, root: usize, at: usize) -> Option<f64> {
        let (mut total, mut seen) = (0.0, SmallVec::<[usize; 16]>::new());
        let mut open: SmallVec<[usize; 16]> = SmallVec::from_iter([self.maker[root]]);
        while let Some(node) = open.pop() {
            if seen.contains(&node) {
                continue;
            }
            seen.push(node);
            // A long chain is no bargain, and looking for it takes long too.
            if !self.recomputable[node] || seen.len() > 64 {
                return None;
            }
            total += self.seconds[node];
            for read in self.pressure.nodes[node].reads.iter().map(|r| *r as usize) {
                if self.updated[read] < at {
                    return None;
                }
                if !self.is_there(read, at) {
                    open.push(self.maker[read]);
                }
            }
        }
        Some(total)
    }

    /// Whether a root lives at a node where nothing is dropped.
    pub fn is_there(&self, root: usize, at: usize) -> bool {
        self.maker[root] == usize::MAX || self.pressure.stays[root] || self.used_from(root, at)
    }

    pub fn used_from(&self, root: usize, at: usize) -> bool {
        self.uses[root].last().is_some_and(|last| *last as usize >= at)
    }

    /// The program with the candidates dropped as `decisions` says, transfers awaited at once; `None` where that
    /// cannot be.
    pub fn sketch(&self, decisions: &[RematDecision]) -> Option<Sketch> {
        Some(self.draw(decisions)?.finish())
    }

    pub fn draw(&self, decisions: &[RematDecision]) -> Option<Drawing<'_>> {
        let mut drawing = Drawing::new(self, decisions);
        for at in 0..self.pressure.nodes.len() {
            drawing.node(at)?;
        }
        Some(drawing)
    }
}

/// Which nodes update a variable, or depend on one that does; effects keep their order.
pub fn waits(graph: &Graph) -> Vec<bool> {
    let mut after = vec![false; graph.value_count()];
    let mut effects_wait = false;
    let mut made: Vec<bool> = Vec::with_capacity(graph.nodes.len());
    let deciders = graph.size_deciders();
    for (at, node) in graph.nodes.iter().enumerate() {
        let wait = !node.updates().is_empty()
            || deciders.get(at).into_iter().flatten().any(|by| made[*by])
            || node.inputs.iter().any(|id| after[id.index()])
            || (effects_wait && node.has_effect());
        effects_wait |= wait && node.has_effect() && node.updates().is_empty();
        for id in node.outputs.iter().filter(|_| wait) {
            after[id.index()] = true;
        }
        made.push(wait);
    }
    made
}

/// The graph with all updates of variables, and what depends on them, at its end: values can be read back up to
/// there. `None` where they stand there anyway.
pub fn updates_last(graph: &Graph) -> Option<Graph> {
    let waits = waits(graph);
    if waits.is_sorted() {
        return None;
    }
    let mut made = graph.clone();
    let of = |which: bool| {
        let all = graph.nodes.iter().zip(&waits);
        all.filter(move |(_, w)| **w == which).map(|(node, _)| node.clone())
    };
    made.nodes = of(false).chain(of(true)).collect();
    Some(made)
}

fn is_recomputable(node: &tonnage_core::graph::Node) -> bool {
    node.op.remat != Remat::Never
        && !node.has_effect()
        && !matches!(node.op.mem, Mem::Update(_) | Mem::File)
        && node.regions.is_empty()
}

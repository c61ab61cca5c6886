//! A program with some values dropped and computed again, sketched: which nodes run, in which order, and what they
//! read and make. It is what the ladder tries thousands of; only the one that is chosen becomes a graph.
//!
//! A *gap* is the longest time between two uses of a value. A dropped value is not held during its gap: what reads
//! it after the gap reads a second one, made just before by running its node again, with whatever of that node's
//! inputs is not there any more. A second value lives on to its own last use, so that within a stretch of
//! dropped values each node runs again once.

use smallvec::SmallVec;
use tonnage_core::graph::Graph;
use tonnage_core::row::{Mem, Remat};

use super::cost::Machine;
use crate::order::pressure::{Needs, Peak, Pressure};

/// A value that may be dropped.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Candidate {
    /// Its root.
    pub root: u32,
    /// The node that makes it.
    pub made: usize,
    /// The last use before the gap.
    pub from: usize,
    /// The first use after it.
    pub to: usize,
    /// Its bytes.
    pub bytes: u64,
    /// Seconds to compute it again, with all that would have to be computed again for it alone.
    pub seconds: f64,
}

/// What is known of a program before anything is dropped.
#[derive(Debug)]
pub struct Program {
    pressure: Pressure,
    /// The node that makes each root; `usize::MAX` for inputs.
    maker: Vec<usize>,
    seconds: Vec<f64>,
    /// For each root the nodes that use it, in order.
    uses: Vec<Vec<u32>>,
    /// The first node that overwrites each root.
    updated: Vec<usize>,
    again: Vec<bool>,
    /// Values that may be dropped, in the order in which they are made.
    pub candidates: Vec<Candidate>,
    /// For each candidate, the bytes of candidates that are still to be read, before their gap, just after it is
    /// made: what a stretch that starts there would have to start from.
    pub crossing: Vec<u64>,
}

/// A node of a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Run {
    /// The node of the program.
    pub node: u32,
    /// Whether it runs again.
    pub again: bool,
}

/// A program with values dropped.
#[derive(Debug, Clone)]
pub struct Sketch {
    /// Nodes in the order in which they run.
    pub runs: Vec<Run>,
    /// The most that lives in the arena.
    pub peak: Peak,
    /// Seconds that it takes longer.
    pub seconds: f64,
}

impl Program {
    /// Reads a graph in the order in which it will run.
    pub fn of(graph: &Graph, pressure: Pressure, machine: &Machine) -> Program {
        let values = pressure.size.len();
        let mut made = Program {
            maker: vec![usize::MAX; values],
            seconds: graph.nodes.iter().map(|n| machine.node(graph, n)).collect(),
            uses: vec![Vec::new(); values],
            updated: vec![usize::MAX; values],
            again: graph.nodes.iter().map(may_run_again).collect(),
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

    fn find(&self) -> Vec<Candidate> {
        let mut found = Vec::new();
        for root in 0..self.uses.len() {
            let made = self.maker[root];
            let able = made != usize::MAX
                && self.again[made]
                && self.pressure.in_arena[root]
                && !self.pressure.stays[root]
                && self.updated[root] == usize::MAX;
            let gap = self.uses[root]
                .windows(2)
                .map(|w| (w[0] as usize, w[1] as usize))
                .max_by_key(|(a, b)| (b - a, usize::MAX - a))
                .filter(|(a, b)| b - a > 1);
            let (true, Some((from, to))) = (able, gap) else { continue };
            let Some(seconds) = self.price(root, to) else { continue };
            let bytes = self.pressure.size[root];
            found.push(Candidate { root: root as u32, made, from, to, bytes, seconds });
        }
        found.sort_by_key(|c| (c.made, c.root));
        found
    }

    /// What it takes to make a root again at a node, with nothing else dropped; `None` where it cannot be.
    fn price(&self, root: usize, at: usize) -> Option<f64> {
        let (mut total, mut seen) = (0.0, SmallVec::<[usize; 16]>::new());
        let mut open: SmallVec<[usize; 16]> = SmallVec::from_iter([self.maker[root]]);
        while let Some(node) = open.pop() {
            if seen.contains(&node) {
                continue;
            }
            seen.push(node);
            // A long way back is no bargain, and looking for it takes long too.
            if !self.again[node] || seen.len() > 64 {
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
    fn is_there(&self, root: usize, at: usize) -> bool {
        self.maker[root] == usize::MAX || self.pressure.stays[root] || self.used_from(root, at)
    }

    fn used_from(&self, root: usize, at: usize) -> bool {
        self.uses[root].last().is_some_and(|last| *last as usize >= at)
    }

    /// The program with the candidates that `dropped` marks computed again; `None` where that cannot be.
    pub fn sketch(&self, dropped: &[bool]) -> Option<Sketch> {
        let mut drawing = Drawing::new(self, dropped);
        for at in 0..self.pressure.nodes.len() {
            drawing.node(at)?;
        }
        Some(drawing.finish())
    }
}

fn may_run_again(node: &tonnage_core::graph::Node) -> bool {
    node.op.remat != Remat::Never
        && !node.has_effect()
        && !matches!(node.op.mem, Mem::Update(_))
        && node.regions.is_empty()
}

/// A sketch in the making.
struct Drawing<'p> {
    program: &'p Program,
    /// For each root, the gap in which it is not held.
    gap: Vec<(u32, u32)>,
    /// For each root, the one that stands for it now.
    now: Vec<u32>,
    /// For each root that has a second one, the node for which that was made.
    made: Vec<usize>,
    size: Vec<u64>,
    runs: Vec<Run>,
    nodes: Vec<Needs>,
    seconds: f64,
}

const NONE: (u32, u32) = (u32::MAX, u32::MAX);
/// How far back one value may reach through others that are gone; beyond it a stack would be at risk.
const DEEPEST: usize = 4_000;

impl<'p> Drawing<'p> {
    fn new(program: &'p Program, dropped: &[bool]) -> Drawing<'p> {
        let roots = program.uses.len();
        let mut gap = vec![NONE; roots];
        for (candidate, _) in program.candidates.iter().zip(dropped).filter(|(_, d)| **d) {
            gap[candidate.root as usize] = (candidate.from as u32, candidate.to as u32);
        }
        let count = program.pressure.nodes.len();
        Drawing {
            program,
            gap,
            now: (0..roots as u32).collect(),
            made: vec![usize::MAX; roots],
            size: program.pressure.size.clone(),
            runs: Vec::with_capacity(count * 2),
            nodes: Vec::with_capacity(count * 2),
            seconds: 0.0,
        }
    }

    fn node(&mut self, at: usize) -> Option<()> {
        let program = self.program;
        let needs = &program.pressure.nodes[at];
        for root in &needs.reads {
            self.provide(*root as usize, at, 0)?;
        }
        self.run(at, self.stand_ins(&needs.reads), false);
        Some(())
    }

    /// Makes sure that a root, or a second one in its stead, lives at a node.
    fn provide(&mut self, root: usize, at: usize, depth: usize) -> Option<()> {
        let program = self.program;
        let held = match (self.now[root] == root as u32, self.gap[root]) {
            (true, NONE) => program.is_there(root, at),
            (true, (from, _)) => at <= from as usize,
            // A second one stays as long as the program itself still uses the first; beyond that it is only
            // there for what is made again at the same place.
            (false, _) => self.made[root] == at || program.used_from(root, at),
        };
        if held {
            return Some(());
        }
        let node = program.maker[root];
        if node == usize::MAX || !program.again[node] || depth > DEEPEST {
            return None;
        }
        for read in program.pressure.nodes[node].reads.iter().map(|r| *r as usize) {
            // What is overwritten before is not what it was.
            if program.updated[read] < at {
                return None;
            }
            self.provide(read, at, depth + 1)?;
        }
        let reads = self.stand_ins(&program.pressure.nodes[node].reads);
        for made in program.pressure.nodes[node].makes.iter().map(|r| *r as usize) {
            self.now[made] = self.size.len() as u32;
            self.made[made] = at;
            self.size.push(self.size[made]);
        }
        self.run(node, reads, true);
        self.seconds += program.seconds[node];
        Some(())
    }

    fn stand_ins<const N: usize>(&self, roots: &SmallVec<[u32; N]>) -> SmallVec<[u32; N]>
    where
        [u32; N]: smallvec::Array<Item = u32>,
    {
        roots.iter().map(|r| self.now[*r as usize]).collect()
    }

    fn run(&mut self, node: usize, reads: SmallVec<[u32; 4]>, again: bool) {
        let needs = &self.program.pressure.nodes[node];
        let reuses = needs
            .reuses
            .iter()
            .filter_map(|r| needs.reads.iter().position(|read| read == r))
            .map(|i| reads[i])
            .collect();
        let (makes, scratch) = (self.stand_ins(&needs.makes), needs.scratch);
        self.nodes.push(Needs { reads, makes, reuses, scratch });
        self.runs.push(Run { node: node as u32, again });
    }

    fn finish(self) -> Sketch {
        let mut stays = self.program.pressure.stays.clone();
        stays.resize(self.size.len(), false);
        let mut in_arena = self.program.pressure.in_arena.clone();
        in_arena.resize(self.size.len(), true);
        let order: Vec<u32> = (0..self.nodes.len() as u32).collect();
        let pressure =
            Pressure { nodes: self.nodes, root: Vec::new(), size: self.size, in_arena, stays };
        Sketch { runs: self.runs, peak: pressure.peak(&order), seconds: self.seconds }
    }
}

//! A program with some values dropped, sketched: which nodes run, in which order, what they read and make, and what
//! the disk lane does beside them. It is what the frontier tries thousands of; only the one that is chosen becomes a graph.
//!
//! What reads a dropped value after its idle interval reads a second one: made just before by recomputing its node, with
//! whatever of that node's inputs is not there any more, or read back from the file. A second value lives on to its own
//! last use, so that within a span of dropped values each node is recomputed once.
//!
//! A value begins to be written as soon as it is made, and is awaited behind its last use before the idle interval; it is read
//! back where it is used. `overlap` moves these apart as far as memory allows.

use smallvec::SmallVec;
use tonnage_core::row::Transfer;

use super::sketch::{ProgramProfile, RematDecision};
use crate::order::pressure::{Needs, Peak, Pressure};

/// A node of a sketch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SketchStep {
    /// A node of the program.
    Node(u32),
    /// A node of the program, once more.
    Recompute(u32),
    /// A root goes to the file, or back.
    Transfer(Transfer, u32),
}

/// A program with values dropped.
#[derive(Debug, Clone)]
pub struct Sketch {
    /// What runs, in order.
    pub runs: Vec<SketchStep>,
    /// The most that lives in the arena.
    pub peak: Peak,
    /// Seconds that it takes longer.
    pub seconds: f64,
}

/// A sketch in the making.
pub struct Drawing<'p> {
    pub program: &'p ProgramProfile,
    /// For each root, the idle interval in which it is not held.
    idle: Vec<(u32, u32)>,
    /// Whether it waits in a file then.
    spills: Vec<bool>,
    /// For each root, the one that stands for it now.
    now: Vec<u32>,
    /// For each root that has a second one, the node for which that was made.
    made: Vec<usize>,
    pub runs: Vec<SketchStep>,
    /// What each of them needs.
    pub pressure: Pressure,
    /// Seconds of what is recomputed.
    recompute_seconds: f64,
    /// Seconds of the disk lane.
    lane: f64,
    /// Seconds that it takes from computing.
    shared: f64,
}

const NONE: (u32, u32) = (u32::MAX, u32::MAX);
/// How far back one value may reach through others that are gone; beyond it a stack would be at risk.
const DEEPEST: usize = 4_000;

impl<'p> Drawing<'p> {
    pub fn new(program: &'p ProgramProfile, decisions: &[RematDecision]) -> Drawing<'p> {
        let roots = program.uses.len();
        let (mut idle, mut spills) = (vec![NONE; roots], vec![false; roots]);
        for (candidate, decision) in program.candidates.iter().zip(decisions) {
            if *decision != RematDecision::Keep {
                let root = candidate.root as usize;
                idle[root] = (candidate.from as u32, candidate.to as u32);
                spills[root] = *decision == RematDecision::Spill;
            }
        }
        let count = program.pressure.nodes.len();
        let known = &program.pressure;
        Drawing {
            program,
            idle,
            spills,
            now: (0..roots as u32).collect(),
            made: vec![usize::MAX; roots],
            runs: Vec::with_capacity(count * 2),
            pressure: Pressure {
                nodes: Vec::with_capacity(count * 2),
                root: Vec::new(),
                size: known.size.clone(),
                in_arena: known.in_arena.clone(),
                stays: known.stays.clone(),
            },
            recompute_seconds: 0.0,
            lane: 0.0,
            shared: 0.0,
        }
    }

    pub fn node(&mut self, at: usize) -> Option<()> {
        let program = self.program;
        let needs = &program.pressure.nodes[at];
        for root in &needs.reads {
            self.provide(*root as usize, at, 0)?;
        }
        self.run(at, self.stand_ins(&needs.reads), false);
        for root in &needs.makes {
            if self.spills[*root as usize] {
                self.transfer(Transfer::Write, *root, *root);
            }
        }
        for root in needs.makes.iter().chain(&needs.reads) {
            if self.spills[*root as usize] && self.idle[*root as usize].0 == at as u32 {
                self.transfer(Transfer::Written, *root, *root);
            }
        }
        Some(())
    }

    /// Makes sure that a root, or a second one in its stead, lives at a node.
    fn provide(&mut self, root: usize, at: usize, depth: usize) -> Option<()> {
        let program = self.program;
        let first = self.now[root] == root as u32;
        let held = match (first, self.idle[root]) {
            (true, NONE) => program.is_there(root, at),
            (true, (from, _)) => at <= from as usize,
            // A second one stays as long as the program itself still uses the first; beyond that it is only
            // there for what is recomputed at the same place.
            (false, _) => self.made[root] == at || program.used_from(root, at),
        };
        if held {
            return Some(());
        }
        if first && self.spills[root] {
            let second = self.second(root, at);
            self.transfer(Transfer::Read, root as u32, second);
            self.transfer(Transfer::Arrived, root as u32, second);
            return Some(());
        }
        let node = program.maker[root];
        if node == usize::MAX || !program.recomputable[node] || depth > DEEPEST {
            return None;
        }
        for read in program.pressure.nodes[node].reads.iter().map(|r| *r as usize) {
            // A root that is overwritten before has other contents by then.
            if program.updated[read] < at {
                return None;
            }
            self.provide(read, at, depth + 1)?;
        }
        let reads = self.stand_ins(&program.pressure.nodes[node].reads);
        for made in program.pressure.nodes[node].makes.iter().map(|r| *r as usize) {
            self.second(made, at);
        }
        self.run(node, reads, true);
        self.recompute_seconds += program.seconds[node];
        Some(())
    }

    fn second(&mut self, root: usize, at: usize) -> u32 {
        let made = self.pressure.size.len() as u32;
        self.now[root] = made;
        self.made[root] = at;
        self.pressure.size.push(self.pressure.size[root]);
        self.pressure.in_arena.push(true);
        self.pressure.stays.push(false);
        made
    }

    fn stand_ins<const N: usize>(&self, roots: &SmallVec<[u32; N]>) -> SmallVec<[u32; N]>
    where
        [u32; N]: smallvec::Array<Item = u32>,
    {
        roots.iter().map(|r| self.now[*r as usize]).collect()
    }

    fn run(&mut self, node: usize, reads: SmallVec<[u32; 4]>, recompute: bool) {
        let needs = &self.program.pressure.nodes[node];
        let reuses = needs
            .reuses
            .iter()
            .filter_map(|r| needs.reads.iter().position(|read| read == r))
            .map(|i| reads[i])
            .collect();
        let (makes, scratch) = (self.stand_ins(&needs.makes), needs.scratch);
        self.pressure.nodes.push(Needs { reads, makes, reuses, scratch });
        self.runs.push(if recompute {
            SketchStep::Recompute(node as u32)
        } else {
            SketchStep::Node(node as u32)
        });
    }

    /// `held` is the root, or its second one, whose memory takes part.
    fn transfer(&mut self, transfer: Transfer, root: u32, held: u32) {
        let mut needs = Needs::default();
        match transfer {
            Transfer::Read => needs.makes.push(held),
            _ => needs.reads.push(held),
        }
        let bytes = self.pressure.size[root as usize];
        if let Transfer::Write | Transfer::Read = transfer {
            let machine = &self.program.machine;
            self.lane += machine.transfer(bytes, transfer == Transfer::Write);
            self.shared += machine.shared(bytes);
        }
        self.pressure.nodes.push(needs);
        self.runs.push(SketchStep::Transfer(transfer, root));
    }

    /// What is drawn, as if computing hid all that it could of the lane: what points are looked for by. `overlap`
    /// has the figure of the point that is found.
    pub fn finish(self) -> Sketch {
        let order: Vec<u32> = (0..self.pressure.nodes.len() as u32).collect();
        let longer = self.recompute_seconds + self.shared;
        let beyond = self.lane - self.program.seconds() - longer;
        let seconds = longer + beyond.max(0.0);
        let (mut runs, peak) = (self.runs, self.pressure.peak(&order));
        runs.shrink_to_fit(); // dozens of them are held
        Sketch { runs, peak, seconds }
    }
}

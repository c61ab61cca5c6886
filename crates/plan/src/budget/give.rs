//! Giving back: a choice that fits with room to spare saves after all what is most expensive to recompute, as long as it fits.
//!
//! What lives at each node is known from the sketch. A value that is saved after all takes its bytes during its idle
//! interval, so the most expensive that fit beside each other are found by adding up, and one sketch checks them all.
//! What adding up misses, since keeping one value also spares others, is looked for by halves, with as many sketches
//! as a graph of that size can afford.

use crate::sort;
use std::cmp::Ordering;
use std::collections::VecDeque;

use super::choose::Choice;
use super::draw::SketchStep;
use super::sketch::{DropCandidate, ProgramProfile, RematDecision};

/// Times that values are added up: each starts from what the one before came to.
const ITERATIONS: usize = 4;
/// Nodes that may be drawn in looking by halves, for each kind of change.
const DRAWN: usize = 80_000;

/// The choice with as much saved after all as fits `most` bytes of the arena; what is still recomputed is spilled where
/// that is quicker. One without a file stays without.
pub fn give_back(program: &ProgramProfile, choice: Choice, most: u64) -> Choice {
    let spills = choice.dropped.spills();
    let mut giving = Giving { program, best: choice, most };
    giving.keep();
    giving.by_halves(RematDecision::Recompute, RematDecision::Keep);
    giving.by_halves(RematDecision::Spill, RematDecision::Keep);
    if spills {
        giving.by_halves(RematDecision::Recompute, RematDecision::Spill);
    }
    giving.best
}

struct Giving<'p> {
    program: &'p ProgramProfile,
    best: Choice,
    most: u64,
}

impl Giving<'_> {
    /// Those that have a decision and could have another, the most expensive first; of equals those that are idle for the
    /// shortest time.
    fn most_expensive(&self, decisions: &[RematDecision], other: RematDecision) -> Vec<usize> {
        let candidates = &self.program.candidates;
        let mut some: Vec<usize> = (0..candidates.len())
            .filter(|i| decisions.contains(&self.best.dropped.decisions[*i]))
            .filter(|i| other != RematDecision::Spill || candidates[*i].can_spill())
            .collect();
        let price = |c: &DropCandidate, decision: RematDecision| match decision {
            RematDecision::Spill => c.disk / c.bytes.max(1) as f64,
            _ => c.price(),
        };
        let by = |a: &usize, b: &usize| -> Ordering {
            let (ca, cb) = (&candidates[*a], &candidates[*b]);
            price(cb, self.best.dropped.decisions[*b])
                .total_cmp(&price(ca, self.best.dropped.decisions[*a]))
                .then((ca.to - ca.from).cmp(&(cb.to - cb.from)))
                .then(a.cmp(b))
        };
        sort::by(&mut some, by);
        some
    }

    /// What lives at each node of the program.
    fn live(&self) -> Option<Vec<u64>> {
        let drawing = self.program.draw(&self.best.dropped.decisions)?;
        let order: Vec<u32> = (0..drawing.runs.len() as u32).collect();
        let mut live = vec![0; self.program.pressure.nodes.len()];
        drawing.pressure.walk(&order, |at, bytes| {
            if let SketchStep::Node(node) = drawing.runs[at] {
                live[node as usize] = bytes;
            }
        });
        Some(live)
    }

    /// Keeps what fits beside each other.
    fn keep(&mut self) {
        for _ in 0..ITERATIONS {
            let Some(mut live) = self.live() else { return };
            let mut fitting = Vec::new();
            for i in self.most_expensive(
                &[RematDecision::Recompute, RematDecision::Spill],
                RematDecision::Keep,
            ) {
                let c = &self.program.candidates[i];
                let idle = &mut live[c.from + 1..c.to];
                if idle.iter().all(|held| held + c.bytes <= self.most) {
                    idle.iter_mut().for_each(|held| *held += c.bytes);
                    fitting.push(i);
                }
            }
            if fitting.is_empty() || !self.change(&fitting, RematDecision::Keep) {
                return;
            }
        }
    }

    /// Gives all of them that decision if that fits and is no slower.
    fn change(&mut self, some: &[usize], decision: RematDecision) -> bool {
        let mut decisions = self.best.dropped.decisions.clone();
        for i in some {
            decisions[*i] = decision;
        }
        match self.program.sketch(&decisions) {
            Some(sketch)
                if sketch.peak.bytes <= self.most && sketch.seconds <= self.best.sketch.seconds =>
            {
                self.best.dropped.decisions = decisions;
                self.best.sketch = sketch;
                true
            }
            _ => false,
        }
    }

    /// Tries all of a decision, then each half of what does not go, and so on.
    fn by_halves(&mut self, from: RematDecision, to: RematDecision) {
        let all = self.most_expensive(&[from], to);
        let mut open = VecDeque::from([&all[..]]);
        for _ in 0..DRAWN.div_ceil(self.program.pressure.nodes.len().max(1)) {
            let Some(some) = open.pop_front() else { return };
            if some.is_empty() || self.change(some, to) || some.len() == 1 {
                continue;
            }
            let (first, rest) = some.split_at(some.len() / 2);
            open.extend([first, rest]);
        }
    }
}

//! Giving back: a choice that fits with room to spare keeps again what is dearest to make again, as long as it fits.
//!
//! What lives at each node is known from the sketch. A value that is kept again takes its bytes during its gap, so the
//! dearest that fit beside each other are found by adding up, and one sketch checks them all. What adding up misses,
//! since keeping one value also spares others, is looked for by halves, with so many sketches as a graph of that size
//! can afford.

use std::cmp::Ordering;
use std::collections::VecDeque;

use super::choose::Choice;
use super::draw::Run;
use super::sketch::{Candidate, Fate, Program};

/// Times that values are added up: each starts from what the one before came to.
const ROUNDS: usize = 4;
/// Nodes that may be drawn in looking by halves, for each kind of change.
const DRAWN: usize = 80_000;

/// The choice with as much kept again as fits `most` bytes of the arena; what is still computed again is spilled where
/// that is quicker. One without a file stays without.
pub fn give_back(program: &Program, choice: Choice, most: u64) -> Choice {
    let spills = choice.dropped.spills();
    let mut giving = Giving { program, best: choice, most };
    giving.keep();
    giving.by_halves(Fate::Again, Fate::Keep);
    giving.by_halves(Fate::Spill, Fate::Keep);
    if spills {
        giving.by_halves(Fate::Again, Fate::Spill);
    }
    giving.best
}

struct Giving<'p> {
    program: &'p Program,
    best: Choice,
    most: u64,
}

impl Giving<'_> {
    /// Those that have a fate and could have another, the dearest first; of equals those that are idle for the
    /// shortest time.
    fn dearest(&self, fates: &[Fate], other: Fate) -> Vec<usize> {
        let candidates = &self.program.candidates;
        let mut some: Vec<usize> = (0..candidates.len())
            .filter(|i| fates.contains(&self.best.dropped.fates[*i]))
            .filter(|i| other != Fate::Spill || candidates[*i].can_spill())
            .collect();
        let price = |c: &Candidate, fate: Fate| match fate {
            Fate::Spill => c.disk / c.bytes.max(1) as f64,
            _ => c.price(),
        };
        let by = |a: &usize, b: &usize| -> Ordering {
            let (ca, cb) = (&candidates[*a], &candidates[*b]);
            price(cb, self.best.dropped.fates[*b])
                .total_cmp(&price(ca, self.best.dropped.fates[*a]))
                .then((ca.to - ca.from).cmp(&(cb.to - cb.from)))
                .then(a.cmp(b))
        };
        some.sort_by(by);
        some
    }

    /// What lives at each node of the program.
    fn live(&self) -> Option<Vec<u64>> {
        let drawing = self.program.draw(&self.best.dropped.fates)?;
        let order: Vec<u32> = (0..drawing.runs.len() as u32).collect();
        let mut live = vec![0; self.program.pressure.nodes.len()];
        drawing.pressure.walk(&order, |at, bytes| {
            if let Run::Node(node) = drawing.runs[at] {
                live[node as usize] = bytes;
            }
        });
        Some(live)
    }

    /// Keeps what fits beside each other.
    fn keep(&mut self) {
        for _ in 0..ROUNDS {
            let Some(mut live) = self.live() else { return };
            let mut fitting = Vec::new();
            for i in self.dearest(&[Fate::Again, Fate::Spill], Fate::Keep) {
                let c = &self.program.candidates[i];
                let gap = &mut live[c.from + 1..c.to];
                if gap.iter().all(|held| held + c.bytes <= self.most) {
                    gap.iter_mut().for_each(|held| *held += c.bytes);
                    fitting.push(i);
                }
            }
            if fitting.is_empty() || !self.change(&fitting, Fate::Keep) {
                return;
            }
        }
    }

    /// Gives all of them that fate if that fits and is no slower.
    fn change(&mut self, some: &[usize], fate: Fate) -> bool {
        let mut fates = self.best.dropped.fates.clone();
        for i in some {
            fates[*i] = fate;
        }
        match self.program.sketch(&fates) {
            Some(sketch)
                if sketch.peak.bytes <= self.most && sketch.seconds <= self.best.sketch.seconds =>
            {
                self.best.dropped.fates = fates;
                self.best.sketch = sketch;
                true
            }
            _ => false,
        }
    }

    /// Tries all of a fate, then each half of what does not go, and so on.
    fn by_halves(&mut self, from: Fate, to: Fate) {
        let all = self.dearest(&[from], to);
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

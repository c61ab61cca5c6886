//! Which values are dropped, for a given number of bytes, and how: as few seconds as possible.
//!
//! Three steps. *Spans*: the program's values are cut into spans; what is alive between two spans is
//! saved, so that each can be recomputed from there, and the rest is dropped, except what takes more seconds a byte than a
//! threshold. Spans are of about equal bytes, or the shorter the more of what is saved between them lives when they
//! are recomputed: of n equal values in a chain, sqrt(2n) live at once then instead of 2*sqrt(n). Every number of
//! spans and a few thresholds are tried, and the cheapest values alone, without spans. *Files*: the
//! same with all that is not recomputed spilled; each value in the cheaper way; and more and more of the values that
//! are large and idle for long spilled, with nothing recomputed. *Giving back* (`give`): starting from the quickest
//! that fits, dropped values are saved after all as long as it still fits. The result is checked by sketching, never by a
//! formula.

use super::draw::Sketch;
use super::front::{ParetoFront, Priced, by_seconds};
use super::give::give_back;
use super::overlap::overlapped;
use super::sketch::{DropCandidate, ProgramProfile, RematDecision};
use crate::sort;

/// Thresholds of seconds a byte that are tried.
const THRESHOLDS: usize = 6;
/// Shares of the values that are spilled with nothing recomputed; of those that are recomputed twice as many.
const SHARES: usize = 12;

/// What becomes of each candidate of a program.
#[derive(Debug, Clone)]
pub struct Dropped {
    /// Which order of the program it is of.
    pub order: usize,
    /// For each candidate.
    pub decisions: Vec<RematDecision>,
}

impl Dropped {
    /// Whether a value waits in a file.
    pub fn spills(&self) -> bool {
        self.decisions.contains(&RematDecision::Spill)
    }
}

/// A choice and what it comes to.
#[derive(Debug, Clone)]
pub struct Choice {
    pub dropped: Dropped,
    pub sketch: Sketch,
}

impl Priced for Choice {
    fn seconds(&self) -> f64 {
        self.sketch.seconds
    }

    fn peak(&self) -> u64 {
        self.sketch.peak.bytes
    }
}

/// A choice that is worth looking at. Its sketch is not held: there are hundreds, and most are never looked at again.
#[derive(Debug)]
pub struct Tried {
    dropped: Dropped,
    seconds: f64,
    /// The most that lives in the arena.
    pub peak: u64,
}

impl Tried {
    /// The choice, sketched again.
    pub fn choice(&self, programs: &[ProgramProfile]) -> Option<Choice> {
        let dropped = self.dropped.clone();
        let sketch = programs[dropped.order].sketch(&dropped.decisions)?;
        Some(Choice { dropped, sketch })
    }
}

impl Priced for Tried {
    fn seconds(&self) -> f64 {
        self.seconds
    }

    fn peak(&self) -> u64 {
        self.peak
    }
}

/// All choices that are worth looking at, quickest first: those that no other beats in both seconds and peak; and those
/// without a file that no other such beats, since what a file really adds is known only when it is drawn in full.
pub fn found(programs: &[ProgramProfile]) -> Vec<Tried> {
    let (mut recomputes, mut spills) = (ParetoFront::default(), ParetoFront::default());
    for (order, program) in programs.iter().enumerate() {
        let mut tries = Tries { program, order, recomputes: &mut recomputes, spills: &mut spills };
        // Updates at the end are for what is read back from a file.
        if order == 0 {
            tries.recompute();
        }
        if program.candidates.iter().any(DropCandidate::can_spill) {
            tries.files();
        }
    }
    let mut both = recomputes.into_vec();
    both.append(&mut spills.into_vec());
    sort::by(&mut both, by_seconds);
    both
}

/// The quickest choice that takes at most `most` bytes of the arena: the better of the quickest with a file and
/// the quickest without.
pub fn quickest(programs: &[ProgramProfile], found: &[Tried], most: u64) -> Option<Choice> {
    let start = |spills: bool| {
        let fits = |tried: &&Tried| tried.dropped.spills() == spills && tried.peak <= most;
        found.iter().find(fits)
    };
    let finished = |start: &Tried| {
        let program = &programs[start.dropped.order];
        let mut choice = give_back(program, start.choice(programs)?, most);
        if choice.dropped.spills() {
            choice.sketch = overlapped(program, &choice.dropped.decisions, most)?;
        }
        Some(choice)
    };
    let both = [start(false), start(true)].into_iter().flatten().filter_map(finished);
    both.min_by(by_seconds)
}

struct Tries<'a> {
    program: &'a ProgramProfile,
    order: usize,
    recomputes: &'a mut ParetoFront<Tried>,
    spills: &'a mut ParetoFront<Tried>,
}

impl Tries<'_> {
    fn add(&mut self, decisions: Vec<RematDecision>) {
        if let Some(sketch) = self.program.sketch(&decisions) {
            let (seconds, peak) = (sketch.seconds, sketch.peak.bytes);
            let tried = Tried { dropped: Dropped { order: self.order, decisions }, seconds, peak };
            match tried.dropped.spills() {
                true => self.spills.add(tried),
                false => self.recomputes.add(tried),
            }
        }
    }

    fn recompute(&mut self) {
        self.add(vec![RematDecision::Keep; self.program.candidates.len()]);
        self.cheapest();
        for limit in limits(self.program) {
            self.cut(limit, RematDecision::Keep, Spans::Even);
            self.cut(limit, RematDecision::Keep, Spans::Sloped);
        }
    }

    /// More and more of the values recomputed, those first that take the fewest seconds a byte.
    fn cheapest(&mut self) {
        let candidates = &self.program.candidates;
        let mut order: Vec<usize> =
            (0..candidates.len()).filter(|i| candidates[*i].can_recompute()).collect();
        sort::by(&mut order, |a, b| candidates[*a].price().total_cmp(&candidates[*b].price()));
        for share in 1..=2 * SHARES {
            let mut decisions = vec![RematDecision::Keep; candidates.len()];
            for i in &order[..(order.len() * share).div_ceil(2 * SHARES)] {
                decisions[*i] = RematDecision::Recompute;
            }
            self.add(decisions);
        }
    }

    /// Every number of spans; what is not recomputed has the decision `rest`, where it can.
    fn cut(&mut self, limit: f64, rest: RematDecision, spans: Spans) {
        let mut cuts = 0;
        while cuts <= self.program.candidates.len() {
            let Some(places) = places(self.program, cuts, spans) else { return };
            let recomputed = dropped(self.program, &places, limit);
            let all = self.program.candidates.iter().zip(&recomputed);
            let decision = |(c, recompute): (&DropCandidate, &bool)| match (recompute, rest) {
                (true, _) => RematDecision::Recompute,
                (false, RematDecision::Spill) if c.can_spill() => RematDecision::Spill,
                _ => RematDecision::Keep,
            };
            self.add(all.map(decision).collect());
            // Every small number, then ever larger steps: many short spans are all alike.
            cuts += 1 + cuts / 8;
        }
    }

    fn files(&mut self) {
        let candidates = &self.program.candidates;
        let cheaper = |c: &DropCandidate| match c.disk < c.seconds {
            true => RematDecision::Spill,
            false => RematDecision::Recompute,
        };
        self.add(candidates.iter().map(cheaper).collect());
        let mut order: Vec<usize> =
            (0..candidates.len()).filter(|i| candidates[*i].can_spill()).collect();
        let idle = |i: &usize| {
            let c = &candidates[*i];
            u128::from(c.bytes) * (c.to - c.from) as u128
        };
        sort::by_key(&mut order, |i| (std::cmp::Reverse(idle(i)), *i));
        for share in 1..=SHARES {
            let mut decisions = vec![RematDecision::Keep; candidates.len()];
            for i in &order[..(order.len() * share).div_ceil(SHARES)] {
                decisions[*i] = RematDecision::Spill;
            }
            self.add(decisions);
        }
        let limits = limits(self.program);
        if let (Some(first), Some(last)) = (limits.first(), limits.last()) {
            self.cut(*last, RematDecision::Spill, Spans::Even);
            if first < last {
                self.cut(*first, RematDecision::Spill, Spans::Even);
            }
        }
    }
}

/// Thresholds of the seconds that recomputing a byte may take.
fn limits(program: &ProgramProfile) -> Vec<f64> {
    let able = program.candidates.iter().filter(|c| c.can_recompute());
    let mut prices: Vec<f64> = able.map(DropCandidate::price).collect();
    sort::by(&mut prices, f64::total_cmp);
    let mut limits: Vec<f64> = (1..=THRESHOLDS)
        .filter_map(|i| prices.get((prices.len() * i).div_ceil(THRESHOLDS).saturating_sub(1)))
        .copied()
        .collect();
    limits.dedup();
    limits
}

/// How long the spans are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Spans {
    /// Of equal bytes.
    Even,
    /// Each shorter than the one before by what is saved between two of them: when it is recomputed, so much more of that
    /// lives than when the one before does, which comes later.
    Sloped,
}

/// Everything but what is alive at one of these places, and what is too expensive.
fn dropped(program: &ProgramProfile, places: &[usize], most_expensive: f64) -> Vec<bool> {
    program
        .candidates
        .iter()
        .map(|c| {
            // The first place behind where it is made: is it still to be read there?
            let place = places.partition_point(|p| *p <= c.made);
            let crosses = places.get(place).is_some_and(|p| *p <= c.from);
            !crosses && c.price() <= most_expensive
        })
        .collect()
}

/// Places that cut the candidates into spans; each is moved, by less than half a span, to where the fewest bytes
/// cross: between two blocks rather than inside of one. `None` where the last spans would have no length.
fn places(program: &ProgramProfile, cuts: usize, spans: Spans) -> Option<Vec<usize>> {
    let all = program.candidates.iter().zip(&program.crossing);
    let able: Vec<(&DropCandidate, u64)> =
        all.filter(|(c, _)| c.can_recompute()).map(|(c, crossing)| (c, *crossing)).collect();
    let mut sums = Vec::with_capacity(able.len());
    let mut total = 0;
    for (candidate, _) in &able {
        total += candidate.bytes;
        sums.push(total);
    }
    let count = cuts as f64;
    let shorter = match spans {
        Spans::Even => 0.0,
        Spans::Sloped => narrow(&able),
    };
    let first = (total as f64 + shorter * count * (count + 1.0) / 2.0) / (count + 1.0);
    if first < shorter * count {
        return None;
    }
    let mut places: Vec<usize> = (1..=cuts)
        .filter_map(|i| {
            let i = i as f64;
            let ideal = (i * first - shorter * i * (i - 1.0) / 2.0) as u64;
            let around = ((first - shorter * i) / 3.0) as u64;
            let from = sums.partition_point(|s| *s < ideal.saturating_sub(around));
            let to = sums.partition_point(|s| *s <= ideal.saturating_add(around));
            (from..to.max(from + 1).min(sums.len()))
                .min_by_key(|at| (able[*at].1, sums[*at].abs_diff(ideal)))
                .map(|at| able[at].0.made + 1)
        })
        .collect();
    places.dedup();
    Some(places)
}

/// What crosses a narrow place: a quarter of all places have less.
fn narrow(able: &[(&DropCandidate, u64)]) -> f64 {
    let mut crossing: Vec<u64> = able.iter().map(|(_, bytes)| *bytes).collect();
    crossing.sort_unstable();
    crossing.get(crossing.len() / 4).map_or(0.0, |bytes| *bytes as f64)
}

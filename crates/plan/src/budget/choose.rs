//! Which values are dropped, for a given number of bytes: as few seconds as possible.
//!
//! Three steps. *Stretches*: the program's values are cut into stretches of about equal bytes; what is alive
//! between two stretches is kept, so that each can be run again from there, and the rest is dropped, except what
//! takes more seconds a byte than a threshold. Every number of stretches and a few thresholds are tried. *Giving
//! back*: starting from the quickest that fits, dropped values are kept again, the dearest first, as long as it
//! still fits. The result is checked by sketching, never by a formula.

use super::sketch::{Program, Sketch};

/// Thresholds of seconds a byte that are tried.
const THRESHOLDS: usize = 6;

/// A choice and what it comes to.
#[derive(Debug, Clone)]
pub struct Choice {
    /// For each candidate of the program, whether it is dropped.
    pub dropped: Vec<bool>,
    pub sketch: Sketch,
}

/// All choices of stretches that are worth looking at, quickest first, each with a lower peak than the one before.
pub fn stretches(program: &Program) -> Vec<Choice> {
    let mut found = Vec::new();
    let all = vec![false; program.candidates.len()];
    if let Some(sketch) = program.sketch(&all) {
        found.push(Choice { dropped: all, sketch });
    }
    let mut prices: Vec<f64> =
        program.candidates.iter().map(|c| c.seconds / c.bytes.max(1) as f64).collect();
    prices.sort_by(f64::total_cmp);
    let mut limits: Vec<f64> = (1..=THRESHOLDS)
        .filter_map(|i| prices.get((prices.len() * i).div_ceil(THRESHOLDS).saturating_sub(1)))
        .copied()
        .collect();
    limits.dedup();
    for limit in limits {
        let mut cuts = 0;
        while cuts <= program.candidates.len() {
            let dropped = dropped(program, cuts, limit);
            if let Some(sketch) = program.sketch(&dropped) {
                found.push(Choice { dropped, sketch });
            }
            // Every small number, then ever larger steps: many short stretches are all alike.
            cuts += 1 + cuts / 8;
        }
    }
    front(found)
}

/// Those that no other beats in both seconds and peak.
fn front(mut choices: Vec<Choice>) -> Vec<Choice> {
    choices.sort_by(|a, b| {
        let seconds = a.sketch.seconds.total_cmp(&b.sketch.seconds);
        seconds.then(a.sketch.peak.bytes.cmp(&b.sketch.peak.bytes))
    });
    let mut kept: Vec<Choice> = Vec::new();
    for choice in choices {
        if kept.last().is_none_or(|last| choice.sketch.peak.bytes < last.sketch.peak.bytes) {
            kept.push(choice);
        }
    }
    kept
}

/// Everything but what is alive at one of `cuts` places, and what is too dear.
fn dropped(program: &Program, cuts: usize, dearest: f64) -> Vec<bool> {
    let places = places(program, cuts);
    program
        .candidates
        .iter()
        .map(|c| {
            // The first place behind where it is made: is it still to be read there?
            let place = places.partition_point(|p| *p <= c.made);
            let crosses = places.get(place).is_some_and(|p| *p <= c.from);
            let dear = c.seconds / c.bytes.max(1) as f64 > dearest;
            !crosses && !dear
        })
        .collect()
}

/// Places that cut the candidates into stretches of about equal bytes; each is moved, by less than half a
/// stretch, to where the fewest bytes cross: between two blocks rather than inside of one.
fn places(program: &Program, cuts: usize) -> Vec<usize> {
    let candidates = &program.candidates;
    let total: u64 = candidates.iter().map(|c| c.bytes).sum();
    let mut sums = Vec::with_capacity(candidates.len());
    let mut sum = 0;
    for candidate in candidates {
        sum += candidate.bytes;
        sums.push(sum);
    }
    let stretch = total / (cuts as u64 + 1);
    let mut places: Vec<usize> = (1..=cuts as u64)
        .filter_map(|i| {
            let ideal =
                u64::try_from(u128::from(total) * u128::from(i) / (cuts as u128 + 1)).ok()?;
            let first = sums.partition_point(|s| *s < ideal.saturating_sub(stretch / 3));
            let last = sums.partition_point(|s| *s <= ideal.saturating_add(stretch / 3));
            (first..last.max(first + 1).min(sums.len()))
                .min_by_key(|at| (program.crossing[*at], sums[*at].abs_diff(ideal)))
                .map(|at| candidates[at].made + 1)
        })
        .collect();
    places.dedup();
    places
}

/// The choice with as much kept again as fits `most` bytes of the arena.
pub fn give_back(program: &Program, choice: &Choice, most: u64) -> Choice {
    let mut best = choice.clone();
    let mut order: Vec<usize> = (0..best.dropped.len()).filter(|i| best.dropped[*i]).collect();
    let price = |i: &usize| {
        let c = &program.candidates[*i];
        c.seconds / c.bytes.max(1) as f64
    };
    order.sort_by(|a, b| price(b).total_cmp(&price(a)).then(a.cmp(b)));
    try_all(program, &mut best, &order, most);
    best
}

/// Keeps all of them if that fits; otherwise tries each half on its own.
fn try_all(program: &Program, best: &mut Choice, some: &[usize], most: u64) {
    if some.is_empty() {
        return;
    }
    let mut dropped = best.dropped.clone();
    for i in some {
        dropped[*i] = false;
    }
    match program.sketch(&dropped) {
        Some(sketch) if sketch.peak.bytes <= most && sketch.seconds <= best.sketch.seconds => {
            *best = Choice { dropped, sketch };
        }
        _ if some.len() > 1 => {
            let (first, rest) = some.split_at(some.len() / 2);
            try_all(program, best, first, most);
            try_all(program, best, rest, most);
        }
        _ => {}
    }
}

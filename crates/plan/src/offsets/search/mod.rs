//! An exact search for a packing within a capacity.
//!
//! It builds upwards from the floor. A *valley* is a run of sections with equal floors between
//! higher ones. Take any section of a valley: the lowest item over it either starts right on the floor,
//! and then its whole span lies in the valley; or every item over it starts higher, at an offset for which
//! something unplaced has to support it. Those cases exclude each other, so no
//! packing is met twice, and they cover all packings in which nothing can be pushed down, of which there
//! is one wherever there is any. Choosing which item comes next instead, as MiniMalloc's search does,
//! needs extra rules to avoid permutations of the same packing.
//!
//! What makes it fast: an item that is in no row from wall to wall is no case (`rows`); the section that leaves the fewest
//! cases comes first, weighted by how often it failed; items that fit a valley's walls are tried first, or those that
//! are lowest in the best packing so far; sections that no unplaced item joins are
//! solved apart, and a failure in one returns to the decision that cut them off; what has failed is
//! remembered; and the search starts again with shuffled preferences, since one bad early decision can
//! cost more than all the rest.

mod branch;
mod rows;
mod state;

use super::Effort;
use super::sections::Component;
use crate::sort;
pub(super) use branch::weight;
use branch::{Attempt, Preference};
pub(super) use state::mix;

/// What a search found out.
pub(super) enum SearchOutcome {
    /// A packing, in units.
    Found(Vec<u64>),
    /// There is none.
    None,
    /// The nodes were used up, or the caller stopped it.
    Unknown,
}

/// Above this many pairs of an item and a section, a single decision takes too long for a search to be of use.
const MAX_PAIRS: u64 = 4_000_000;
/// Decisions of the shortest attempt, beside what placing every item takes: a little over one for each.
const ATTEMPT: u64 = 200;

/// Looks for a packing within `capacity` units, trying at most the decisions of `effort`, which are taken off it. A packing that
/// is too high guides every other attempt: most of it is right.
pub(super) fn search(
    component: &Component,
    capacity: u64,
    guide: Option<&[u64]>,
    effort: &mut Effort,
    stop: &mut dyn FnMut() -> bool,
) -> SearchOutcome {
    if component.bound / component.unit > capacity {
        return SearchOutcome::None;
    }
    let pairs: u64 = component.span.iter().map(|span| u64::from(span.1 - span.0)).sum();
    // Every item takes a decision: with fewer nodes than that nothing can be found.
    if pairs > MAX_PAIRS || effort.nodes < component.len() as u64 * weight(component) {
        return SearchOutcome::Unknown;
    }
    let Effort { nodes: given, luck } = *effort;
    let shortest = (ATTEMPT + component.len() as u64 * 5 / 4) * weight(component);
    let mut attempt = Attempt::new(component, capacity, given);
    for restart in 0u64.. {
        let guided = guide.filter(|_| restart % 2 == 1);
        let restart = if guide.is_some() { restart / 2 } else { restart };
        let length = shortest * luby(restart / PREFERENCES.len() as u64 + 1);
        let limit = attempt.nodes().saturating_add(length).min(given);
        let rank = match guided {
            None => Preference::Fits(ranks(component, restart, luck)),
            Some(guide) => Preference::Guide(followed(guide, restart, luck)),
        };
        let outcome = attempt.run(rank, limit, stop);
        effort.nodes = given.saturating_sub(attempt.nodes());
        match outcome {
            SearchOutcome::Unknown if effort.nodes > 0 && !stop() => {}
            outcome => return outcome,
        }
    }
    SearchOutcome::Unknown
}

/// What to try first among items that fit a valley equally well.
const PREFERENCES: [fn(&Component, usize) -> f64; 4] = [
    |component, i| component.size[i] as f64 * f64::from(component.steps[i]),
    |component, i| f64::from(component.steps[i]),
    |component, i| component.size[i] as f64,
    |component, i| f64::from(component.span[i].1 - component.span[i].0),
];

/// Each item's place in the order of preference. After the first restarts, figures are multiplied by a
/// fixed sequence of factors up to 20, which is more than most of them differ.
fn ranks(component: &Component, restart: u64, luck: u64) -> Vec<u32> {
    let kinds = PREFERENCES.len() as u64;
    let prefer = PREFERENCES[(restart % kinds) as usize];
    let factor = |i: usize| match restart < kinds && luck == 0 {
        true => 1.0,
        false => 20f64.powf(drawn(restart, luck, i)),
    };
    let figures: Vec<f64> =
        (0..component.len()).map(|i| prefer(component, i) * factor(i)).collect();
    let mut order: Vec<usize> = (0..component.len()).collect();
    sort::by(&mut order, |&a, &b| {
        figures[b].total_cmp(&figures[a]).then(component.size[b].cmp(&component.size[a]))
    });
    places(&order)
}

/// Each item's place in a packing from below, after the first restart with some of them moved up or down.
fn followed(guide: &[u64], restart: u64, luck: u64) -> Vec<u32> {
    let top = guide.iter().max().map_or(0.0, |&top| top as f64);
    let moved = |i: usize| match restart == 0 && luck == 0 {
        true => 0.0,
        false => top * 0.1 * (drawn(restart, luck, i) - 0.5),
    };
    let figures: Vec<f64> = (0..guide.len()).map(|i| guide[i] as f64 + moved(i)).collect();
    let mut order: Vec<usize> = (0..guide.len()).collect();
    sort::by(&mut order, |&a, &b| figures[a].total_cmp(&figures[b]));
    places(&order)
}

/// A number from 0 to 1 that is an item's own in a restart.
fn drawn(restart: u64, luck: u64, i: usize) -> f64 {
    let restart = if luck == 0 { restart } else { mix(luck) ^ restart };
    mix(mix(restart) ^ i as u64) as f64 / u64::MAX as f64
}

/// Each item's place in an order.
fn places(order: &[usize]) -> Vec<u32> {
    let mut rank = vec![0; order.len()];
    for (place, &i) in order.iter().enumerate() {
        rank[i] = place as u32;
    }
    rank
}

/// The sequence 1 1 2 1 1 2 4 1 1 2 1 1 2 4 8 ... of Luby, Sinclair and Zuckerman: within a
/// logarithmic factor of the best lengths of attempts, whatever the distribution of their luck.
fn luby(mut i: u64) -> u64 {
    loop {
        let k = (i + 1).ilog2();
        if i + 1 == 1 << k {
            return 1 << (k - 1);
        }
        i -= (1 << k) - 1;
    }
}

#[cfg(test)]
mod tests {
    use super::luby;

    #[test]
    fn attempts_follow_lubys_sequence() {
        let first: Vec<u64> = (1..=15).map(luby).collect();
        assert_eq!(first, [1, 1, 2, 1, 1, 2, 4, 1, 1, 2, 1, 1, 2, 4, 8]);
    }
}

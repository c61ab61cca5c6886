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
//! What makes it fast: the section that leaves the fewest cases comes first, weighted by how often it
//! failed; items that fit a valley's walls are tried first; sections that no unplaced item joins are
//! solved apart, and a failure in one returns to the decision that cut them off; what has failed is
//! remembered; and the search starts again with shuffled preferences, since one bad early decision can
//! cost more than all the rest.

mod branch;
mod state;

use super::sections::Part;
use branch::Attempt;
use state::mix;

/// What a search found out.
pub(super) enum Outcome {
    /// A packing, in units.
    Found(Vec<u64>),
    /// There is none.
    None,
    /// The nodes were used up, or the caller stopped it.
    Unknown,
}

/// Above this many pairs of an item and a section, a single decision takes too long for a search to be of use.
const MAX_PAIRS: u64 = 4_000_000;
/// Nodes of the shortest attempt, beside what placing every item takes: a little over one for each.
const ATTEMPT: u64 = 200;

/// Looks for a packing within `capacity` units, trying at most `nodes` decisions, which are taken off it.
pub(super) fn search(
    part: &Part,
    capacity: u64,
    nodes: &mut u64,
    stop: &mut dyn FnMut() -> bool,
) -> Outcome {
    if part.bound / part.unit > capacity {
        return Outcome::None;
    }
    let pairs: u64 = part.span.iter().map(|span| u64::from(span.1 - span.0)).sum();
    // Every item takes a decision: with fewer nodes than items nothing can be found.
    if pairs > MAX_PAIRS || *nodes < part.len() as u64 {
        return Outcome::Unknown;
    }
    let given = *nodes;
    let shortest = ATTEMPT + part.len() as u64 * 5 / 4;
    let mut attempt = Attempt::new(part, capacity, given);
    for round in 0u64.. {
        let length = shortest * luby(round / PREFERENCES.len() as u64 + 1);
        let limit = attempt.nodes().saturating_add(length).min(given);
        let outcome = attempt.run(ranks(part, round), limit, stop);
        *nodes = given.saturating_sub(attempt.nodes());
        match outcome {
            Outcome::Unknown if *nodes > 0 && !stop() => {}
            outcome => return outcome,
        }
    }
    Outcome::Unknown
}

/// What to try first among items that fit a valley equally well.
const PREFERENCES: [fn(&Part, usize) -> f64; 4] = [
    |part, i| part.size[i] as f64 * f64::from(part.steps[i]),
    |part, i| f64::from(part.steps[i]),
    |part, i| part.size[i] as f64,
    |part, i| f64::from(part.span[i].1 - part.span[i].0),
];

/// Each item's place in the order of preference. After the first rounds, figures are multiplied by a
/// fixed sequence of factors up to 20, which is more than most of them differ.
fn ranks(part: &Part, round: u64) -> Vec<u32> {
    let kinds = PREFERENCES.len() as u64;
    let prefer = PREFERENCES[(round % kinds) as usize];
    let factor = |i: usize| match round < kinds {
        true => 1.0,
        false => 20f64.powf(mix(mix(round) ^ i as u64) as f64 / u64::MAX as f64),
    };
    let figures: Vec<f64> = (0..part.len()).map(|i| prefer(part, i) * factor(i)).collect();
    let mut order: Vec<usize> = (0..part.len()).collect();
    order.sort_by(|&a, &b| figures[b].total_cmp(&figures[a]).then(part.size[b].cmp(&part.size[a])));
    let mut rank = vec![0; part.len()];
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

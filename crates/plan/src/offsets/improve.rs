//! Which capacities the exact search is asked for, and how much of the effort each question gets.

use super::Effort;
use super::greedy;
use super::joined::{guesses, joined};
use super::peak;
use super::search::{SearchOutcome, search, weight};
use super::sections::Component;

/// What is left of the effort.
pub(super) struct EffortLeft<'a> {
    pub(super) effort: Effort,
    pub(super) stop: &'a mut dyn FnMut() -> bool,
}

impl EffortLeft<'_> {
    /// Searches at most `nodes` nodes.
    fn search(
        &mut self,
        component: &Component,
        capacity: u64,
        guide: Option<&[u64]>,
        nodes: u64,
    ) -> SearchOutcome {
        let given = nodes.min(self.effort.nodes);
        let mut left = Effort { nodes: given, ..self.effort };
        let outcome = search(component, capacity, guide, &mut left, self.stop);
        self.effort.nodes -= given - left.nodes;
        outcome
    }

    /// Looks for a packing of blocks, each joined of items: in the attempts of a sweep, each with half as many nodes.
    fn blocks(
        &mut self,
        component: &Component,
        capacity: u64,
        sweep: u32,
        nodes: u64,
    ) -> Option<Vec<u64>> {
        let attempts = ATTEMPTS << sweep.min(32);
        let first = attempts - ATTEMPTS;
        for attempt in first..first + attempts {
            // What is joined without a guess is the same every time.
            if !guesses(attempt) && attempt > first {
                continue;
            }
            // Joining goes through all items for each guess.
            let cost = (component.len() as u64).pow(2) / 64;
            if component.len() > MOST_JOINED || cost > self.effort.nodes || self.spent() {
                return None;
            }
            let shuffle = self.effort.luck << 32 | attempt;
            let Some(joined) = joined(component, shuffle) else { continue };
            self.effort.nodes -= cost;
            let blocks = &joined.component;
            let within = capacity / blocks.unit;
            let plain = greedy::best(blocks, within);
            if blocks.height(&plain) <= within {
                return Some(joined.unfold(&plain));
            }
            if let SearchOutcome::Found(packed) = self.search(blocks, within, None, nodes / 2) {
                return Some(joined.unfold(&packed));
            }
        }
        None
    }

    fn spent(&mut self) -> bool {
        self.effort.nodes == 0 || (self.stop)()
    }
}

/// Decisions of the first question, beside some for each item.
const FIRST: u64 = 4_000;

/// The part of a question's nodes that blocks of items get before anything longer is tried.
const QUICK: u64 = 2;

/// Ways of joining items that the first sweep tries; each further one tries twice as many.
const ATTEMPTS: u64 = 8;
/// Of more items too many look like pieces of one block.
const MOST_JOINED: usize = 2_000;

/// A packing in units, as low as can be found, though no lower than `enough` bytes; and whether a lower
/// one is known not to exist (or not to be wanted).
pub(super) fn smallest(
    component: &Component,
    enough: u64,
    budget: &mut EffortLeft,
) -> (Vec<u64>, bool) {
    // No packing is lower than this, as far as anyone needs to know.
    let mut proved = (enough / component.unit).max(component.bound / component.unit);
    let mut best = greedy::best(component, proved);
    let mut height = component.height(&best);
    if height > proved
        && let Some(found) = quickly(component, proved, budget)
    {
        (height, best) = (component.height(&found), found);
    }
    // Each sweep asks for `proved` first and longest, since most instances have a packing there, and then
    // bisects up from what was not found, ever more finely. The next sweep has more nodes for each question.
    for sweep in 0.. {
        let nodes = share(component, sweep);
        let fineness = height.checked_shr(7 + sweep).unwrap_or(0);
        let (mut asked, mut missed) = (proved, proved);
        let before = (budget.effort, proved, height);
        while asked < height && !budget.spent() {
            let share = if asked == proved { nodes.saturating_mul(2) } else { nodes };
            match budget.search(component, asked, Some(&best), share) {
                SearchOutcome::Found(found) => (height, best) = (component.height(&found), found),
                SearchOutcome::None => (proved, missed) = (asked + 1, asked),
                SearchOutcome::Unknown => missed = asked,
            }
            if asked == proved
                && height > proved
                && let Some(found) = budget.blocks(component, proved, sweep, nodes)
            {
                (height, best) = (component.height(&found), found);
            }
            if height.saturating_sub(missed) <= fineness {
                break;
            }
            asked = (missed + (height - missed) / 2).max(proved).max(missed + 1);
        }
        if height <= proved || budget.spent() || before == (budget.effort, proved, height) {
            break;
        }
    }
    (best, height <= proved)
}

/// A packing within `capacity` units by what takes few nodes: the crowded interval first, or items joined to blocks. Most
/// steps of training that the heuristics miss are solved here, with a hundredth of the nodes that the search of all items
/// takes.
fn quickly(component: &Component, capacity: u64, budget: &mut EffortLeft) -> Option<Vec<u64>> {
    if budget.spent() {
        return None;
    }
    let solve = &mut |piece: &Component, capacity| budget.search(piece, capacity, None, FIRST);
    peak::pack(component, capacity, solve)
        .or_else(|| budget.blocks(component, capacity, 0, share(component, 0) / QUICK))
}

/// A packing in units within `capacity` bytes.
pub(super) fn within(
    component: &Component,
    capacity: u64,
    budget: &mut EffortLeft,
) -> Option<Vec<u64>> {
    let capacity = capacity / component.unit;
    let best = greedy::best(component, capacity);
    if component.height(&best) <= capacity {
        return Some(best);
    }
    if let Some(found) = quickly(component, capacity, budget) {
        return Some(found);
    }
    for sweep in 0.. {
        let (before, nodes) = (budget.effort, share(component, sweep));
        match budget.search(component, capacity, Some(&best), nodes.saturating_mul(2)) {
            SearchOutcome::Found(found) => return Some(found),
            SearchOutcome::None => return None,
            SearchOutcome::Unknown => {}
        }
        if let Some(found) = budget.blocks(component, capacity, sweep, nodes) {
            return Some(found);
        }
        if budget.spent() || before == budget.effort {
            break;
        }
    }
    None
}

/// Nodes for a question of a sweep.
fn share(component: &Component, sweep: u32) -> u64 {
    let first = (FIRST + 16 * component.len() as u64) * weight(component);
    first.saturating_mul(1 << (2 * sweep).min(40))
}

//! Packings without a search: items are placed one by one in several orders, and the best result stays.
//!
//! Two ways of placing. [`BestPacking::two_ended`] piles items up from the floor and down from the ceiling, wherever less
//! is wasted: `n log n`, and exact where lifetimes nest like the activations of a training step, or pile
//! up towards its end like the gradients of its weights. [`BestPacking::gap_fit`] looks for the gap
//! that suits best among all placed items: better on small tangled instances, but quadratic, so it
//! runs within a fixed amount of work.

use crate::sort;
use std::cmp::Reverse;

use super::sections::Component;
use super::skyline::Skyline;

/// What the attempts may cost together, in placed items looked at: about 20 microseconds for each item, and a tenth of a
/// second at most. The first attempt always ends.
pub(super) fn work(component: &Component) -> usize {
    (3_072 * component.len()).min(15_000_000)
}
/// What placing an item on a pile costs, in the same measure.
const PILE_WORK: usize = 256;

/// Orders to place in. Each starts with what is hard to place later.
#[derive(Clone, Copy)]
enum PlacementOrder {
    Length,
    Area,
    Size,
    /// Items of one size as they come, so that they take as few places as any packing of them.
    Sizes,
    Contention,
    Peak,
    Start,
    End,
}

/// Which pile an item goes onto.
#[derive(Clone, Copy)]
enum PileRule {
    /// The one that leaves the most room in the section that then has the least.
    Roomy,
    /// The one that wastes less area.
    Tidy,
}

/// Attempts of [`BestPacking::insist`].
const ATTEMPTS: usize = 12;

/// The lowest packing that the heuristics find, in units; the first one within `target` ends the work.
pub(super) fn best(component: &Component, target: u64) -> Vec<u64> {
    let mut best = BestPacking::new(component, target, work(component), &[]);
    if !best.piles() {
        let orders = [
            PlacementOrder::Size,
            PlacementOrder::Area,
            PlacementOrder::Length,
            PlacementOrder::Contention,
            PlacementOrder::Start,
            PlacementOrder::End,
        ];
        // Ends with the first that meets the target; the best so far is the answer either way.
        orders.iter().map(|&order| sorted(component, order)).any(|order| {
            [GapRule::Tightest, GapRule::Lowest].iter().any(|&rule| best.gap_fit(&order, rule))
        });
    }
    best.offsets
}

/// A packing within `target` units around items that are placed already: those come with their offsets, lowest
/// first. What it costs is taken off `work`.
pub(super) fn around(
    component: &Component,
    target: u64,
    fixed: &[(u32, u64)],
    work: &mut usize,
) -> Option<Vec<u64>> {
    let mut best = BestPacking::new(component, target, *work, fixed);
    // Nothing above the target is of use.
    best.height = target + 1;
    let orders = [PlacementOrder::Length, PlacementOrder::Peak];
    let found =
        orders.iter().any(|&order| best.two_ended(&sorted(component, order), PileRule::Roomy));
    *work = best.work;
    found.then_some(best.offsets)
}

/// The lowest packing that is found around items that are piled up from the floor, which come with their offsets;
/// the first one within `target` ends the work.
pub(super) fn on_floor(component: &Component, target: u64, fixed: &[(u32, u64)]) -> Vec<u64> {
    let mut best = BestPacking::new(component, target, work(component), fixed);
    let orders = [
        PlacementOrder::Length,
        PlacementOrder::Peak,
        PlacementOrder::Area,
        PlacementOrder::Size,
        PlacementOrder::Contention,
    ];
    // Ends with the first that meets the target; the best so far is the answer either way.
    orders.iter().map(|&order| sorted(component, order)).any(|order| {
        [PileRule::Roomy, PileRule::Tidy].iter().any(|&side| best.two_ended(&order, side))
    });
    best.offsets
}

/// The best so far.
struct BestPacking<'a> {
    component: &'a Component,
    target: u64,
    /// Items whose offsets are given, lowest first.
    fixed: &'a [(u32, u64)],
    height: u64,
    offsets: Vec<u64>,
    /// Items that found no place below the ceiling, since this was cleared.
    over: Vec<u32>,
    /// What attempts may still cost.
    work: usize,
}

impl<'a> BestPacking<'a> {
    fn new(
        component: &'a Component,
        target: u64,
        work: usize,
        fixed: &'a [(u32, u64)],
    ) -> BestPacking<'a> {
        let (offsets, over) = (Vec::new(), Vec::new());
        BestPacking { component, target, fixed, height: u64::MAX, offsets, over, work }
    }

    /// All that [`BestPacking::two_ended`] can do, and items by size where that is likely to do better. True once the
    /// target is met.
    fn piles(&mut self) -> bool {
        let sides = [PileRule::Roomy, PileRule::Tidy];
        let first = [PlacementOrder::Length, PlacementOrder::Peak];
        let then = [
            PlacementOrder::Area,
            PlacementOrder::Contention,
            PlacementOrder::Start,
            PlacementOrder::End,
        ];
        let all = |best: &mut Self, orders: &[PlacementOrder]| {
            orders
                .iter()
                .map(|&order| sorted(best.component, order))
                .any(|order| sides.iter().any(|&side| best.two_ended(&order, side)))
        };
        all(self, &first)
            || self.gap_fit(&sorted(self.component, PlacementOrder::Sizes), GapRule::Lowest)
            || all(self, &then)
            || first.iter().any(|&order| {
                sides.iter().any(|&side| self.insist(sorted(self.component, order), side))
            })
    }

    /// Tries an order repeatedly, each time with those items first that found no place below the
    /// ceiling.
    fn insist(&mut self, mut order: Vec<u32>, side: PileRule) -> bool {
        for _ in 0..ATTEMPTS {
            if self.work == 0 {
                return false;
            }
            self.over.clear();
            if self.two_ended(&order, side) {
                return true;
            }
            let mut first = vec![false; self.component.len()];
            self.over.iter().for_each(|&i| first[i as usize] = true);
            sort::by_key(&mut order, |&i| !first[i as usize]);
        }
        false
    }

    /// Piles up from the floor and down from a ceiling at the bound. What fits between the piles no more
    /// goes into gaps, or over the ceiling. True once the target is met.
    fn two_ended(&mut self, order: &[u32], side: PileRule) -> bool {
        let component = self.component;
        if self.work == 0 {
            return false;
        }
        self.work = self.work.saturating_sub(PILE_WORK * order.len());
        let ceiling = component.bound / component.unit;
        let mut offsets = vec![0; component.len()];
        let mut floor = Skyline::new(&component.load);
        let mut hanging = Skyline::new(&component.load);
        let (mut placed, mut late) = (Vec::new(), Vec::new());
        let mut given = vec![false; component.len()];
        for &(i, offset) in self.fixed {
            let (size, span) = (component.size[i as usize], component.span[i as usize]);
            floor.set(span, offset + size);
            floor.take(span, size);
            hanging.take(span, size);
            offsets[i as usize] = offset;
            given[i as usize] = true;
            placed.push(i);
        }
        for &i in order.iter().filter(|&&i| !given[i as usize]) {
            let (size, span) = (component.size[i as usize], component.span[i as usize]);
            let (up, down) = (floor.top(span), hanging.top(span));
            if up.height + down.height + size > ceiling {
                late.push(i);
                continue;
            }
            // The most that any section needs, were it put there: under the ceiling wherever possible.
            let (below, above) = (up.height + down.both, down.height + up.both);
            let rising = match side {
                PileRule::Roomy if below != above => below < above,
                _ => up.waste <= down.waste,
            };
            offsets[i as usize] = if rising {
                floor.set(span, up.height + size);
                up.height
            } else {
                hanging.set(span, down.height + size);
                ceiling - down.height - size
            };
            floor.take(span, size);
            hanging.take(span, size);
            placed.push(i);
        }
        let mut gaps = Gaps::new(component);
        if !late.is_empty() {
            sort::by_key(&mut placed, |&i| offsets[i as usize]);
            placed.iter().for_each(|&i| gaps.insert(i, offsets[i as usize]));
        }
        self.fill(gaps, &late, GapRule::Tightest, offsets)
    }

    /// Places all items into gaps. True once the target is met.
    fn gap_fit(&mut self, order: &[u32], rule: GapRule) -> bool {
        if self.work == 0 {
            return false;
        }
        self.fill(Gaps::new(self.component), order, rule, vec![0; self.component.len()])
    }

    /// Places the rest into gaps, and keeps the result where it is the best. Gives up where it cannot
    /// become that, and on all but the first when the work is spent.
    fn fill(&mut self, mut gaps: Gaps, rest: &[u32], rule: GapRule, mut offsets: Vec<u64>) -> bool {
        let first = self.height == u64::MAX;
        let ceiling = self.component.bound / self.component.unit;
        for &i in rest {
            offsets[i as usize] = gaps.place(i, rule);
            let end = offsets[i as usize] + self.component.size[i as usize];
            if end > ceiling {
                self.over.push(i);
            }
            if !first && (end >= self.height || gaps.work > self.work) {
                self.work = self.work.saturating_sub(gaps.work);
                return false;
            }
        }
        self.work = self.work.saturating_sub(gaps.work);
        let height = self.component.height(&offsets);
        if first || height < self.height {
            (self.height, self.offsets) = (height, offsets);
        }
        self.height <= self.target
    }
}

fn sorted(component: &Component, order: PlacementOrder) -> Vec<u32> {
    let crowd = match order {
        PlacementOrder::Contention | PlacementOrder::Peak => crowding(component),
        _ => Vec::new(),
    };
    // Those with the largest come first. One sort for all orders: each that is compiled apart takes as much code as this file.
    let key = |i: usize| -> (u128, u128) {
        let (size, steps) = (u128::from(component.size[i]), u128::from(component.steps[i]));
        let (area, (from, to)) = (size * steps, component.span[i]);
        match order {
            PlacementOrder::Length => (steps, size),
            PlacementOrder::Area => (area, 0),
            PlacementOrder::Size => (size, steps),
            PlacementOrder::Sizes => (size, !(from as u128)),
            PlacementOrder::Start => (!(from as u128), area),
            PlacementOrder::End => (to as u128, area),
            PlacementOrder::Contention => (u128::from(crowd[i]), area),
            PlacementOrder::Peak => (u128::from(crowd[i]) << 64 | steps, size),
        }
    };
    let keys: Vec<_> = (0..component.len()).map(key).collect();
    let mut ids: Vec<u32> = (0..component.len() as u32).collect();
    sort::by_key(&mut ids, |&i| Reverse(keys[i as usize]));
    ids
}

/// The largest load among each item's sections.
fn crowding(component: &Component) -> Vec<u64> {
    // Highest load in runs of 2^k sections; two of them cover any span.
    let mut runs = vec![component.load.clone()];
    for k in 0.. {
        let (half, below) = (1usize << k, &runs[k]);
        if below.len() <= half {
            break;
        }
        runs.push((0..below.len() - half).map(|s| below[s].max(below[s + half])).collect());
    }
    component
        .span
        .iter()
        .map(|&(first, last)| {
            let k = (last - first).ilog2() as usize;
            runs[k][first as usize].max(runs[k][last as usize - (1 << k)])
        })
        .collect()
}

/// Which gap to take.
#[derive(Clone, Copy)]
enum GapRule {
    /// The smallest that is large enough.
    Tightest,
    /// The first from the bottom that is large enough.
    Lowest,
}

/// Blocks that the timeline is cut into.
const BLOCKS: usize = 128;
/// Placed items in a chunk, at most.
const CHUNK: usize = 512;

/// The placed items.
struct Gaps<'a> {
    component: &'a Component,
    /// All, by offset, in chunks: inserting into one long list would move half of it.
    chunks: Vec<Vec<PlacedItem>>,
    count: usize,
    /// Those that meet each block of sections, in no order.
    blocks: Vec<Vec<PlacedItem>>,
    /// Sections in a block.
    block: u32,
    /// Those that an item meets, while it is placed.
    met: Vec<PlacedItem>,
    work: usize,
}

#[derive(Clone, Copy)]
struct PlacedItem {
    offset: u64,
    end: u64,
    span: (u32, u32),
}

impl<'a> Gaps<'a> {
    fn new(component: &'a Component) -> Gaps<'a> {
        let block = component.load.len().div_ceil(BLOCKS).max(1);
        let blocks = vec![Vec::new(); component.load.len().div_ceil(block)];
        Gaps {
            component,
            chunks: vec![Vec::new()],
            count: 0,
            blocks,
            block: block as u32,
            met: Vec::new(),
            work: 0,
        }
    }

    fn blocks_of(&self, span: (u32, u32)) -> std::ops::Range<usize> {
        (span.0 / self.block) as usize..((span.1 - 1) / self.block) as usize + 1
    }

    fn insert(&mut self, i: u32, offset: u64) {
        let span = self.component.span[i as usize];
        let placed = PlacedItem { offset, end: offset + self.component.size[i as usize], span };
        for block in self.blocks_of(span) {
            self.blocks[block].push(placed);
        }
        let after =
            |chunk: &Vec<PlacedItem>| chunk.first().is_some_and(|first| first.offset <= offset);
        let at = self.chunks.partition_point(after).saturating_sub(1);
        let chunk = &mut self.chunks[at];
        chunk.insert(chunk.partition_point(|placed| placed.offset <= offset), placed);
        if chunk.len() > CHUNK {
            let rest = chunk.split_off(CHUNK / 2);
            self.chunks.insert(at + 1, rest);
        }
        self.count += 1;
    }

    /// Places an item into a gap, or on top of all that it meets.
    fn place(&mut self, i: u32, rule: GapRule) -> u64 {
        let (size, span) = (self.component.size[i as usize], self.component.span[i as usize]);
        let meets = |other: &&PlacedItem| other.span.0 < span.1 && span.0 < other.span.1;
        let blocks = self.blocks_of(span);
        let near: usize = self.blocks[blocks.clone()].iter().map(Vec::len).sum();
        // Looking through few blocks and sorting beats going through everything in order; for an
        // item that meets most others it does not.
        let offset = if near < self.count / 8 {
            self.work += 4 * near;
            self.met.clear();
            for block in blocks.clone() {
                // An item in several blocks counts in the first that both share.
                let first = |other: &&PlacedItem| {
                    block == blocks.start || (other.span.0 / self.block) as usize == block
                };
                self.met.extend(self.blocks[block].iter().filter(meets).filter(first));
            }
            self.met.sort_unstable_by_key(|placed| placed.offset);
            gap(self.met.iter(), size, rule)
        } else {
            self.work += self.count;
            gap(self.chunks.iter().flatten().filter(meets), size, rule)
        };
        self.insert(i, offset);
        offset
    }
}

/// Where an item goes among others that it meets, which come by offset.
fn gap<'p>(others: impl Iterator<Item = &'p PlacedItem>, size: u64, rule: GapRule) -> u64 {
    let (mut best, mut least) = (None, u64::MAX);
    let mut top = 0;
    for other in others {
        let gap = other.offset.saturating_sub(top);
        if gap >= size && gap < least {
            (best, least) = (Some(top), gap);
            if matches!(rule, GapRule::Lowest) {
                break;
            }
        }
        top = top.max(other.end);
    }
    best.unwrap_or(top)
}

//! Packings without a search: items are placed one by one in several orders, and the best result stays.
//!
//! Two ways of placing. [`two_ended`] piles items up from the floor and down from the ceiling, wherever less
//! is wasted: `n log n`, and exact where lifetimes nest like the activations of a training step, or pile
//! up towards its end like the gradients of its weights. [`gap_fit`] looks for the gap
//! that suits best among all placed items: better on small tangled instances, but quadratic, so it
//! runs within a fixed amount of work.

use std::cmp::Reverse;

use super::sections::Part;
use super::skyline::Skyline;

/// Placed items that [`gap_fit`] may look at in all its orders together: about a tenth of a second.
const GAP_WORK: usize = 60_000_000;

/// Orders to place in. Each starts with what is hard to place later.
#[derive(Clone, Copy)]
enum Order {
    Length,
    Area,
    Size,
    Contention,
    Start,
    End,
}

/// The lowest packing that the heuristics find, in units; the first one within `target` ends the work.
pub(super) fn best(part: &Part, target: u64) -> Vec<u64> {
    let mut best = Best { part, target, height: u64::MAX, offsets: Vec::new() };
    let ceiling = part.bound / part.unit;
    for order in [Order::Length, Order::Area, Order::Contention, Order::Start] {
        if best.keep(two_ended(part, &sorted(part, order), ceiling)) {
            return best.offsets;
        }
    }
    let each = part.len() * part.len() / 2;
    let mut work = 0;
    for order in
        [Order::Size, Order::Area, Order::Length, Order::Contention, Order::Start, Order::End]
    {
        for rule in [Rule::Tightest, Rule::Lowest] {
            work += each;
            if work > GAP_WORK || best.keep(gap_fit(part, &sorted(part, order), rule)) {
                return best.offsets;
            }
        }
    }
    best.offsets
}

struct Best<'a> {
    part: &'a Part,
    target: u64,
    height: u64,
    offsets: Vec<u64>,
}

impl Best<'_> {
    /// True once the target is met.
    fn keep(&mut self, offsets: Vec<u64>) -> bool {
        let height = self.part.height(&offsets);
        if height < self.height {
            self.height = height;
            self.offsets = offsets;
        }
        self.height <= self.target
    }
}

fn sorted(part: &Part, order: Order) -> Vec<u32> {
    let mut ids: Vec<u32> = (0..part.len() as u32).collect();
    let size = |i: u32| part.size[i as usize];
    let steps = |i: u32| part.steps[i as usize];
    let area = |i: u32| u128::from(size(i)) * u128::from(steps(i));
    let span = |i: u32| part.span[i as usize];
    match order {
        Order::Length => ids.sort_by_key(|&i| Reverse((steps(i), size(i)))),
        Order::Area => ids.sort_by_key(|&i| Reverse(area(i))),
        Order::Size => ids.sort_by_key(|&i| Reverse((size(i), steps(i)))),
        Order::Start => ids.sort_by_key(|&i| (span(i).0, Reverse(area(i)))),
        Order::End => ids.sort_by_key(|&i| (Reverse(span(i).1), Reverse(area(i)))),
        Order::Contention => {
            let crowd = crowding(part);
            ids.sort_by_key(|&i| Reverse((crowd[i as usize], area(i))));
        }
    }
    ids
}

/// The largest load among each item's sections.
fn crowding(part: &Part) -> Vec<u64> {
    // Highest load in runs of 2^k sections; two of them cover any span.
    let mut runs = vec![part.load.clone()];
    for k in 0.. {
        let (half, below) = (1usize << k, &runs[k]);
        if below.len() <= half {
            break;
        }
        runs.push((0..below.len() - half).map(|s| below[s].max(below[s + half])).collect());
    }
    part.span
        .iter()
        .map(|&(first, last)| {
            let k = (last - first).ilog2() as usize;
            runs[k][first as usize].max(runs[k][last as usize - (1 << k)])
        })
        .collect()
}

/// Piles up from the floor and down from the ceiling. What fits between the piles no more goes into
/// gaps, or over the ceiling.
fn two_ended(part: &Part, order: &[u32], ceiling: u64) -> Vec<u64> {
    let mut offsets = vec![0; part.len()];
    let mut floor = Skyline::new(part.load.len());
    let mut hanging = Skyline::new(part.load.len());
    let mut late = Vec::new();
    let mut placed = Vec::new();
    for &i in order {
        let (size, span) = (part.size[i as usize], part.span[i as usize]);
        let (up, down) = (floor.top(span), hanging.top(span));
        // None of the sums overflows: piles are made of different items, which add up to less than 2^64.
        if up.height + down.height + size > ceiling {
            late.push(i);
            continue;
        }
        offsets[i as usize] = if up.waste <= down.waste {
            floor.set(span, up.height + size);
            up.height
        } else {
            hanging.set(span, down.height + size);
            ceiling - down.height - size
        };
        placed.push(i);
    }
    if !late.is_empty() {
        let mut gaps = Gaps::of(part, &offsets, placed);
        for i in late {
            offsets[i as usize] = gaps.place(part, i, Rule::Tightest);
        }
    }
    offsets
}

fn gap_fit(part: &Part, order: &[u32], rule: Rule) -> Vec<u64> {
    let mut offsets = vec![0; part.len()];
    let mut gaps = Gaps::of(part, &offsets, Vec::new());
    for &i in order {
        offsets[i as usize] = gaps.place(part, i, rule);
    }
    offsets
}

/// Which gap to take.
#[derive(Clone, Copy)]
enum Rule {
    /// The smallest that is large enough.
    Tightest,
    /// The first from the bottom that is large enough.
    Lowest,
}

/// The placed items, by offset.
struct Gaps {
    placed: Vec<Placed>,
}

#[derive(Clone, Copy)]
struct Placed {
    offset: u64,
    end: u64,
    span: (u32, u32),
}

impl Gaps {
    fn of(part: &Part, offsets: &[u64], ids: Vec<u32>) -> Gaps {
        let placed = |i: u32| {
            let offset = offsets[i as usize];
            let end = offset + part.size[i as usize];
            Placed { offset, end, span: part.span[i as usize] }
        };
        let mut placed: Vec<Placed> = ids.into_iter().map(placed).collect();
        placed.sort_by_key(|placed| placed.offset);
        Gaps { placed }
    }

    /// Places an item into a gap, or on top of all that it meets.
    fn place(&mut self, part: &Part, i: u32, rule: Rule) -> u64 {
        let (size, span) = (part.size[i as usize], part.span[i as usize]);
        let (mut best, mut least) = (None, u64::MAX);
        let mut top = 0;
        for other in &self.placed {
            if other.span.0 >= span.1 || span.0 >= other.span.1 {
                continue;
            }
            let gap = other.offset.saturating_sub(top);
            if gap >= size && gap < least {
                (best, least) = (Some(top), gap);
                if matches!(rule, Rule::Lowest) {
                    break;
                }
            }
            top = top.max(other.end);
        }
        let offset = best.unwrap_or(top);
        let at = self.placed.partition_point(|placed| placed.offset <= offset);
        self.placed.insert(at, Placed { offset, end: offset + size, span });
        offset
    }
}

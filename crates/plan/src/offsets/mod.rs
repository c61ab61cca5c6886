//! Addresses in the arena: every buffer gets an offset so that no two that live together overlap,
//! and the arena is as small as can be found.
//!
//! The problem is known as dynamic storage allocation, and is NP-hard. Three steps, each only where the one before
//! did not reach the bound (the largest sum of live sizes): `greedy` places in several fixed orders and keeps the
//! best; `search` looks for a packing within a capacity, exactly, up to a number of nodes, first (`peak`) in the
//! crowded window alone and with items `joined` to blocks, then of all items; `improve` chooses the capacities to ask
//! it for. Connected components, parts of the timeline that share no buffer, are packed apart (`sections`).
//!
//! Invariants: a packing passes [`check`]; no byte of an arena is never taken (`settle`); the same items and effort
//! give the same packing, unless `stop` intervenes; every offset is a sum or difference of sizes, so sizes that are
//! multiples of a unit give offsets that are. That is why an item has no alignment of its own: sizes come rounded by
//! [`tonnage_core::Bytes::rounded`], which aligns every buffer.

mod check;
mod greedy;
mod improve;
mod joined;
mod peak;
mod search;
mod sections;
mod settle;
mod skyline;

pub use check::check;

use crate::sort;
use tonnage_core::Result;
use tonnage_core::error::bad_argument;

/// A buffer: alive from `lower` up to, not including, `upper`, with a size that is already rounded.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Item {
    /// The first step at which it is alive.
    pub lower: u32,
    /// The first step at which it is not alive any more.
    pub upper: u32,
    /// Its bytes.
    pub size: u64,
}

/// An offset for every item, in the order of the items.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Packing {
    /// Where each item starts.
    pub offsets: Vec<u64>,
    /// The end of the highest item: what the arena takes.
    pub arena: u64,
    /// The largest sum of sizes that live together. No arena is smaller.
    pub bound: u64,
    /// True where no smaller arena exists: it equals the bound, or the search went through all others.
    pub optimal: bool,
}

/// How far the exact search may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort {
    /// Decisions that the search may try, in all. A decision among hundreds of buffers counts for
    /// several, so that this bounds the time as well: some million a minute.
    pub nodes: u64,
    /// Which of many orders decisions are tried in. None is better than another on the whole, but on a hard instance one
    /// may be there in a second and another in an hour: with several threads each gets a number of its own. 0 begins
    /// with the orders that suit most instances.
    pub luck: u64,
}

impl Effort {
    /// No search: heuristics alone.
    pub const NONE: Effort = Effort { nodes: 0, luck: 0 };
    /// What planning a function takes: a fraction of a second.
    pub const PLAN: Effort = Effort { nodes: 20_000, luck: 0 };
    /// As long as it takes, or until `stop` says so.
    pub const UNLIMITED: Effort = Effort { nodes: u64::MAX, luck: 0 };
}

/// Packs the items into an arena as small as the effort allows.
///
/// `stop` is asked now and then during the search; where it answers true, the best packing so far
/// is returned. It is where a caller brings a clock or a cancel button: this crate has neither.
///
/// ```
/// use tonnage_plan::offsets::{Effort, Item, check, pack};
/// let items = [
///     Item { lower: 0, upper: 2, size: 64 },
///     Item { lower: 1, upper: 3, size: 128 },
///     Item { lower: 2, upper: 4, size: 64 },
/// ];
/// let packing = pack(&items, Effort::PLAN, &mut || false)?;
/// assert_eq!((packing.arena, packing.bound), (192, 192));
/// check(&items, &packing)?;
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// An item that ends before it starts, or sizes that add up to 2^63 bytes and more.
pub fn pack(items: &[Item], effort: Effort, stop: &mut dyn FnMut() -> bool) -> Result<Packing> {
    let components = components(items)?;
    let bound = components.iter().map(|component| component.bound).max().unwrap_or(0);
    let mut budget = improve::EffortLeft { effort, stop };
    let mut offsets = vec![0; items.len()];
    let mut arena = bound;
    let mut optimal = true;
    // The component with the largest bound comes first: the others only have to stay below its arena.
    for component in &components {
        let (packed, proved) = improve::smallest(component, arena, &mut budget);
        optimal &= proved;
        arena = arena.max(store(component, packed, &mut offsets));
    }
    finish(items, Packing { offsets, arena, bound, optimal: optimal || arena == bound })
}

/// Packs the items into at most `capacity` bytes, or answers `None` where no such packing was found.
///
/// There is none for certain where [`bound`] is over the capacity; otherwise the search proved it,
/// ran out of effort or was stopped.
///
/// ```
/// use tonnage_plan::offsets::{Effort, Item, pack_within};
/// let items = [Item { lower: 0, upper: 2, size: 64 }, Item { lower: 1, upper: 3, size: 64 }];
/// assert!(pack_within(&items, 128, Effort::PLAN, &mut || false)?.is_some());
/// assert!(pack_within(&items, 127, Effort::PLAN, &mut || false)?.is_none());
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// As [`pack`].
pub fn pack_within(
    items: &[Item],
    capacity: u64,
    effort: Effort,
    stop: &mut dyn FnMut() -> bool,
) -> Result<Option<Packing>> {
    let components = components(items)?;
    let bound = components.iter().map(|component| component.bound).max().unwrap_or(0);
    if bound > capacity {
        return Ok(None);
    }
    let mut budget = improve::EffortLeft { effort, stop };
    let mut offsets = vec![0; items.len()];
    let mut arena = 0;
    for component in &components {
        let Some(packed) = improve::within(component, capacity, &mut budget) else {
            return Ok(None);
        };
        arena = arena.max(component.store(&packed, &mut offsets));
    }
    finish(items, Packing { offsets, arena, bound, optimal: arena == bound }).map(Some)
}

/// Packs the items with some of them piled up from the floor in the order given: sizes of those that are multiples of a
/// page put each on one. Those live together; the others are fitted around them by heuristics alone.
///
/// ```
/// use tonnage_plan::offsets::{Item, pack_on_floor};
/// let items = [Item { lower: 0, upper: 2, size: 64 }, Item { lower: 1, upper: 3, size: 4096 }];
/// let packing = pack_on_floor(&items, &[1])?;
/// assert_eq!((packing.offsets[1], packing.arena), (0, 4160));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// # Errors
/// As [`pack`].
pub fn pack_on_floor(items: &[Item], floor: &[usize]) -> Result<Packing> {
    let components = components(items)?;
    let bound = components.iter().map(|component| component.bound).max().unwrap_or(0);
    let mut offsets = vec![0; items.len()];
    let mut arena = 0;
    for component in &components {
        let mut height = 0;
        let mut fixed = Vec::new();
        for i in floor.iter().filter_map(|item| component.find(*item)) {
            fixed.push((i, height));
            height += component.size[i as usize];
        }
        let packed = greedy::on_floor(component, bound / component.unit, &fixed);
        arena = arena.max(store(component, packed, &mut offsets));
    }
    finish(items, Packing { offsets, arena, bound, optimal: arena == bound })
}

/// Writes the offsets of a component; the bytes that it takes. Where they are more than the bound, some of them might never be
/// taken otherwise.
fn store(component: &sections::Component, packed: Vec<u64>, offsets: &mut [u64]) -> u64 {
    match component.height(&packed) * component.unit > component.bound {
        true => component.store(&settle::settled(component, &packed), offsets),
        false => component.store(&packed, offsets),
    }
}

/// The largest sum of sizes that live together: no arena is smaller.
///
/// # Errors
/// As [`pack`].
pub fn bound(items: &[Item]) -> Result<u64> {
    Ok(components(items)?.iter().map(|component| component.bound).max().unwrap_or(0))
}

/// The connected components of the timeline, the one with the largest bound first.
fn components(items: &[Item]) -> Result<Vec<sections::Component>> {
    let mut total = 0u64;
    for (i, item) in items.iter().enumerate() {
        if item.upper < item.lower {
            return Err(bad_argument(
                "pack",
                format!("item {i} ends at {} before it starts at {}", item.upper, item.lower),
                "a lifetime is [lower, upper)",
            ));
        }
        // No offset exceeds twice the sum of all sizes (the bound, and others above it), so this one
        // check keeps all later sums in range.
        total = total.saturating_add(item.size);
        if total > u64::MAX / 2 {
            let what = "the sizes add up to 2^63 bytes and more";
            return Err(bad_argument("pack", what, "use smaller sizes"));
        }
    }
    let mut components = sections::split(items);
    sort::by_key(&mut components, |component| std::cmp::Reverse(component.bound));
    Ok(components)
}

fn finish(items: &[Item], packing: Packing) -> Result<Packing> {
    if cfg!(debug_assertions) {
        check(items, &packing)?;
    }
    Ok(packing)
}

//! The proof that a packing is one: no two live items overlap, all are inside the arena.
//!
//! Written apart from everything that packs, and as plain as it can be, so that it cannot share a mistake.

use std::collections::BTreeMap;

use tonnage_core::Result;
use tonnage_core::error::bad_argument;

use super::{Item, Packing};

/// Errs where two items that live together overlap, or the arena's figure is not the highest end.
///
/// ```
/// use tonnage_plan::offsets::{Item, Packing, check};
/// let items = [Item { lower: 0, upper: 2, size: 64 }, Item { lower: 1, upper: 3, size: 64 }];
/// let wrong = Packing { offsets: vec![0, 32], arena: 128, bound: 128, optimal: true };
/// assert!(check(&items, &wrong).is_err());
/// ```
///
/// # Errors
/// Names the two items that overlap, or the figure that is wrong.
pub fn check(items: &[Item], packing: &Packing) -> Result<()> {
    let wrong = |what: String| Err(bad_argument("check", what, "this packing must not be used"));
    if packing.offsets.len() != items.len() {
        return wrong(format!("{} offsets for {} items", packing.offsets.len(), items.len()));
    }
    // An item that is never alive takes no bytes, whatever its size.
    let real = |i: &usize| items[*i].size > 0 && items[*i].lower < items[*i].upper;
    let mut highest = 0;
    for i in (0..items.len()).filter(real) {
        let Some(end) = packing.offsets[i].checked_add(items[i].size) else {
            return wrong(format!("item {i} ends beyond 2^64"));
        };
        highest = highest.max(end);
    }
    if highest != packing.arena {
        return wrong(format!("the highest item ends at {highest}, not {}", packing.arena));
    }
    if packing.arena < packing.bound {
        return wrong(format!("arena {} under the bound {}", packing.arena, packing.bound));
    }
    // Through time, with what is alive sorted by offset: only neighbours can overlap first.
    let mut events: Vec<(u32, bool, usize)> = (0..items.len())
        .filter(real)
        .flat_map(|i| [(items[i].lower, true, i), (items[i].upper, false, i)])
        .collect();
    events.sort_unstable();
    let mut live: BTreeMap<u64, usize> = BTreeMap::new();
    for (_, starts, i) in events {
        let offset = packing.offsets[i];
        if !starts {
            live.remove(&offset);
            continue;
        }
        let below = live.range(..=offset).next_back().map(|(_, &j)| j);
        let above = live.range(offset..).next().map(|(_, &j)| j);
        for j in below.into_iter().chain(above) {
            let start = packing.offsets[j];
            if start < offset + items[i].size && offset < start + items[j].size {
                return wrong(format!("items {i} and {j} live together and overlap"));
            }
        }
        live.insert(offset, i);
    }
    Ok(())
}

//! The timeline cut into sections, and into connected components, which share no item.
//!
//! A section is a largest set of items that are alive together (a maximal clique of the interval graph). Two
//! items conflict exactly where they share a section, and each spans a run of them, so all that packs
//! sees sections alone, never steps. There are at most as many as items.

use super::Item;
use crate::sort;

/// Items that no item outside of them meets, with times as sections counted from zero.
pub(super) struct Component {
    /// Which items of the caller's these are.
    ids: Vec<u32>,
    /// The sizes, divided by `unit`.
    pub(super) size: Vec<u64>,
    /// Each item's run of sections, `[first, last)`.
    pub(super) span: Vec<(u32, u32)>,
    /// Each item's lifetime in steps.
    pub(super) steps: Vec<u32>,
    /// The sum of sizes in each section, divided by `unit`.
    pub(super) load: Vec<u64>,
    /// The greatest common divisor of the sizes: figures inside a component count in it.
    pub(super) unit: u64,
    /// The largest sum of live sizes, in bytes.
    pub(super) bound: u64,
}

impl Component {
    /// How many items.
    pub(super) fn len(&self) -> usize {
        self.ids.len()
    }

    /// Where one of the caller's items is here, if it is.
    pub(super) fn find(&self, item: usize) -> Option<u32> {
        self.ids.binary_search(&u32::try_from(item).ok()?).ok().map(|at| at as u32)
    }

    /// The end of the highest item, in units.
    pub(super) fn height(&self, offsets: &[u64]) -> u64 {
        offsets.iter().zip(&self.size).map(|(offset, size)| offset + size).max().unwrap_or(0)
    }

    /// Writes offsets in units into the caller's in bytes; returns the arena's bytes.
    pub(super) fn store(&self, offsets: &[u64], out: &mut [u64]) -> u64 {
        for (&id, &offset) in self.ids.iter().zip(offsets) {
            out[id as usize] = offset * self.unit;
        }
        self.height(offsets) * self.unit
    }

    /// The items of each section.
    pub(super) fn members(&self) -> Vec<Vec<u32>> {
        let mut members = vec![Vec::new(); self.load.len()];
        for (i, &(first, last)) in self.span.iter().enumerate() {
            for section in &mut members[first as usize..last as usize] {
                section.push(i as u32);
            }
        }
        members
    }
}

/// Splits into components, in the order of time. Items without size or lifetime are in none: any offset does,
/// and they keep zero.
pub(super) fn split(items: &[Item]) -> Vec<Component> {
    let real =
        |&i: &u32| items[i as usize].size > 0 && items[i as usize].lower < items[i as usize].upper;
    let mut starts: Vec<u32> = (0..items.len() as u32).filter(real).collect();
    let mut ends = starts.clone();
    sort::by_key(&mut starts, |&i| items[i as usize].lower);
    sort::by_key(&mut ends, |&i| items[i as usize].upper);
    let mut span = vec![(0, 0); items.len()];
    let mut components = Vec::new();
    // A section ends with the first end after a start; ends at the same step come before starts.
    let (mut section, mut grown, mut live) = (0u32, false, 0usize);
    let (mut begin, mut next) = (0, 0);
    for &ending in &ends {
        while let Some(&i) = starts.get(next) {
            if items[i as usize].lower >= items[ending as usize].upper {
                break;
            }
            span[i as usize].0 = section;
            (grown, live, next) = (true, live + 1, next + 1);
        }
        section += u32::from(std::mem::take(&mut grown));
        span[ending as usize].1 = section;
        live -= 1;
        if live == 0 {
            components.push(component(items, &span, &starts[begin..next], section));
            (begin, section) = (next, 0);
        }
    }
    components
}

fn component(items: &[Item], span: &[(u32, u32)], ids: &[u32], sections: u32) -> Component {
    let mut ids = ids.to_vec();
    // The caller's order, so that ties are broken by it.
    ids.sort_unstable();
    let of = |&i: &u32| items[i as usize];
    let unit = ids.iter().map(|i| of(i).size).fold(0, gcd).max(1);
    let size: Vec<u64> = ids.iter().map(|i| of(i).size / unit).collect();
    let steps = ids.iter().map(|i| of(i).upper - of(i).lower).collect();
    let span: Vec<(u32, u32)> = ids.iter().map(|&i| span[i as usize]).collect();
    // Sums of what starts and ends, wrapping in between: the running sum is exact at each section.
    let mut load = vec![0u64; sections as usize + 1];
    for (&size, &(first, last)) in size.iter().zip(&span) {
        load[first as usize] = load[first as usize].wrapping_add(size);
        load[last as usize] = load[last as usize].wrapping_sub(size);
    }
    let mut sum = 0u64;
    for load in &mut load {
        sum = sum.wrapping_add(*load);
        *load = sum;
    }
    load.pop();
    let bound = load.iter().max().copied().unwrap_or(0) * unit;
    Component { ids, size, span, steps, load, unit, bound }
}

fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    fn item(lower: u32, upper: u32, size: u64) -> Item {
        Item { lower, upper, size }
    }

    #[test]
    fn sections_are_the_largest_sets_that_live_together() {
        let items = [item(0, 4, 6), item(1, 3, 4), item(3, 6, 2), item(2, 5, 0), item(6, 9, 8)];
        let components = split(&items);
        assert_eq!(components.len(), 2);
        assert_eq!(components[0].ids, [0, 1, 2]);
        assert_eq!(components[0].span, [(0, 2), (0, 1), (1, 2)]);
        assert_eq!((components[0].unit, components[0].bound), (2, 10));
        assert_eq!(components[0].load, [5, 4]);
        assert_eq!(components[0].members(), [vec![0, 1], vec![0, 2]]);
        assert_eq!(components[1].ids, [4]);
    }
}

//! Sorting of what is short or sorted once: by one loop for all types and orders. A sort of the standard library is compiled
//! for each of them, and those of the planner were a fifth of its code.

use std::cmp::Ordering;

/// Sorts; what is equal stays in its order.
pub fn by<T>(all: &mut [T], mut compare: impl FnMut(&T, &T) -> Ordering) {
    let mut from = order(all.len(), &mut |a, b| compare(&all[a], &all[b]));
    // Along each cycle of places: the element that belongs to a place is at the next one.
    for first in 0..all.len() {
        let mut at = first;
        while from[at] != first {
            let next = std::mem::replace(&mut from[at], at);
            all.swap(at, next);
            at = next;
        }
        from[at] = at;
    }
}

/// Sorts by a key; what is equal stays in its order.
pub fn by_key<T, K: Ord>(all: &mut [T], mut key: impl FnMut(&T) -> K) {
    by(all, |a, b| key(a).cmp(&key(b)));
}

/// Which element belongs to each place.
fn order(count: usize, compare: &mut dyn FnMut(usize, usize) -> Ordering) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|a, b| compare(*a, *b));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_sorts_as_the_standard_library_does() {
        let mut word = 7u64;
        for count in 0..200 {
            let mut draw = || {
                word = word.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (word >> 33) % (1 + count as u64 / 2)
            };
            let drawn: Vec<(u64, usize)> = (0..count).map(|i| (draw(), i)).collect();
            let (mut ours, mut theirs) = (drawn.clone(), drawn);
            by_key(&mut ours, |one| one.0);
            theirs.sort_by_key(|one| one.0);
            assert_eq!(ours, theirs);
        }
    }
}

//! Packings are valid, as small as can be, and the same every time.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/cut.rs"]
mod cut;

use cut::Numbers;
use proptest::prelude::*;
use tonnage_plan::offsets::{
    Effort, Item, Packing, bound, check, pack, pack_on_floor, pack_within,
};

fn item(lower: u32, upper: u32, size: u64) -> Item {
    Item { lower, upper, size }
}

fn never() -> impl FnMut() -> bool {
    || false
}

/// Packs, and checks the packing against every pair of items.
fn packed(items: &[Item], effort: Effort) -> Packing {
    let packing = pack(items, effort, &mut never()).unwrap();
    check(items, &packing).unwrap();
    assert_eq!(conflict(items, &packing.offsets), None);
    packing
}

/// Two items that live together and overlap, by trying all pairs.
fn conflict(items: &[Item], offsets: &[u64]) -> Option<(usize, usize)> {
    let meet = |a: u64, b: u64, c: u64, d: u64| a.max(c) < b.min(d);
    let pairs = (0..items.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
    pairs.into_iter().find(|&(i, j)| {
        let (a, b) = (items[i], items[j]);
        meet(a.lower.into(), a.upper.into(), b.lower.into(), b.upper.into())
            && meet(offsets[i], offsets[i] + a.size, offsets[j], offsets[j] + b.size)
    })
}

/// The smallest arena, by dropping the items in every order: one of them gives it.
fn brute_force(items: &[Item]) -> u64 {
    fn drop_next(items: &[Item], offsets: &mut [Option<u64>], arena: u64, best: &mut u64) {
        if arena >= *best {
            return;
        }
        let open: Vec<usize> = (0..items.len()).filter(|&i| offsets[i].is_none()).collect();
        if open.is_empty() {
            *best = arena;
        }
        for i in open {
            let a = items[i];
            let below = (0..items.len())
                .filter(|&j| items[j].lower.max(a.lower) < items[j].upper.min(a.upper));
            let rest = below.filter_map(|j| Some(offsets[j]? + items[j].size)).max().unwrap_or(0);
            offsets[i] = Some(rest);
            drop_next(items, offsets, arena.max(rest + a.size), best);
            offsets[i] = None;
        }
    }
    let mut best = u64::MAX;
    drop_next(items, &mut vec![None; items.len()], 0, &mut best);
    best
}

/// A rectangle of that height, cut into items: the optimum is the height.
fn cut(items: usize, steps: u32, height: u64, seed: u64) -> Vec<Item> {
    cut::cut(items, steps, height, false, seed)
}

/// A training step: activations that nest, and temporaries in the forward and the backward pass.
fn training(layers: u32, seed: u64) -> Vec<Item> {
    let mut numbers = Numbers(seed);
    let mut items = Vec::new();
    for layer in 0..layers {
        let back = 4 * layers - 2 * layer - 2;
        let activation = 64 * (1 + numbers.below(4000));
        items.push(item(2 * layer, back + 2, activation));
        items.push(item(2 * layer, 2 * layer + 1, 64 * (1 + numbers.below(2000))));
        items.push(item(back, back + 3, activation));
        items.push(item(back + 1, back + 2, 64 * (1 + numbers.below(2000))));
    }
    items
}

#[test]
fn nothing_takes_nothing() {
    let none = packed(&[], Effort::PLAN);
    assert_eq!((none.arena, none.bound, none.optimal), (0, 0, true));
    let ghosts = [item(0, 5, 0), item(3, 3, 1000), item(7, 7, 0)];
    assert_eq!(packed(&ghosts, Effort::PLAN).arena, 0);
    let one = packed(&[item(4, 9, 64), item(2, 2, 999)], Effort::PLAN);
    assert_eq!((one.arena, one.offsets), (64, vec![0, 0]));
}

#[test]
fn a_lifetime_ends_before_the_step_it_names() {
    assert_eq!(packed(&[item(0, 1, 8), item(1, 2, 8)], Effort::PLAN).arena, 8);
    assert_eq!(packed(&[item(0, 2, 8), item(1, 2, 8)], Effort::PLAN).arena, 16);
}

#[test]
fn sizes_beyond_all_memory_are_an_error() {
    let error = pack(&[item(0, 1, u64::MAX), item(0, 1, 1)], Effort::PLAN, &mut never());
    assert!(error.unwrap_err().to_string().contains("2^63"));
    let large = u64::MAX / 4;
    assert_eq!(packed(&[item(0, 2, large), item(1, 3, large)], Effort::PLAN).arena, 2 * large);
}

#[test]
fn a_lifetime_that_ends_before_it_starts_is_an_error() {
    let error = pack_within(&[item(0, 1, 8), item(5, 4, 8)], 8, Effort::PLAN, &mut never());
    assert!(error.unwrap_err().to_string().contains("item 1 ends at 4 before it starts at 5"));
}

#[test]
fn check_finds_every_kind_of_wrong_packing() {
    let items = [item(0, 2, 8), item(1, 3, 8), item(2, 4, 8)];
    let wrong = |offsets: &[u64], arena: u64| {
        check(&items, &Packing { offsets: offsets.to_vec(), arena, bound: 16, optimal: false })
            .is_err()
    };
    assert!(!wrong(&[0, 8, 0], 16));
    assert!(wrong(&[0, 7, 0], 16), "first two overlap");
    assert!(wrong(&[0, 8, 8], 16), "last two share their offset");
    assert!(wrong(&[0, 8, 0], 24), "nothing ends there");
    assert!(wrong(&[0, 12, 0], 16), "one leaves the arena");
    assert!(wrong(&[0, 8], 16), "an offset is missing");
    assert!(wrong(&[0, u64::MAX, 0], 16), "beyond all addresses");
}

#[test]
fn training_steps_take_exactly_the_bound() {
    for (layers, seed) in [(1, 0), (5, 1), (50, 2), (50, 3), (500, 4), (5000, 5)] {
        let items = training(layers, seed);
        let packing = pack(&items, Effort::NONE, &mut never()).unwrap();
        check(&items, &packing).unwrap();
        assert_eq!(packing.arena, packing.bound, "{layers} layers");
    }
}

#[test]
fn hard_instances_reach_their_known_optimum() {
    for (count, seed) in [(60, 1), (100, 2), (150, 3), (200, 4), (300, 5)] {
        let items = cut(count, 1000, 1 << 20, seed);
        let packing = packed(&items, Effort { nodes: 200_000, luck: 0 });
        assert_eq!((packing.arena, packing.optimal), (1 << 20, true), "{count} items");
    }
}

#[test]
fn hard_instances_with_room_to_spare_reach_it_too() {
    for seed in 1..5 {
        let mut numbers = Numbers(seed);
        let mut items = cut(120, 1000, 1 << 20, seed);
        // Whatever is left out, the rest fits into the height.
        items.retain(|_| numbers.below(10) > 0);
        let found = pack_within(&items, 1 << 20, Effort { nodes: 200_000, luck: 0 }, &mut never());
        assert!(found.unwrap().is_some(), "seed {seed}");
    }
}

#[test]
fn the_optimum_above_the_bound_is_proved() {
    // Every other pair of the five meets: a cycle of lifetimes cannot be, but these come near.
    let items =
        [item(0, 2, 2), item(1, 4, 1), item(3, 6, 2), item(5, 7, 1), item(1, 3, 1), item(4, 6, 1)];
    let packing = packed(&items, Effort::PLAN);
    assert_eq!(packing.arena, brute_force(&items));
    assert!(packing.optimal);
}

#[test]
fn the_search_beats_the_heuristics() {
    let items = cut(150, 1000, 1 << 20, 3);
    let (plain, searched) =
        (packed(&items, Effort::NONE), packed(&items, Effort { nodes: 200_000, luck: 0 }));
    assert!(plain.arena > searched.arena);
    assert!(!plain.optimal);
}

#[test]
fn stopping_keeps_what_was_found() {
    let items = cut(200, 60, 1024, 9);
    let mut asked = 0;
    let mut stop = || {
        asked += 1;
        asked > 3
    };
    let packing = pack(&items, Effort::UNLIMITED, &mut stop).unwrap();
    check(&items, &packing).unwrap();
    assert!(pack_within(&items, 1024, Effort::UNLIMITED, &mut || true).unwrap().is_none());
}

/// Bytes from 0 on that items take at any time.
fn taken(items: &[Item], packing: &Packing) -> u64 {
    let mut ranges: Vec<(u64, u64)> =
        packing.offsets.iter().zip(items).map(|(at, item)| (*at, at + item.size)).collect();
    ranges.sort_unstable();
    ranges.iter().fold(0, |end, (from, to)| if *from <= end { end.max(*to) } else { end })
}

#[test]
fn no_byte_of_an_arena_is_never_taken() {
    let mut gaps = 0;
    for seed in 0..2000 {
        let mut numbers = Numbers(seed);
        let mut items: Vec<Item> = Vec::new();
        for _ in 0..12 {
            let (from, steps) = (numbers.below(10) as u32, 1 + numbers.below(5) as u32);
            items.push(item(from, from + steps, 64 * (1 + numbers.below(30))));
        }
        let packing = packed(&items, Effort::NONE);
        assert_eq!(taken(&items, &packing), packing.arena, "seed {seed}");
        gaps += u64::from(packing.arena > packing.bound);
        // Results live to the end, beside all the rest.
        let mut numbers = Numbers(seed);
        let results: Vec<usize> = (0..3).map(|k| items.len() + k).collect();
        items.extend((0..3).map(|_| item(numbers.below(10) as u32, 16, 4096)));
        let packing = pack_on_floor(&items, &results).unwrap();
        check(&items, &packing).unwrap();
        assert!(results.iter().all(|i| packing.offsets[*i].is_multiple_of(4096)), "seed {seed}");
        assert_eq!(taken(&items, &packing), packing.arena, "seed {seed}");
        gaps += u64::from(packing.arena > packing.bound);
    }
    assert!(gaps > 50, "{gaps}: heuristics alone leave gaps, which are what this is about");
}

#[test]
fn the_same_items_give_the_same_packing() {
    let items = cut(200, 60, 1024, 7);
    assert_eq!(packed(&items, Effort::PLAN), packed(&items, Effort::PLAN));
}

#[test]
fn parts_that_never_meet_share_the_arena() {
    let far = |step: u32| {
        cut(40, 50, 4096, 11).into_iter().map(move |i| item(i.lower + step, i.upper + step, i.size))
    };
    let items: Vec<Item> = (0..5).flat_map(|k| far(50 * k)).collect();
    assert_eq!(packed(&items, Effort::PLAN).arena, 4096);
}

fn some_items(count: usize, steps: u32, size: u64) -> impl Strategy<Value = Vec<Item>> {
    let one = (0..steps, 0..steps, 0..size)
        .prop_map(|(a, b, size)| item(a.min(b), a.max(b) + u32::from(size % 7 > 0), size));
    prop::collection::vec(one, 0..count)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn small_instances_are_solved_to_the_optimum(items in some_items(8, 7, 9)) {
        let packing = packed(&items, Effort { nodes: 100_000, luck: 0 });
        prop_assert!(packing.optimal);
        let real: Vec<Item> = items.iter().copied().filter(|i| i.lower < i.upper && i.size > 0).collect();
        let best = if real.is_empty() { 0 } else { brute_force(&real) };
        prop_assert_eq!(packing.arena, best);
        let within = |capacity| pack_within(&items, capacity, Effort { nodes: 100_000, luck: 0 }, &mut never()).unwrap();
        prop_assert!(within(best).is_some_and(|packing| packing.arena == best));
        prop_assert!(best == 0 || within(best - 1).is_none());
    }

    #[test]
    fn all_instances_are_packed_validly(items in some_items(120, 200, 500)) {
        for effort in [Effort::NONE, Effort { nodes: 300, luck: 0 }] {
            let packing = packed(&items, effort);
            prop_assert!(packing.arena >= packing.bound);
            prop_assert_eq!(packing.bound, bound(&items).unwrap());
            let live = |t: u32| items.iter().filter(|i| i.lower <= t && t < i.upper).map(|i| i.size).sum::<u64>();
            prop_assert_eq!(packing.bound, (0..201).map(live).max().unwrap());
        }
    }

    #[test]
    fn rounded_sizes_give_aligned_offsets(items in some_items(60, 40, 90)) {
        let items: Vec<Item> = items.iter().map(|i| item(i.lower, i.upper, 64 * i.size)).collect();
        let packing = packed(&items, Effort { nodes: 300, luck: 0 });
        prop_assert!(packing.offsets.iter().all(|offset| offset % 64 == 0));
    }
}

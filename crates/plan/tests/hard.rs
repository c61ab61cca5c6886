//! Hard instances of some hundred buffers, with nothing to waste, are packed to their known optimum.
//!
//! With `TONNAGE_SOAK` set there are many more of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/cut.rs"]
mod cut;

use cut::{Numbers, cut};
use tonnage_plan::offsets::{Effort, Item, check, pack, pack_within};

/// Seconds, and in the slowest cases under a minute.
const EFFORT: Effort = Effort { nodes: 3_000_000, luck: 0 };

/// Steps and bytes of the rectangle, pieces, whether some cuts are wheels, and from which seed on.
type Case = (u32, u64, usize, bool, u64);

fn solved((steps, height, count, wheels, seed): Case) {
    let items = cut(count, steps, height, wheels, seed);
    let packing = pack(&items, EFFORT, &mut || false).unwrap();
    check(&items, &packing).unwrap();
    let what = format!("{steps} x {height} in {count}, wheels {wheels}, seed {seed}");
    assert_eq!((packing.arena, packing.optimal), (height, true), "{what}");
}

#[test]
fn soak_instances_without_a_gap_are_solved_to_the_optimum() {
    let slice: [Case; 10] = [
        (1000, 1 << 20, 100, false, 1),
        (1000, 1 << 20, 200, true, 2),
        (1000, 1 << 20, 300, false, 3),
        (1000, 1 << 20, 500, true, 4),
        (300, 300, 200, false, 5),
        (300, 300, 200, true, 6),
        (100, 100, 200, false, 7),
        (60, 1024, 100, false, 8),
        (60, 1024, 100, true, 9),
        (24, 4096, 100, false, 10),
    ];
    slice.into_iter().for_each(solved);
    if std::env::var_os("TONNAGE_SOAK").is_some() {
        for (seed, wheels) in (20..30).flat_map(|seed| [(seed, false), (seed, true)]) {
            for count in [100, 200, 300, 500] {
                solved((1000, 1 << 20, count, wheels, seed));
            }
            solved((300, 300, 200, wheels, seed));
            solved((100, 100, 200, wheels, seed));
            solved((60, 1024, 100, wheels, seed));
        }
    }
}

#[test]
fn what_is_left_of_an_instance_fits_where_the_whole_did() {
    for seed in 1..5 {
        let mut numbers = Numbers(seed);
        let mut items = cut(200, 1000, 1 << 20, seed % 2 == 0, seed);
        items.retain(|_| numbers.below(10) > 0);
        let found = pack_within(&items, 1 << 20, EFFORT, &mut || false).unwrap();
        check(&items, &found.unwrap()).unwrap();
    }
}

/// A cut rectangle of which that many items in ten are then alive for less long, or smaller, than the piece they were:
/// buffers that contend for some of the steps only. All that is alive at the middle step stays so at its full size, so the
/// optimum is the height still.
fn loosened(count: usize, steps: u32, height: u64, in_ten: u64, seed: u64) -> Vec<Item> {
    let mut numbers = Numbers(seed);
    let middle = steps / 2;
    let mut items = cut(count, steps, height, seed.is_multiple_of(2), seed);
    for item in &mut items {
        if numbers.below(10) >= in_ten {
            continue;
        }
        let crowded = item.lower <= middle && middle < item.upper;
        let less = numbers.below(u64::from(item.upper - item.lower).div_ceil(2)) as u32;
        if numbers.below(2) == 0 {
            let latest = if crowded { middle } else { item.upper - 1 };
            item.lower = (item.lower + less).min(latest);
        } else {
            let earliest = if crowded { middle } else { item.lower };
            item.upper = (item.upper - less).max(earliest + 1);
        }
        if !crowded {
            item.size -= numbers.below(item.size.div_ceil(4));
        }
    }
    items
}

#[test]
fn soak_buffers_that_contend_for_some_steps_only_take_the_bound() {
    let check_one = |count, in_ten, seed| {
        let items = loosened(count, 1000, 1 << 20, in_ten, seed);
        let packing = pack(&items, EFFORT, &mut || false).unwrap();
        check(&items, &packing).unwrap();
        let what = format!("{count} items, {in_ten} in ten loosened, seed {seed}");
        assert_eq!((packing.arena, packing.optimal), (1 << 20, true), "{what}");
    };
    for (in_ten, seed) in [(1, 1), (1, 2), (3, 3), (3, 6), (6, 5), (6, 6)] {
        check_one(100, in_ten, seed);
    }
    if std::env::var_os("TONNAGE_SOAK").is_some() {
        for (in_ten, seed) in (1..11).flat_map(|seed| [(1, seed), (3, seed), (6, seed)]) {
            check_one(100, in_ten, seed);
        }
    }
}

//! Hard instances of some hundred buffers, with nothing to waste, are packed to their known optimum.
//!
//! With `TONNAGE_SOAK` set there are many more of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

#[path = "common/cut.rs"]
mod cut;

use cut::{Numbers, cut};
use tonnage_plan::offsets::{Effort, check, pack, pack_within};

/// Seconds, and in the slowest cases under a minute.
const EFFORT: Effort = Effort { nodes: 3_000_000 };

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

//! Keys that are made from a key draw numbers that have nothing to do with each other.

use std::collections::HashMap;

use tonnage::{DType, RandomKey};

const SEEDS: u64 = 300;
const EACH: u64 = 24;

/// All keys that a program may make from a seed in one step or two, with what they are.
fn derived(seed: u64) -> Vec<(String, RandomKey)> {
    let key = RandomKey::new(seed);
    let mut all = vec![(format!("seed {seed}"), key)];
    let named = |what: String| move |(i, key): (usize, RandomKey)| (format!("{what} {i}"), key);
    all.extend(key.split_into(EACH as usize).enumerate().map(named(format!("split of {seed},"))));
    for i in 0..EACH {
        let own = key.fold_in(i);
        all.push((format!("fold_in of {seed}, {i}"), own));
        all.push((format!("numbers {seed}, {i}"), RandomKey::of(&[seed as i64, i as i64])));
        let three = RandomKey::of(&[seed as i64, i as i64, 0]);
        all.push((format!("numbers {seed}, {i}, 0"), three));
        let what = format!("split of fold_in of {seed}, {i},");
        all.extend(own.split().into_iter().enumerate().map(named(what)));
    }
    all.push((format!("number {seed}"), RandomKey::of(&[seed as i64])));
    all
}

#[test]
fn no_two_keys_that_are_made_from_seeds_coincide() {
    let mut seen = HashMap::new();
    for (what, key) in (0..SEEDS).flat_map(derived) {
        if let Some(other) = seen.insert(key.words(), what.clone()) {
            panic!("{what} is {other}");
        }
    }
    assert!(seen.len() > 30_000);
}

#[test]
fn split_gives_the_first_two_of_many_and_order_counts() {
    let key = RandomKey::new(5);
    let many: Vec<RandomKey> = key.split_into(7).collect();
    assert_eq!(many[..2], key.split());
    assert_eq!(many[..3], key.split_into(3).collect::<Vec<_>>());
    assert_eq!(key.split_into(0).count(), 0);
    assert_ne!(RandomKey::of(&[1, 2]), RandomKey::of(&[2, 1]));
    assert_ne!(RandomKey::of(&[0]), RandomKey::of(&[0, 0]));
    assert_eq!(RandomKey::of(&[-1, 3]), RandomKey::of(&[-1, 3]));
}

/// Every bit is set in half of the keys, and neighbours differ in half of theirs: up to what chance allows, five deviations.
#[test]
fn keys_look_random_in_every_bit() {
    let bits = |key: RandomKey| u64::from(key.words()[0]) | u64::from(key.words()[1]) << 32;
    let kinds: [fn(u64) -> RandomKey; 3] = [
        |i| RandomKey::new(9).fold_in(i),
        |i| RandomKey::of(&[9, i as i64]),
        |i| RandomKey::new(i).split()[1],
    ];
    let count = 4096;
    for (kind, of) in kinds.iter().enumerate() {
        let keys: Vec<u64> = (0..count).map(|i| bits(of(i))).collect();
        let spread = 5.0 * (count as f64).sqrt() / 2.0;
        for bit in 0..64 {
            let set = keys.iter().filter(|key| **key >> bit & 1 == 1).count();
            assert!((set as f64 - count as f64 / 2.0).abs() < spread, "bit {bit} of {kind}: {set}");
        }
        let apart: u32 = keys.windows(2).map(|pair| (pair[0] ^ pair[1]).count_ones()).sum();
        let mean = f64::from(apart) / (count - 1) as f64;
        assert!((mean - 32.0).abs() < 5.0 * 4.0 / (count as f64).sqrt(), "{kind}: {mean}");
    }
}

#[test]
fn what_derived_keys_draw_is_not_correlated() {
    let key = RandomKey::new(3);
    let of = [key, key.split()[0], key.split()[1], key.fold_in(0), key.fold_in(1)];
    let drawn = of.map(|key| key.normal([4000], DType::F64).and_then(|x| x.to_vec::<f64>()));
    let drawn = drawn.map(|x| x.expect("numbers"));
    for (i, a) in drawn.iter().enumerate() {
        for b in &drawn[..i] {
            let product: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
            assert!((product / 4000.0).abs() < 5.0 / 4000f64.sqrt(), "{product}");
        }
    }
}

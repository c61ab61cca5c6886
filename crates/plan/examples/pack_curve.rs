//! How long packing takes, and how near the bound it comes, for training steps of growing size:
//! `cargo run --release -p tonnage-plan --example pack_curve`.

use std::time::Instant;

use tonnage_plan::offsets::{Effort, Item, pack};

/// A fixed sequence of numbers (SplitMix64).
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (x ^ (x >> 27)) % n
    }
}

/// Layers with weights, saved activations, temporaries forward and backward, a gradient that is handed
/// from layer to layer, and weight gradients that live to the end.
fn training(items: usize, seed: u64) -> Vec<Item> {
    let mut numbers = Numbers(seed);
    let layers = (items / 6) as u32;
    let end = 4 * layers;
    let mut out = Vec::new();
    let mut add = |lower: u32, upper: u32, size: u64| out.push(Item { lower, upper, size });
    for layer in 0..layers {
        let (forward, backward) = (2 * layer, end - 2 * layer - 2);
        let weight = 64 * (1 + numbers.below(300));
        let activation = 64 * (1 + numbers.below(2000));
        add(0, end + 1, weight);
        add(forward, backward + 2, activation);
        add(forward, forward + 1, 64 * (1 + numbers.below(1000)));
        add(backward, (backward + 3).min(end + 1), activation);
        add(backward + 1, backward + 2, 64 * (1 + numbers.below(1000)));
        add(backward + 1, end + 1, weight);
    }
    out
}

/// Lifetimes and sizes without any order.
fn random(items: usize, seed: u64) -> Vec<Item> {
    let mut numbers = Numbers(seed);
    let item = |_| {
        let lower = numbers.below(items as u64) as u32;
        let longest = 2 << numbers.below(8);
        let length = 1 + numbers.below(longest) as u32;
        Item { lower, upper: lower + length, size: 64 * (1 + numbers.below(1000)) }
    };
    (0..items).map(item).collect()
}

fn main() -> Result<(), tonnage_core::Error> {
    println!(
        "{:>10} {:>8} {:>12} {:>12} {:>10} {:>12}",
        "kind", "items", "arena/bound", "seconds", "searched", "seconds"
    );
    for items in [500, 1_000, 2_000, 5_000, 10_000, 20_000, 40_000] {
        for (kind, make) in
            [("training", training as fn(usize, u64) -> Vec<Item>), ("random", random)]
        {
            let items = make(items, 7);
            let start = Instant::now();
            let plain = pack(&items, Effort::NONE, &mut || false)?;
            let plain_seconds = start.elapsed().as_secs_f64();
            let start = Instant::now();
            let searched = pack(&items, Effort::PLAN, &mut || false)?;
            let seconds = start.elapsed().as_secs_f64();
            let ratio = |arena: u64| arena as f64 / plain.bound as f64;
            println!(
                "{kind:>10} {:>8} {:>12.5} {plain_seconds:>12.4} {:>10.5} {seconds:>12.4}",
                items.len(),
                ratio(plain.arena),
                ratio(searched.arena),
            );
        }
    }
    Ok(())
}

//! Random numbers: Philox4x32-10 as published, and what its words become.

use std::f64::consts::TAU;

use tonnage_core::recipe::Key;
use tonnage_core::{Attrs, DType};

use super::Asked;
use crate::plain::Answer;

fn block(key: [u32; 2], counter: u64) -> [u32; 4] {
    let mut c = [counter as u32, (counter >> 32) as u32, 0, 0];
    let mut k = key;
    for _ in 0..10 {
        let (a, b) = (0xd251_1f53u64 * c[0] as u64, 0xcd9e_8d57u64 * c[2] as u64);
        c = [(b >> 32) as u32 ^ c[1] ^ k[0], b as u32, (a >> 32) as u32 ^ c[3] ^ k[1], a as u32];
        k = [k[0].wrapping_add(0x9e37_79b9), k[1].wrapping_add(0xbb67_ae85)];
    }
    c
}

/// Elements from the words of each block: four of 32 bits, or two of 64.
fn numbers(asked: &Asked, f: impl Fn([f64; 2], f64) -> [f64; 2], pairs: bool) -> Vec<Answer> {
    let Attrs::Random { key: Key::Fixed(key), dtype, shape, .. } = asked.attrs else {
        panic!("no key")
    };
    let sizes = shape.sizes().expect("known").to_vec();
    let count: usize = sizes.iter().product();
    let (mut values, mut number) = (Vec::new(), 0);
    while values.len() < count {
        let words = block(*key, number);
        number += 1;
        // As fractions of their range, and how finely they are cut.
        let parts: Vec<f64> = match dtype {
            DType::F64 => words
                .chunks(2)
                .map(|w| (u64::from(w[0]) | u64::from(w[1]) << 32) >> 11)
                .map(|w| w as f64 / 2f64.powi(53))
                .collect(),
            _ if pairs => words.iter().map(|w| f64::from(*w) / 2f64.powi(32)).collect(),
            _ => words.iter().map(|w| f64::from(w >> 8) / 2f64.powi(24)).collect(),
        };
        let grain = if *dtype == DType::F64 { 2f64.powi(-53) } else { 2f64.powi(-32) };
        values.extend(parts.chunks(2).flat_map(|p| f([p[0], p[1]], grain)));
    }
    values.truncate(count);
    // Near a radius of 0 the logarithm of almost 1 holds few digits.
    let scale = match pairs {
        true => values.iter().map(|v| if v.abs() < 0.1 { 1000.0 } else { 10.0 }).collect(),
        false => vec![0.0; count],
    };
    vec![Answer::scaled(*dtype, sizes, values, scale)]
}

pub fn uniform(asked: &Asked) -> Vec<Answer> {
    numbers(asked, |pair, _| pair, false)
}

/// Box and Muller's pairs: a radius and an angle.
pub fn normal(asked: &Asked) -> Vec<Answer> {
    let pair = |[u, turn]: [f64; 2], grain: f64| {
        let radius = (-2.0 * (u + 0.5 * grain).ln()).sqrt();
        [radius * (TAU * turn).cos(), radius * (TAU * turn).sin()]
    };
    numbers(asked, pair, true)
}

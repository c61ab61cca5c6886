//! Random numbers: Philox4x32-10 as published, and what its words become.

use std::f64::consts::TAU;

use tonnage_core::recipe::{Distribution, Key};
use tonnage_core::{Attrs, DType};

use super::Asked;
use crate::plain::Answer;

fn block(key: [u32; 2], counter: u64) -> [u32; 4] {
    philox(key, [counter as u32, (counter >> 32) as u32, 0, 0])
}

fn philox(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    let mut c = counter;
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
            // As many bits as the dtype has below 1, so that none is rounded up to it.
            DType::F16 => words.iter().map(|w| f64::from(w >> 21) / 2f64.powi(11)).collect(),
            DType::BF16 => words.iter().map(|w| f64::from(w >> 24) / 2f64.powi(8)).collect(),
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

fn asked<'a>(asked: &'a Asked) -> ([u32; 2], DType, Vec<usize>, &'a Attrs) {
    let Attrs::Random { key: Key::Fixed(key), dtype, shape, .. } = asked.attrs else {
        panic!("no key")
    };
    (*key, *dtype, shape.sizes().expect("known").to_vec(), asked.attrs)
}

/// Double words of a stream, one after the other.
fn doubles(key: [u32; 2], count: usize) -> Vec<u64> {
    let blocks = (0..count.div_ceil(2) as u64).map(|i| block(key, i));
    let mut all: Vec<u64> = blocks
        .flat_map(|w| [[w[0], w[1]], [w[2], w[3]]])
        .map(|[low, high]| u64::from(low) | u64::from(high) << 32)
        .collect();
    all.truncate(count);
    all
}

pub fn bits(call: &Asked) -> Vec<Answer> {
    let (key, dtype, sizes, _) = asked(call);
    let count: usize = sizes.iter().product();
    let values = match dtype.size() {
        8 if dtype == DType::I64 => doubles(key, count).iter().map(|x| *x as i64 as f64).collect(),
        8 => doubles(key, count).iter().map(|x| *x as f64).collect(),
        _ => {
            let words = (0..count.div_ceil(4) as u64).flat_map(|i| block(key, i));
            words.take(count).map(f64::from).collect()
        }
    };
    vec![Answer::new(dtype, sizes, values)]
}

pub fn below(call: &Asked) -> Vec<Answer> {
    let (key, dtype, sizes, attrs) = asked(call);
    let Attrs::Random { distribution: Distribution::Below(n), .. } = attrs else {
        panic!("no end")
    };
    let share = |x: &u64| ((u128::from(*x) * u128::from(*n)) >> 64) as f64;
    let values = doubles(key, sizes.iter().product()).iter().map(share).collect();
    vec![Answer::new(dtype, sizes, values)]
}

/// The numbers of the key that each number of the seed in turn makes of the key before, at first how many they are.
pub fn seeded(call: &Asked) -> Vec<Answer> {
    let Attrs::Seeded { distribution, dtype, shape } = call.attrs else { panic!("no seed") };
    let seed = &call.inputs[0].values;
    let key = seed.iter().fold([seed.len() as u32, 0], |key, number| {
        let number = *number as i64 as u64;
        let words = philox(key, [number as u32, (number >> 32) as u32, 0, 5]);
        [words[0], words[1]]
    });
    let key = Key::Fixed(key);
    let attrs =
        Attrs::Random { key, distribution: *distribution, dtype: *dtype, shape: shape.clone() };
    let asked = Asked { inputs: &[], attrs: &attrs, regions: &[] };
    match distribution {
        Distribution::Uniform => uniform(&asked),
        Distribution::Normal => normal(&asked),
        Distribution::TruncatedNormal => truncated(&asked),
        Distribution::Bits => bits(&asked),
        Distribution::Below(_) => below(&asked),
    }
}

fn tried(key: [u32; 2], element: u64, attempt: u32, kind: u32) -> [u32; 4] {
    philox(key, [element as u32, (element >> 32) as u32, attempt, kind])
}

/// The first normal number of an element's own blocks that lies less than 2 away.
pub fn truncated(call: &Asked) -> Vec<Answer> {
    let (key, dtype, sizes, _) = asked(call);
    let pair = |u: f64, turn: f64| {
        let radius = (-2.0 * u.ln()).sqrt();
        [radius * (TAU * turn).cos(), radius * (TAU * turn).sin()]
    };
    let element = |i: u64| {
        let normals = |attempt: u32| -> Vec<f64> {
            let words = tried(key, i, attempt, 1);
            let wide = |a: u32, b: u32| (u64::from(a) | u64::from(b) << 32) as f64 / 2f64.powi(64);
            match dtype {
                DType::F64 => pair(wide(words[0], words[1]), wide(words[2], words[3])).to_vec(),
                _ => words
                    .chunks(2)
                    .flat_map(|w| {
                        let [u, turn] = [w[0], w[1]].map(|w| f64::from(w) / 2f64.powi(32));
                        pair(u + 2f64.powi(-33), turn)
                    })
                    .collect(),
            }
        };
        (0..).flat_map(normals).find(|z| z.abs() < 2.0).expect("one of them")
    };
    let values: Vec<f64> =
        (0..sizes.iter().product::<usize>()).map(|i| element(i as u64)).collect();
    let scale = values.iter().map(|v| if v.abs() < 0.1 { 1000.0 } else { 10.0 }).collect();
    vec![Answer::scaled(dtype, sizes, values, scale)]
}

/// Draws of one element.
struct Draw {
    key: [u32; 2],
    element: u64,
    next: u32,
}

impl Draw {
    fn pair(&mut self) -> [f64; 2] {
        let w = tried(self.key, self.element, self.next, 2);
        self.next += 1;
        [[w[0], w[1]], [w[2], w[3]]].map(|[low, high]| {
            let bits = (u64::from(low) | u64::from(high) << 32) >> 11;
            (bits as f64 + 0.5) / 2f64.powi(53)
        })
    }

    fn normal(&mut self) -> f64 {
        let [u, turn] = self.pair();
        (-2.0 * u.ln()).sqrt() * (TAU * turn).cos()
    }
}

fn drawn(call: &Asked, of: impl Fn(f64, &mut Draw) -> f64) -> Vec<Answer> {
    let (x, key) = (&call.inputs[0], &call.inputs[1]);
    let key = [key.values[0] as u32, key.values[1] as u32];
    let one = |(i, x): (usize, &f64)| of(*x, &mut Draw { key, element: i as u64, next: 0 });
    vec![Answer::new(x.dtype, x.sizes.clone(), x.values.iter().enumerate().map(one).collect())]
}

fn gamma_of(shape: f64, draw: &mut Draw) -> f64 {
    if shape < 1.0 {
        let more = gamma_of(shape + 1.0, draw);
        return more * draw.pair()[0].powf(1.0 / shape);
    }
    let d = shape - 1.0 / 3.0;
    loop {
        let x = draw.normal();
        let v = (1.0 + x / (9.0 * d).sqrt()).powi(3);
        if v > 0.0 && draw.pair()[0].ln() < 0.5 * x * x + d - d * v + d * v.ln() {
            return d * v;
        }
    }
}

pub fn gamma(call: &Asked) -> Vec<Answer> {
    drawn(call, gamma_of)
}

/// Small rates by products; large ones by transformed rejection.
pub fn poisson(call: &Asked) -> Vec<Answer> {
    let log_factorial = |k: f64| (1..=k as u32).map(|i| f64::from(i).ln()).sum::<f64>();
    drawn(call, |rate, draw| {
        if rate < 10.0 {
            let (mut product, mut count) = (draw.pair()[0], 0.0);
            while product > (-rate).exp() {
                product *= draw.pair()[0];
                count += 1.0;
            }
            return count;
        }
        let b = 0.931 + 2.53 * rate.sqrt();
        let a = -0.059 + 0.02483 * b;
        loop {
            let [u, v] = draw.pair();
            let (u, us) = (u - 0.5, 0.5 - (u - 0.5).abs());
            let k = ((2.0 * a / us + b) * u + rate + 0.43).floor();
            if us >= 0.07 && v <= 0.9277 - 3.6224 / (b - 2.0) {
                return k;
            }
            let inside = k >= 0.0 && !(us < 0.013 && v > us);
            let weight = (v * (1.1239 + 1.1328 / (b - 3.4)) / (a / (us * us) + b)).ln();
            if inside && weight <= k * rate.ln() - rate - log_factorial(k) {
                return k;
            }
        }
    })
}

pub fn categorical(call: &Asked) -> Vec<Answer> {
    let Attrs::Count(samples) = *call.attrs else { panic!("no count") };
    let (x, key) = (&call.inputs[0], &call.inputs[1]);
    let key = [key.values[0] as u32, key.values[1] as u32];
    let (n, outer) = x.sizes.split_last().expect("an axis");
    let mut values = Vec::new();
    for row in 0..outer.iter().product::<usize>() {
        let logits = &x.values[row * n..(row + 1) * n];
        let most = logits.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let weights: Vec<f64> = logits.iter().map(|l| (l - most).exp()).collect();
        for s in 0..samples {
            let element = (row * samples + s) as u64;
            let share = Draw { key, element, next: 0 }.pair()[0] * weights.iter().sum::<f64>();
            let reached = |j: &usize| weights[..=*j].iter().sum::<f64>() >= share;
            values.push((0..*n).find(reached).unwrap_or(n - 1) as f64);
        }
    }
    vec![Answer::new(DType::I64, [outer, &[samples]].concat(), values)]
}

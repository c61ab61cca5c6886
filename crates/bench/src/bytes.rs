//! Products of bytes beside products of floats, taking turns: their rates, and how many times faster bytes are.

use std::time::Instant;

use tonnage::{DType, Elementwise, Result, Tensor, random_int, random_normal, tensor};

/// Turns, of which each counts by itself.
const TURNS: usize = 21;

/// Products of a turn.
const PRODUCTS: usize = 5;

fn took(f: impl Fn() -> Result<Tensor>) -> Result<f64> {
    let start = Instant::now();
    for _ in 0..PRODUCTS {
        f()?;
    }
    Ok(start.elapsed().as_secs_f64() / PRODUCTS as f64)
}

fn bytes(low: i64, high: i64, n: usize, dtype: DType) -> Result<Tensor> {
    random_int(low, high, [n, n], DType::I64)?.cast(dtype)
}

pub fn print() -> Result<()> {
    for n in [256, 512, 1024, 2048] {
        let floats = tensor(random_normal([n, n], DType::F32)?.to_vec2::<f32>()?)?;
        let (left, right) = (bytes(0, 256, n, DType::U8)?, bytes(-128, 128, n, DType::I8)?);
        let mut turns = Vec::new();
        for _ in 0..TURNS {
            turns.push((took(|| floats.matmul(&floats))?, took(|| left.matmul_integer(&right))?));
        }
        let least =
            |which: fn(&(f64, f64)) -> f64| turns.iter().map(which).fold(f64::INFINITY, f64::min);
        let mut ratios: Vec<f64> = turns.iter().map(|(f32, int8)| f32 / int8).collect();
        ratios.sort_by(f64::total_cmp);
        let rate = |seconds: f64| 2.0 * (n as f64).powi(3) / seconds / 1e9;
        println!(
            "{n} cubed: f32 {:.0} GFLOP/s, int8 {:.0} GOP/s at best; {:.2} times as fast by the median of {TURNS} turns",
            rate(least(|turn| turn.0)),
            rate(least(|turn| turn.1)),
            ratios[TURNS / 2],
        );
    }
    Ok(())
}

//! Speed of the vector layer on one thread, in cache, by tiles of 1024 elements:
//! `cargo run --release -p tonnage-simd --example speed`.

use std::hint::black_box;
use std::time::Instant;

use tonnage_core::DType;
use tonnage_simd::philox::Stream;
use tonnage_simd::prim::{Binary, Unary};
use tonnage_simd::{Level, cast::cast, random};

const N: usize = 8192;
const TILE: usize = 1024;

/// The best of many short runs: what the machine does when nobody else is on it.
fn seconds(mut f: impl FnMut()) -> f64 {
    let mut best = f64::MAX;
    for _ in 0..300 {
        let start = Instant::now();
        for _ in 0..8 {
            f();
        }
        best = best.min(start.elapsed().as_secs_f64() / 8.0);
    }
    best
}

fn tiles(dtype: DType, out: &mut [u8], a: &[u8], mut f: impl FnMut(&mut [u8], &[u8])) -> f64 {
    let tile = TILE * dtype.size();
    let t = seconds(|| {
        for (out, a) in out.chunks_mut(tile).zip(a.chunks(tile)) {
            f(out, a);
        }
        black_box(&mut *out);
    });
    a.len() as f64 / t / 1e9
}

fn functions(level: Level, dtype: DType, a: &[u8]) {
    let mut out = a.to_vec();
    println!("{level} {dtype}, GB/s of output");
    for prim in Unary::ALL {
        let Some(f) = prim.function(dtype) else { continue };
        print!("{prim:?} {:.1}  ", tiles(dtype, &mut out, a, |out, a| f(level, out, a)));
    }
    println!();
    for prim in Binary::ALL {
        let Some(f) = prim.function(dtype) else { continue };
        let mut bytes = vec![0; a.len()];
        // A comparison gives a byte per element; the figure is that of its operands.
        let compares = is_comparison(*prim);
        let gb = tiles(dtype, &mut bytes, a, |out, a| {
            let len = if compares { a.len() / dtype.size() } else { a.len() };
            f(level, &mut out[..len], a, a);
        });
        print!("{prim:?} {gb:.1}  ");
    }
    println!();
}

fn is_comparison(prim: Binary) -> bool {
    use Binary::*;
    matches!(prim, Equal | NotEqual | Less | LessEqual | Greater | GreaterEqual)
}

fn main() {
    let single: Vec<f32> = (0..N).map(|i| i as f32 * 1e-3 + 0.01).collect();
    let double: Vec<f64> = single.iter().map(|&x| f64::from(x)).collect();
    for &level in Level::available() {
        functions(level, DType::F32, bytemuck::cast_slice(&single));
        functions(level, DType::F64, bytemuck::cast_slice(&double));
        println!("{level}, ns per element");
        let ns = |f: &mut dyn FnMut()| seconds(f) / N as f64 * 1e9;
        for (from, to) in [
            (DType::F32, DType::F16),
            (DType::F16, DType::F32),
            (DType::F32, DType::BF16),
            (DType::F32, DType::I32),
            (DType::I64, DType::F32),
        ] {
            let (a, mut out) = (vec![1u8; N * from.size()], vec![0u8; N * to.size()]);
            let f = cast(from, to);
            print!("{from} to {to} {:.3}  ", ns(&mut || f(level, black_box(&mut out), &a)));
        }
        println!();
        let s = Stream::new(1);
        let (mut w, mut x, mut y) = (vec![0u32; N], vec![0f32; N], vec![0f64; N]);
        print!("bits_u32 {:.3}  ", ns(&mut || random::bits_u32(level, s, 0, black_box(&mut w))));
        print!(
            "uniform_f32 {:.3}  ",
            ns(&mut || random::uniform_f32(level, s, 0, black_box(&mut x)))
        );
        print!(
            "normal_f32 {:.3}  ",
            ns(&mut || random::normal_f32(level, s, 0, black_box(&mut x)))
        );
        print!(
            "uniform_f64 {:.3}  ",
            ns(&mut || random::uniform_f64(level, s, 0, black_box(&mut y)))
        );
        println!(
            "normal_f64 {:.3}",
            ns(&mut || random::normal_f64(level, s, 0, black_box(&mut y)))
        );
        let mut tile = [0f32; 16];
        let add = Binary::Add.function(DType::F32);
        let t = ns(&mut || {
            for _ in 0..N {
                if let Some(add) = add {
                    add(
                        level,
                        bytemuck::cast_slice_mut(black_box(&mut tile)),
                        bytemuck::cast_slice(&single[..16]),
                        bytemuck::cast_slice(&single[16..32]),
                    );
                }
            }
        });
        println!("a call of add on 16 elements: {t:.1} ns\n");
    }
}

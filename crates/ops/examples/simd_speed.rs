//! Speed of the vector layer on one thread, in cache: `cargo run --release --example simd_speed`.
use std::hint::black_box;
use std::time::Instant;

use tonnage_ops::simd::{Level, elementwise::*, map::*, philox::Stream, random};

fn time(mut f: impl FnMut()) -> f64 {
    // The best of many short runs: what the machine does when nobody else is on it.
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

fn unary<T: bytemuck::Pod, M: Map1<T>>(name: &str, level: Level, a: &[T]) {
    let mut out = vec![<M::Out as bytemuck::Zeroable>::zeroed(); a.len()];
    let t = time(|| {
        for (o, a) in out.chunks_mut(1024).zip(a.chunks(1024)) {
            map1::<T, M>(level, o, a);
        }
        black_box(&mut out);
    });
    print!("{name} {:6.2}  ", size_of_val(a) as f64 / t / 1e9);
}

fn main() {
    let n = 8192;
    let a: Vec<f32> = (0..n).map(|i| i as f32 * 1e-3 + 0.01).collect();
    let d: Vec<f64> = a.iter().map(|&x| x as f64).collect();
    for &level in Level::available() {
        println!("{level} GB/s of output");
        unary::<f32, Exp>("exp", level, &a);
        unary::<f32, Expm1>("expm1", level, &a);
        unary::<f32, Tanh>("tanh", level, &a);
        unary::<f32, Sigmoid>("sigmoid", level, &a);
        unary::<f32, Log>("log", level, &a);
        unary::<f32, Log1p>("log1p", level, &a);
        unary::<f32, Sin>("sin", level, &a);
        unary::<f32, Cos>("cos", level, &a);
        println!();
        unary::<f64, Exp>("exp", level, &d);
        unary::<f64, Expm1>("expm1", level, &d);
        unary::<f64, Tanh>("tanh", level, &d);
        unary::<f64, Sigmoid>("sigmoid", level, &d);
        unary::<f64, Log>("log", level, &d);
        unary::<f64, Log1p>("log1p", level, &d);
        unary::<f64, Sin>("sin", level, &d);
        unary::<f64, Cos>("cos", level, &d);
        println!();
        let s = Stream::new(1);
        let (mut x, mut y, mut w) = (vec![0f32; n], vec![0f64; n], vec![0u32; n]);
        let ns = |t: f64| t / n as f64 * 1e9;
        print!("ns: bits {:.3} ", ns(time(|| random::bits_u32(level, s, 0, black_box(&mut w)))));
        print!("uniform {:.3} ", ns(time(|| random::uniform_f32(level, s, 0, black_box(&mut x)))));
        print!("normal {:.3} ", ns(time(|| random::normal_f32(level, s, 0, black_box(&mut x)))));
        print!(
            "uniform64 {:.3} ",
            ns(time(|| random::uniform_f64(level, s, 0, black_box(&mut y))))
        );
        println!("normal64 {:.3}", ns(time(|| random::normal_f64(level, s, 0, black_box(&mut y)))));
    }
}

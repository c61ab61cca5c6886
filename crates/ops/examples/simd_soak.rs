//! The worst errors over every `f32`: `cargo run --release --example simd_soak [stride]`.
use tonnage_ops::simd::soak;

fn main() {
    let stride = std::env::args().nth(1).and_then(|s| s.parse().ok()).unwrap_or(1);
    let all = if stride == 1 { soak::all_f32() } else { soak::sweep_f32(0, u32::MAX, stride) };
    for w in all {
        let verdict = if w.ulp <= w.subject.stated_f32 { "" } else { "  OVER" };
        println!(
            "{:<9} {:<9} {:.4} ulp at {:e}{verdict}",
            format!("{:?}", w.subject.prim),
            w.level,
            w.ulp,
            w.at
        );
    }
}

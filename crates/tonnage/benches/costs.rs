//! What the planner expects single ops to take, by the machine's figures, beside what they take: budgets choose by the
//! former. `cargo bench -p tonnage --bench costs`; figures are those that `tonnage calibrate` saved, or the built-in ones.
//!
//! Decision: `docs/decisions/cost-of-small-steps.md`.

use std::time::Instant;

use tonnage::{
    Bytes, Conv, DType, Elementwise, Result, Tensor, function, machine, random_normal, tensor,
};

fn drawn(shape: &[usize]) -> Result<Tensor> {
    let sizes: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
    tensor(random_normal(shape, DType::F32)?.to_vec::<f32>()?)?.reshape(&sizes[..])
}

/// Prints expected and measured time of one op: many in one call, so that the call itself does not count, and in
/// bytes that stay warm between calls, as in a step of training they are for the most part.
fn op(
    name: &str,
    a: &[usize],
    b: &[usize],
    f: fn(&Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let b = drawn(b)?;
    let bytes = 4 * f(&drawn(a)?, &b)?.to_vec::<f32>()?.len();
    let times = ((1 << 20) / bytes.max(1)).clamp(1, 32);
    let all: Vec<Tensor> = (0..times).map(|_| drawn(a)).collect::<Result<_>>()?;
    let many = function(move |b: Tensor| all.iter().map(|a| f(a, &b)).collect::<Result<Vec<_>>>())
        .budget(Bytes::new(1 << 40))?;
    let expected = many.plan(&b)?.fitted.map_or(0.0, |f| f.seconds) / times as f64;
    let mut least = f64::INFINITY;
    for _ in 0..15 {
        let start = Instant::now();
        many.call(b.clone())?;
        least = least.min(start.elapsed().as_secs_f64() / times as f64);
    }
    let [micros, expects] = [least, expected].map(|s| s * 1e6);
    println!("{name:<28} {micros:>9.2} us, {expects:>9.2} expected: {:>5.2}", micros / expects);
    Ok(())
}

fn main() -> Result<()> {
    println!("{:?}", machine());
    for width in [64usize, 128, 512] {
        for rows in [512usize, 128, 32, 8] {
            op(
                &format!("[{rows}, {width}] @ [{width}, {width}]"),
                &[rows, width],
                &[width, width],
                |a, b| a.matmul(b),
            )?;
            op(
                &format!("[{width}, {rows}] @ [{rows}, {width}]"),
                &[rows, width],
                &[rows, width],
                |a, b| a.t()?.matmul(b),
            )?;
        }
    }
    for rows in [2048usize, 512, 128, 32, 8] {
        op(&format!("tanh [{rows}, 128]"), &[rows, 128], &[rows, 128], |a, _| a.tanh())?;
        op(&format!("[{rows}, 128] + [{rows}, 128]"), &[rows, 128], &[rows, 128], |a, b| a + b)?;
        op(&format!("softmax [{rows}, 128]"), &[rows, 128], &[rows, 128], |a, _| a.softmax(-1))?;
        op(&format!("sum rows [{rows}, 128]"), &[rows, 128], &[rows, 128], |a, _| a.sum(0))?;
    }
    for (batch, channels) in [(16, 8), (4, 8), (1, 8), (16, 32), (1, 32)] {
        let image = [batch, 32, 32, channels];
        op(&format!("conv of {image:?}"), &image, &[3, 3, channels, channels], |a, b| {
            a.conv2d(b, &Conv::same())
        })?;
    }
    Ok(())
}

//! What training takes: the gradient of a large table by a small batch, and ten thousand steps of a small model,
//! in eager mode and planned. `cargo bench -p tonnage --bench training [table|steps]`

use std::time::Instant;

use tonnage::{
    Bytes, DType, Elementwise, Gradient, GradientTape, Result, Tensor, Variable, Watched, function,
    memory, random_int, random_normal, tensor, zeros,
};

fn in_use() -> Result<Bytes> {
    Ok(memory::info("cpu:0")?.in_use)
}

/// What a call takes at most above what was in use before, and how long it takes.
fn above(f: impl FnOnce() -> Result<()>) -> Result<(Bytes, f64)> {
    memory::reset_peak("cpu:0")?;
    let (before, start) = (in_use()?, Instant::now());
    f()?;
    let seconds = start.elapsed().as_secs_f64();
    Ok((memory::info("cpu:0")?.peak - before, seconds))
}

fn table() -> Result<()> {
    let (rows, width, batch) = (10_000_000, 64, 1000);
    let table = Variable::new("table", zeros([rows, width])?)?;
    let ids = tensor(random_int(0, rows as i64, [batch], DType::I64)?.to_vec::<i64>()?)?;
    let step = |table: &Variable, ids: &Tensor| -> Result<Gradient> {
        let mut tape = GradientTape::new();
        let loss = (table.read()?.gather(ids, 0)? - 1.0)?.square()?.sum_all()?;
        tape.gradient(&loss, table)
    };
    // The first step makes the table resident.
    table.assign_sub(&step(&table, &ids)?.scale(0.1)?)?;
    println!("table of {rows} x {width}: {}", table.bytes());
    let (peak, seconds) = above(|| {
        let gradient = step(&table, &ids)?;
        table.assign_sub(&gradient.scale(0.1)?)
    })?;
    println!(
        "  eager step with a batch of {batch}: {peak} above the table, {:.2} ms",
        seconds * 1e3
    );
    let own = table.clone();
    let planned = function(move |ids: Tensor| {
        own.assign_sub(&step(&own, &ids)?.scale(0.1)?)?;
        Ok(ids)
    });
    let plan = planned.plan(&ids)?;
    for _ in 0..3 {
        planned.call(ids.clone())?;
    }
    let (peak, seconds) = above(|| planned.call(ids.clone()).map(drop))?;
    println!(
        "  planned step: {peak} above the table, predicted {}, {:.2} ms",
        plan.obtains(),
        seconds * 1e3
    );
    Ok(())
}

fn steps() -> Result<()> {
    let start = |name: &str, shape: [usize; 2]| -> Result<Variable> {
        Variable::new(name, tensor((random_normal(shape, DType::F32)? * 0.1)?.to_vec2::<f32>()?)?)
    };
    let (w1, w2) = (start("w1", [64, 128])?, start("w2", [128, 10])?);
    let step = |x: &Tensor, y: &Tensor| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        let hidden = x.matmul(&w1.read()?)?.relu()?;
        let loss = hidden.matmul(&w2.read()?)?.sparse_cross_entropy(y)?.mean_all()?;
        let all: [&dyn Watched; 2] = [&w1, &w2];
        for (variable, gradient) in [&w1, &w2].into_iter().zip(tape.gradient(&loss, &all)?) {
            variable.assign_sub(&gradient.scale(0.01)?)?;
        }
        Ok(loss)
    };
    let batch = || -> Result<(Tensor, Tensor)> {
        Ok((random_normal([32, 64], DType::F32)?, random_int(0, 10, [32], DType::I64)?))
    };
    let planned = function(|(x, y): (Tensor, Tensor)| step(&x, &y));
    let eager = |(x, y): (Tensor, Tensor)| step(&x, &y);
    for (name, call) in [
        ("eager", &eager as &dyn Fn((Tensor, Tensor)) -> Result<Tensor>),
        ("planned", &|batch| planned.call(batch)),
    ] {
        let begun = Instant::now();
        let mut third = (Bytes::ZERO, Bytes::ZERO);
        let mut most = third;
        for n in 1..=10_000 {
            call(batch()?)?;
            let now = (in_use()?, memory::resident().unwrap_or(Bytes::ZERO));
            match n {
                0..3 => {}
                3 => (third, most) = (now, now),
                _ => most = (most.0.max(now.0), most.1.max(now.1)),
            }
        }
        println!(
            "{name:<8} 10,000 steps in {:.1?}: in use {} after 3 steps and at most {} after; resident {} and {}",
            begun.elapsed(),
            third.0,
            most.0,
            third.1,
            most.1
        );
    }
    Ok(())
}

fn main() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let asked = |name: &str| only.is_empty() || only.iter().any(|o| o == name);
    if asked("table") {
        table()?;
    }
    if asked("steps") {
        steps()?;
    }
    Ok(())
}

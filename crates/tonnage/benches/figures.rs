//! The figures that the project promises, measured: memory as resident above the process's start, time
//! as the best of several runs. `cargo bench -p tonnage --bench figures [name]`.

use std::time::{Duration, Instant};

use tonnage::{
    Bytes, DType, Dim, Elementwise, Result, Tensor, Variable, constant, function, memory,
    random_normal,
};

/// The best of several runs, and the most that was resident above the start at their ends.
fn best(runs: usize, mut f: impl FnMut() -> Result<()>) -> Result<Duration> {
    let mut least = Duration::MAX;
    for _ in 0..runs {
        let start = Instant::now();
        f()?;
        least = least.min(start.elapsed());
    }
    Ok(least)
}

/// Pages of the program's file that were touched so far: part of what is resident, and no memory of tensors.
fn code() -> Bytes {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
    let shared = statm.split_ascii_whitespace().nth(2).and_then(|pages| pages.parse::<u64>().ok());
    Bytes::new(shared.unwrap_or(0) * 4096)
}

fn resident() -> Bytes {
    memory::resident().unwrap_or(Bytes::ZERO)
}

fn row(name: &str, time: Duration, above: Bytes, peak: Bytes) {
    println!("{name:<34} {time:>12.2?} {:>12} {:>12}", above.to_string(), peak.to_string());
}

/// Runs a workload and prints its row: time, resident above the start while results are held, and the
/// ledger's peak.
fn measure(
    name: &str,
    only: &[String],
    runs: usize,
    f: impl FnOnce(usize) -> Result<(Duration, Bytes)>,
) -> Result<()> {
    if !only.is_empty() && !only.iter().any(|o| name.contains(o.as_str())) {
        return Ok(());
    }
    let before = memory::info("cpu:0")?.in_use;
    memory::reset_peak("cpu:0")?;
    let (time, above) = f(runs)?;
    row(name, time, above, memory::info("cpu:0")?.peak.saturating_sub(before));
    Ok(())
}

fn main() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    println!("{:<34} {:>12} {:>12} {:>12}", "workload", "time", "resident", "ledger peak");
    let (start, code_at_start) = (resident(), code());
    let above = |now: Bytes| now.saturating_sub(start);

    measure("splat: sum(fill * 2 + 1), 10^9", &only, 3, |runs| {
        let x = constant(1.0f32, [1000, 1000, 1000])?;
        let time = best(runs, || {
            let y = ((&x * 2.0)? + 1.0)?.sum_all()?;
            assert_eq!(y.scalar::<f32>()?, 3e9);
            Ok(())
        })?;
        Ok((time, above(resident())))
    })?;

    measure("random: mean(normal), 10^9", &only, 1, |runs| {
        let x = random_normal([1000, 1000, 1000], DType::F32)?;
        let mut mean = 0.0;
        let time = best(runs, || {
            mean = x.mean_all()?.scalar::<f32>()?;
            Ok(())
        })?;
        assert!(mean.abs() < 1e-3, "{mean}");
        Ok((time, above(resident())))
    })?;

    measure("chain by value: x*x*2+1, 4096^2", &only, 5, |runs| {
        let mut x = ones(4096 * 4096)?;
        let mut least = Duration::MAX;
        for _ in 0..runs {
            let start = Instant::now();
            let y = ((x.square()? * 2.0)? + 1.0)?;
            least = least.min(start.elapsed());
            x = (y * 0.3)?;
        }
        Ok((least, above(resident())))
    })?;

    measure("chain planned: x*x*2+1, 4096^2", &only, 30, |runs| {
        let x = ones(4096 * 4096)?;
        let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
        f.call(x.clone())?;
        let time = best(runs, || f.call(x.clone()).map(drop))?;
        Ok((time, above(resident())))
    })?;

    measure("eager add, 16 elements", &only, 20, |runs| {
        let (a, b) = (ones(16)?, ones(16)?);
        let time = best(runs, || {
            for _ in 0..10_000 {
                std::hint::black_box((&a + &b)?);
            }
            Ok(())
        })?;
        Ok((time / 10_000, above(resident())))
    })?;

    measure("call of a trivial planned function", &only, 20, |runs| {
        let (a, b) = (ones(16)?, ones(16)?);
        let f = function(|(a, b): (Tensor, Tensor)| a + b);
        let time = best(runs, || {
            for _ in 0..10_000 {
                std::hint::black_box(f.call((a.clone(), b.clone()))?);
            }
            Ok(())
        })?;
        Ok((time / 10_000, above(resident())))
    })?;

    measure("trivial planned call, open dims", &only, 20, |runs| {
        let (a, b) = (ones(16)?, ones(16)?);
        let spec = Tensor::spec(DType::F32, [Dim::open("n")]);
        let f = function(|(a, b): (Tensor, Tensor)| a + b).signature((spec.clone(), spec));
        let time = best(runs, || {
            for _ in 0..10_000 {
                std::hint::black_box(f.call((a.clone(), b.clone()))?);
            }
            Ok(())
        })?;
        Ok((time / 10_000, above(resident())))
    })?;

    measure("trivial planned call, 1000 traces", &only, 20, |runs| {
        let f = function(|(a, b): (Tensor, Tensor)| a + b).graph_limit(Bytes::mib(1024));
        tonnage::notices::listen(|_| {});
        for n in 1..1000 {
            f.call((ones(n)?, ones(n)?))?;
        }
        let (a, b) = (ones(16)?, ones(16)?);
        let time = best(runs, || {
            for _ in 0..10_000 {
                std::hint::black_box(f.call((a.clone(), b.clone()))?);
            }
            Ok(())
        })?;
        Ok((time / 10_000, above(resident())))
    })?;

    measure("matmul 1024^3", &only, 10, |runs| {
        let (a, b) = (ones(1024 * 1024)?, ones(1024 * 1024)?);
        let (a, b) = (a.reshape([1024, 1024])?, b.reshape([1024, 1024])?);
        let time = best(runs, || a.matmul(&b).map(drop))?;
        println!("{:>34.1} GFLOP/s", 2.0 * 1024f64.powi(3) / time.as_secs_f64() / 1e9);
        Ok((time, above(resident())))
    })?;

    measure("sum 4096^2", &only, 10, |runs| {
        let x = ones(4096 * 4096)?;
        let time = best(runs, || x.sum_all().map(drop))?;
        println!("{:>34.1} GB/s", 4096f64.powi(2) * 4.0 / time.as_secs_f64() / 1e9);
        Ok((time, above(resident())))
    })?;

    let info = memory::info("cpu:0")?;
    println!(
        "at the end: in use {}, cached {}, resident above the start {}, of it the program's own code {}",
        info.in_use,
        info.cached,
        above(resident()),
        code().saturating_sub(code_at_start),
    );
    Ok(())
}

/// Resident ones, written straight into their bytes: a `Vec` of them would stay with the allocator, and show as
/// resident at the end.
fn ones(n: usize) -> Result<Tensor> {
    let v = Variable::new("ones", constant(1.0f32, [n])?)?;
    v.assign(&constant(1.0f32, [n])?)?;
    v.read()
}

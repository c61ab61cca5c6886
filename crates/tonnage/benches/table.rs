//! How fast ops of the table move bytes, beside a plain copy of as many: `cargo bench -p tonnage --bench table [name]`.
//!
//! A rate is what an op reads and writes at least, over its best time; the last column is its share of the copy's.

use std::time::{Duration, Instant};

use tonnage::{
    Axes, DType, Elementwise, PadMode, Result, Tensor, concat, function, random_normal, stack,
    tensor,
};

fn best(mut f: impl FnMut() -> Result<Tensor>) -> Result<Duration> {
    let mut least = Duration::MAX;
    let start = Instant::now();
    let mut runs = 0;
    while runs < 5 || (start.elapsed() < Duration::from_millis(400) && runs < 200) {
        let begin = Instant::now();
        drop(f()?);
        least = least.min(begin.elapsed());
        runs += 1;
    }
    Ok(least)
}

/// A tensor in memory.
fn resident(shape: &[usize]) -> Result<Tensor> {
    random_normal(shape, DType::F32)?.identity()?.add(&tensor(0.0f32)?)
}

type Op = Box<dyn Fn() -> Result<Tensor>>;

fn main() -> Result<()> {
    let only: Vec<String> = std::env::args().skip(1).filter(|a| !a.starts_with('-')).collect();
    let n = 2048;
    let mib = (n * n * 4) as f64 / (1 << 20) as f64;
    let x = resident(&[n, n])?;
    let long = x.reshape([-1])?;
    let nhwc = resident(&[16, 64, 64, 64])?;
    let copy = best(|| x.identity())?;
    println!("{:<34} {:>12} {:>10} {:>8}", "op", "time", "GiB/s", "of copy");
    let rate = |time: Duration, moved: f64| moved * mib / 1024.0 / time.as_secs_f64();
    let base = rate(copy, 2.0);
    let show = |name: &str, moved: f64, f: Op| -> Result<()> {
        if !only.is_empty() && !only.iter().any(|o| name.contains(o.as_str())) {
            return Ok(());
        }
        let time = best(&f)?;
        let got = rate(time, moved);
        println!("{name:<34} {time:>12.2?} {got:>10.2} {:>7.0}%", 100.0 * got / base);
        Ok(())
    };
    macro_rules! row {
        ($name:expr, $moved:expr, |$x:ident| $f:expr) => {{
            let $x = x.clone();
            show($name, $moved, Box::new(move || $f))?;
        }};
    }
    row!("copy", 2.0, |x| x.identity());
    row!("exp", 2.0, |x| (&x).exp());
    row!("sigmoid", 2.0, |x| (&x).sigmoid());
    row!("silu", 2.0, |x| (&x).silu());
    row!("gelu", 2.0, |x| (&x).gelu());
    row!("gelu_tanh", 2.0, |x| (&x).gelu_tanh());
    row!("erf", 2.0, |x| (&x).erf());
    row!("lgamma", 2.0, |x| (&x).lgamma());
    row!("pow", 2.0, |x| x.pow(1.7));
    row!("clip", 2.0, |x| x.clip(-0.5, 0.5));
    let chain = function(|x: Tensor| (((x.square()? * 0.5)? + 1.0)?.sqrt()? * 3.0)? - 1.0);
    row!("chain of six, planned", 2.0, |x| chain.call(x.clone()));
    row!("sum, all", 1.0, |x| x.sum(Axes::ALL));
    row!("mean, last axis", 1.0, |x| x.mean(1));
    row!("mean, first axis", 1.0, |x| x.mean(0));
    row!("max, last axis", 1.0, |x| x.max(1));
    row!("var, last axis", 2.0, |x| x.var(1));
    row!("logsumexp, last axis", 2.0, |x| x.logsumexp(1));
    row!("argmax, last axis", 1.0, |x| x.argmax(1));
    row!("argmax, first axis", 1.0, |x| x.argmax(0));
    row!("cumsum, last axis", 2.0, |x| x.cumsum(1));
    row!("cumsum, first axis", 2.0, |x| x.cumsum(0));
    {
        let long = long.clone();
        show("cumsum, one row", 2.0, Box::new(move || long.cumsum(0)))?;
    }
    row!("concat, first axis", 4.0, |x| concat(&[&x, &x], 0));
    row!("concat, last axis", 4.0, |x| concat(&[&x, &x], 1));
    {
        let long = long.clone();
        show("stack of two, last axis", 4.0, Box::new(move || stack(&[&long, &long], -1)))?;
    }
    let zero = PadMode::Constant(0.into());
    {
        let y = nhwc.clone();
        let f = move || y.pad(&[[0, 0], [1, 1], [1, 1], [0, 0]], zero);
        show("pad of an image", 2.0, Box::new(f))?;
    }
    row!("pad as in a mirror", 2.0, |x| x.pad(&[[3, 3], [3, 3]], PadMode::Reflect));
    row!("roll, last axis", 2.0, |x| x.roll(5, 1));
    row!("transpose, copied", 2.0, |x| x.t()?.identity());
    row!("tile of four", 5.0, |x| x.tile(&[2, 2]));
    row!("tril", 2.0, |x| x.tril(0));
    row!("sort, rows of 2048", 2.0, |x| x.sort(1, false));
    row!("argsort, rows of 2048", 2.0, |x| x.argsort(1, false));
    {
        let long = long.clone();
        show("sort, one row", 2.0, Box::new(move || long.sort(0, false)))?;
    }
    row!("histogram", 1.0, |x| x.histogram(-3.0, 3.0, 64));
    let square = resident(&[1024, 1024])?;
    show("solve, 1024 (as bytes)", 1.0, Box::new(move || square.solve(&square)))?;
    Ok(())
}

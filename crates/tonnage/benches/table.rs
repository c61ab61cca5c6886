//! How fast ops of the table move bytes, beside a plain copy of as many: `cargo bench -p tonnage --bench table [name]`.
//!
//! A rate is what an op reads and writes at least, over its best time; the last column is its share of the copy's, and the
//! slowest stand first.

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
    let mut all: Vec<(f64, String)> = Vec::new();
    let rate = |time: Duration, moved: f64| moved * mib / 1024.0 / time.as_secs_f64();
    let base = rate(copy, 2.0);
    let mut show = |name: &str, moved: f64, f: Op| -> Result<()> {
        if !only.is_empty() && !only.iter().any(|o| name.contains(o.as_str())) {
            return Ok(());
        }
        let time = best(&f)?;
        let got = rate(time, moved);
        let share = 100.0 * got / base;
        all.push((share, format!("{name:<34} {time:>12.2?} {got:>10.2} {share:>7.0}%")));
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
    let positive = ((&x).abs()? + 0.01)?;
    {
        let y = positive.clone();
        show("lgamma, above 0", 2.0, Box::new(move || (&y).lgamma()))?;
        let y = positive.clone();
        show("digamma, above 0", 2.0, Box::new(move || (&y).digamma()))?;
    }
    row!("lgamma", 2.0, |x| (&x).lgamma());
    row!("digamma", 2.0, |x| (&x).digamma());
    macro_rules! functions {
        ($($name:ident)*) => {$( row!(stringify!($name), 2.0, |x| (&x).$name()); )*};
    }
    functions!(neg abs sign floor ceil round square reciprocal expm1 sin cos tan atan sinh cosh tanh asinh
        softplus softsign erfc relu relu6 selu hard_sigmoid hard_swish);
    {
        let y = positive.clone();
        show("log", 2.0, Box::new(move || (&y).log()))?;
        let y = positive.clone();
        show("rsqrt", 2.0, Box::new(move || (&y).rsqrt()))?;
    }
    row!("elu", 2.0, |x| (&x).elu(1.0));
    row!("add", 3.0, |x| x.add(&x));
    row!("div", 3.0, |x| x.div(&x));
    row!("maximum", 3.0, |x| x.maximum(&x));
    row!("atan2", 3.0, |x| x.atan2(&x));
    row!("mod", 3.0, |x| x.modulo(0.7));
    row!("floor_div", 3.0, |x| x.floor_div(0.7));
    row!("fma", 3.0, |x| x.fma(&x, 0.5));
    row!("cast to bf16", 1.5, |x| (&x).cast(DType::BF16));
    row!("cast to i64", 3.0, |x| (&x).cast(DType::I64));
    row!("less", 2.25, |x| x.less(&x));
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
    row!("triu", 2.0, |x| x.triu(1));
    row!("reverse, last axis", 2.0, |x| x.reverse(1)?.identity());
    row!("reverse, first axis", 2.0, |x| x.reverse(0)?.identity());
    row!("repeat, last axis, 2", 3.0, |x| x.repeat(2, 1));
    row!("repeat, last axis, 3", 4.0, |x| x.repeat(3, 1));
    row!("repeat, first axis, 2", 3.0, |x| x.repeat(2, 0));
    row!("cumprod, last axis", 2.0, |x| x.cumprod(1));
    row!("cumprod, first axis", 2.0, |x| x.cumprod(0));
    row!("prod, last axis", 1.0, |x| x.prod(1));
    row!("max, first axis", 1.0, |x| x.max(0));
    row!("norm, last axis", 1.0, |x| x.norm(1));
    row!("diag_part", 1.0 / 2048.0, |x| x.diag_part(0)?.identity());
    for width in [1, 2, 3, 4, 8] {
        let short = resident(&[n * n / width, width])?;
        let y = short.clone();
        let f = move || concat(&[&y, &y], 1);
        show(&format!("concat of two, rows of {width}"), 4.0, Box::new(f))?;
        let y = short.clone();
        let f = move || y.tile(&[1, 2]);
        show(&format!("tile of two, rows of {width}"), 3.0, Box::new(f))?;
        let y = short.clone();
        let f = move || y.reverse(1)?.identity();
        show(&format!("reverse, rows of {width}"), 2.0, Box::new(f))?;
        if width > 1 {
            let y = short.clone();
            let f = move || y.unstack(-1)?.swap_remove(1).identity();
            show(&format!("unstack, one of {width}"), 1.0 + 1.0 / width as f64, Box::new(f))?;
            let y = short.clone();
            let f = move || y.split_evenly(2, 1)?.swap_remove(1).identity();
            if width % 2 == 0 {
                show(&format!("split, half of {width}"), 1.5, Box::new(f))?;
            }
            let y = short;
            let f = move || y.cumsum(1);
            show(&format!("cumsum, rows of {width}"), 2.0, Box::new(f))?;
        }
    }
    for parts in [3, 4, 8] {
        let column = resident(&[n * n / parts])?;
        let f = move || stack(&vec![&column; parts], -1);
        show(&format!("stack of {parts}, last axis"), 2.0, Box::new(f))?;
    }
    for depth in [10, 64, 1000] {
        let index = (resident(&[n * n / depth])?.abs()? * 5.0)?.cast(DType::I32)?;
        let f = move || index.one_hot(depth, DType::F32);
        show(&format!("one_hot, {depth}"), 1.0, Box::new(f))?;
    }
    for channels in [3, 64] {
        let y = resident(&[16, 64, n * n / 1024 / channels / 2 * 2, channels])?;
        let moved = 2.0 * y.shape().count().unwrap_or(0) as f64 / (n * n) as f64;
        let f = move || y.space_to_depth(2);
        show(&format!("space_to_depth, {channels} channels"), moved, Box::new(f))?;
    }
    {
        let rows = (resident(&[n])?.abs()? * 300.0)?.cast(DType::I32)?;
        let y = x.clone();
        show("gather of rows", 2.0, Box::new(move || y.gather(&rows, 0)))?;
        let columns = (resident(&[n])?.abs()? * 300.0)?.cast(DType::I32)?;
        let y = x.clone();
        show("gather of columns", 2.0, Box::new(move || y.gather(&columns, 1)))?;
        let along = ((&x).abs()? * 300.0)?.cast(DType::I32)?;
        let y = x.clone();
        show("take_along_axis, last", 3.0, Box::new(move || y.take_along_axis(&along, 1)))?;
        let mask = x.greater(0.0)?;
        let y = x.clone();
        let taken = mask.clone();
        show("boolean_mask", 1.75, Box::new(move || y.boolean_mask(&taken)))?;
        let y = x.clone();
        show("where", 3.25, Box::new(move || mask.where_(&y, &y)))?;
    }
    row!("sort, rows of 2048", 2.0, |x| x.sort(1, false));
    row!("argsort, rows of 2048", 2.0, |x| x.argsort(1, false));
    {
        let long = long.clone();
        show("sort, one row", 2.0, Box::new(move || long.sort(0, false)))?;
    }
    row!("histogram", 1.0, |x| x.histogram(-3.0, 3.0, 64));
    let square = resident(&[1024, 1024])?;
    macro_rules! of_square {
        ($name:expr, |$x:ident| $f:expr) => {{
            let $x = square.clone();
            show($name, 1.0, Box::new(move || $f))?;
        }};
    }
    of_square!("solve, 1024 (as bytes)", |x| x.solve(&x));
    of_square!("qr, 1024 (as bytes)", |x| Ok(x.qr()?.0));
    of_square!("eigh, 1024 (as bytes)", |x| Ok(x.eigh()?.0));
    of_square!("svd, 1024 (as bytes)", |x| Ok(x.svd()?.0));
    println!("{:<34} {:>12} {:>10} {:>8}", "op", "time", "GiB/s", "of copy");
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    all.iter().for_each(|(_, line)| println!("{line}"));
    Ok(())
}

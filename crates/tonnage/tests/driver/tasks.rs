//! What children do beside the doubles; they print what they see.

use std::path::Path;

use super::replay;
use tonnage::io::{read_npy, save_npy};
use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, Variable, device, fori_loop, full,
    function, memory, ones, range, tensor,
};

pub fn run(task: &str, folder: &Path) -> Result<()> {
    match task {
        "open" => open(),
        "room" => room(),
        "index" => index(),
        "loss" => loss(),
        "added" => added(),
        "spill" => spill(),
        "evict" => evict(),
        "rows" => rows(),
        "fails" => fails(folder),
        "fails late" => fails_late(),
        "odd" => odd(),
        "unmade" => unmade(),
        "no room" => no_room(),
        "compute" => compute(),
        "train" => train(folder, 0, 1000),
        "go on" => go_on(folder),
        "timeline" => timeline(),
        "replay" => replay::replay(),
        other => panic!("no task {other}"),
    }
}

fn numbers(x: &Tensor) -> Result<String> {
    let values = x.to_vec::<f32>()?;
    Ok(values.iter().map(f32::to_string).collect::<Vec<_>>().join(" "))
}

fn open() -> Result<()> {
    println!("{}", ones([3])?.to("cuda:0").unwrap_err());
    Ok(())
}

/// 64 MiB, of which the context takes some.
fn room() -> Result<()> {
    let small = ones([3])?.to("cuda:0")?;
    let held = full(1, DType::F32, [4 << 20])?.to("cuda:0")?;
    let held = (&held + 1.0)?;
    println!("{}", full(1, DType::F32, [16 << 20])?.to("cuda:0").unwrap_err());
    println!("went on: {}", numbers(&(&(&small + &small)? + &small)?)?);
    assert!(memory::info("cuda:0")?.in_use >= held.ty().bytes("test")?);
    Ok(())
}

fn index() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let table = Variable::new("table", ones([4, 2])?)?;
    let add = function({
        let table = table.clone();
        move |(rows, by): (Tensor, Tensor)| -> Result<Tensor> {
            table.assign_rows(&rows, &by)?;
            table.read()
        }
    });
    let by = full(2, DType::F32, [2, 2])?;
    let error = add.call((tensor([0i32, 9])?, by.clone())).unwrap_err();
    println!("caught: {error}");
    println!("before: {}", numbers(&table.read()?)?);
    add.call((tensor([0i32, 2])?, by))?;
    println!("after: {}", numbers(&table.read()?)?);
    Ok(())
}

/// A loss that is not finite, in a function and eagerly.
fn loss() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let count = Variable::new("count", ones([2])?)?;
    let step = function({
        let count = count.clone();
        move |x: Tensor| -> Result<Tensor> {
            let loss = (&x * 2.0)?.sum_all()?;
            loss.check_finite("the loss")?;
            count.assign(&(count.read()? + 1.0)?)?;
            Ok(loss)
        }
    });
    println!("caught: {}", step.call(tensor([1.0f32, f32::NAN])?).unwrap_err());
    println!("before: {}", numbers(&count.read()?)?);
    step.call(tensor([1.0f32, 2.0])?)?;
    println!("after: {}", numbers(&count.read()?)?);
    let x = tensor([f32::INFINITY, f32::NAN, 1.0])?;
    println!("eagerly: {}", x.check_finite("x").unwrap_err());
    println!("went on: {}", numbers(&(&count.read()? + 1.0)?)?);
    Ok(())
}

/// Products with something added, of small whole numbers, whose sums have no rounding.
fn added() -> Result<()> {
    let counted = |sizes: &[i64]| -> Result<Tensor> {
        let count: i64 = sizes.iter().product();
        range(0, count, 1)?.cast(DType::F32)?.reshape(sizes.to_vec())
    };
    for (x, w, b) in [
        (vec![3, 4], vec![4, 2], vec![2]),
        (vec![2, 3, 4], vec![4, 2], vec![2]),
        (vec![2, 3, 4], vec![2, 4, 5], vec![5]),
        (vec![3, 4], vec![4, 1], vec![1]),
        (vec![1, 4], vec![4, 6], vec![1, 6]),
        (vec![3, 4], vec![4, 2], vec![3, 2]),
        (vec![2, 3, 4], vec![4, 2], vec![2, 3, 2]),
        // Added in other ways.
        (vec![3, 4], vec![4, 2], vec![3, 1]),
        (vec![3, 4], vec![4, 2], vec![1]),
        (vec![2, 3, 4], vec![4, 2], vec![3, 2]),
        (vec![3, 0], vec![0, 2], vec![2]),
        (vec![3, 0], vec![0, 2], vec![3, 2]),
    ] {
        same_on_both([counted(&x)?, counted(&w)?, counted(&b)?], |x, w, b| &x.matmul(w)? + b)?;
    }
    // A bias and a residual; two products, the second of which takes up the first.
    let square =
        || -> Result<[Tensor; 3]> { Ok([counted(&[3, 3])?, counted(&[3, 3])?, counted(&[3])?]) };
    same_on_both(square()?, |x, w, b| (x.matmul(w)? + b)? + x)?;
    same_on_both(square()?, |x, w, _| x.matmul(w)? + w.matmul(x)?)?;
    // Rows and a residual; gradients of a norm's input that come from the norm and from beside it.
    same_on_both(square()?, |x, w, _| x.softmax(-1)? + w)?;
    same_on_both(square()?, |x, w, b| {
        let mut tape = GradientTape::new();
        tape.watch([x]);
        let y = (x.layer_norm(b, b, 1e-5)?.matmul(w)? + x)?;
        let [dx] = tape.gradient(&y.square()?.sum_all()?, [x])?;
        dx.tensor()
    })
}

/// What a function makes on the device and in host memory, whether a product takes up the step behind it, and predicted bytes.
fn same_on_both(
    given: [Tensor; 3],
    layer: fn(&Tensor, &Tensor, &Tensor) -> Result<Tensor>,
) -> Result<()> {
    let layer = || function(move |(x, w, b): (Tensor, Tensor, Tensor)| layer(&x, &w, &b));
    let [x, w, b] = given.clone();
    let expected = layer().call((x, w, b))?.to_vec::<f32>()?;
    let _scope = device::scope("cuda:0")?;
    let [x, w, b] = given.map(|t| t.to("cuda:0"));
    let (on_device, given) = (layer(), (x?, w?, b?));
    let plan = on_device.plan(&given)?;
    let got = on_device.call(given.clone())?.to_vec::<f32>()?;
    let joined = plan.steps.iter().any(|step| step.epilogue.is_some());
    // Whole numbers have no rounding; sums of others are added up in another order.
    let is_whole = expected.iter().all(|x| x.fract() == 0.0);
    let close = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5 * b.abs().max(1.0);
    let same = got == expected || !is_whole && got.iter().zip(&expected).all(close);
    println!("joined: {joined}, the same: {same}");
    assert_eq!(on_device.last_run().unwrap().measured.used, plan.peak());
    Ok(())
}

/// The head of a model of 1,025 words, in bf16: its loss and gradients beside those of the CPU.
fn odd() -> Result<()> {
    const WORDS: i64 = 1025;
    let counted = |rows: i64, width: i64, by: i64| -> Result<Tensor> {
        let numbers = (0..rows * width).map(|i| ((i * by % 7 - 3) as f32) / 64.0);
        tensor(numbers.collect::<Vec<_>>())?.reshape([rows, width])?.cast(DType::BF16)
    };
    let labels = tensor((0..512).map(|i| i * 37 % WORDS).collect::<Vec<i64>>())?;
    let head = || {
        function(|(x, table, labels): (Tensor, Tensor, Tensor)| -> Result<[Tensor; 3]> {
            let mut tape = GradientTape::new();
            tape.watch([&x, &table]);
            let logits = x.matmul(&table.transpose(&[1, 0])?)?;
            let loss = logits.sparse_cross_entropy(&labels)?.sum_all()?;
            let [dx, dtable] = tape.gradient(&loss, [&x, &table])?;
            Ok([loss, dx.tensor()?, (dtable.tensor()? * 0.5)?])
        })
    };
    let (x, table) = (counted(512, 1024, 5)?, counted(WORDS, 1024, 3)?);
    let here = head().call((x.clone(), table.clone(), labels.clone()))?;
    let there = head();
    let given = (x.to("cuda:0")?, table.to("cuda:0")?, labels.to("cuda:0")?);
    let plan = there.plan(&given)?;
    let made = there.call(given)?;
    assert_eq!(there.last_run().unwrap().measured.used, plan.peak());
    for (here, there) in here.iter().zip(&made) {
        let numbers = |t: &Tensor| t.cast(DType::F32)?.to_vec::<f32>();
        let (here, there) = (numbers(here)?, numbers(there)?);
        let most = here.iter().fold(0f32, |most, x| most.max(x.abs()));
        let off = here.iter().zip(&there).fold(0f32, |most, (a, b)| most.max((a - b).abs()));
        println!("near: {}, {off} of {most}", off <= most / 64.0);
    }
    Ok(())
}

/// What the compiler refuses, or the library is missing for; what runs before runs after.
fn unmade() -> Result<()> {
    let x = ones([3])?.to("cuda:0")?;
    println!("went on: {}", numbers(&(&x + &x)?)?);
    let softmax = x.softmax(0).and_then(|y| numbers(&y));
    println!("softmax: {}", softmax.unwrap_or_else(|e| e.to_string()));
    let a = ones([2, 2])?.to("cuda:0")?;
    let product = a.matmul(&a).and_then(|y| numbers(&y));
    println!("product: {}", product.unwrap_or_else(|e| e.to_string()));
    println!("went on: {}", numbers(&(&x + &x)?)?);
    Ok(())
}

/// A call that takes more than there is.
fn no_room() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let v = Variable::new("v", ones([3])?)?;
    let step = |n: i64| {
        let v = v.clone();
        function(move |x: Tensor| -> Result<Tensor> {
            v.assign_add(&x)?;
            let wide = (&x.sum_all()? + &range(0, n, 1)?.cast(DType::F32)?)?;
            wide.cumsum(0)?.sum_all()
        })
    };
    println!("refused: {}", step(32 << 20).call(ones([3])?).unwrap_err());
    println!("before: {}", numbers(&v.read()?)?);
    step(8).call(ones([3])?)?;
    println!("after: {}", numbers(&v.read()?)?);
    Ok(())
}

fn compute() -> Result<()> {
    let x = tensor([1.0f32, 2.0, 3.0])?.to("cuda:0")?;
    let step = function(|x: Tensor| (x * 2.0)? + 1.0);
    match step.call(x) {
        Ok(made) => println!("computed: {}", numbers(&made)?),
        Err(error) => println!("refused: {error}"),
    }
    Ok(())
}

/// A launch that fails while values wait in host memory.
fn fails_late() -> Result<()> {
    let here = ones([3])?;
    let before = memory::info("cpu:0")?.in_use;
    println!("lost: {}", spill().unwrap_err());
    println!("held by the host as before: {}", memory::info("cpu:0")?.in_use == before);
    println!("on the host: {}", numbers(&(&(&here + &here)? + &here)?)?);
    Ok(())
}

/// Steps of training whose values wait in host memory: the bits of those that keep them.
fn spill() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let x = full(0.01, DType::F32, [256, 64])?;
    let x = (&x + &x)?;
    let run = |budget: Option<Bytes>| -> Result<(Vec<Vec<f32>>, Bytes, Vec<Bytes>)> {
        let held = (0..6).map(|i| {
            Variable::new(&format!("w{i}"), full(0.01 * f64::from(i + 1), DType::F32, [64, 64])?)
        });
        let held = held.collect::<Result<Vec<_>>>()?;
        let step = function({
            let held = held.clone();
            move |x: Tensor| -> Result<Tensor> {
                let mut tape = GradientTape::new();
                let mut h = x;
                for w in &held {
                    h = h.matmul(&w.read()?)?.tanh()?;
                }
                let loss = h.square()?.sum_all()?;
                for (w, gradient) in held.iter().zip(tape.gradient(&loss, &held)?) {
                    w.assign_sub(&(gradient.tensor()? * 0.1)?)?;
                }
                Ok(loss)
            }
        })
        .exact()
        .budget(budget.unwrap_or(Bytes::mib(1 << 10)))?;
        let prices = step.prices(&x)?;
        let spills = prices.iter().filter(|price| !price.fitted.spilled.is_zero());
        let budgets = spills.map(|price| price.peak).collect();
        let mut spilled = Bytes::ZERO;
        for _ in 0..3 {
            let plan = step.plan(&x)?;
            let host = memory::info("cpu:0")?.in_use;
            memory::reset_peak("cpu:0")?;
            step.call(x.clone())?;
            assert_eq!(memory::info("cpu:0")?.peak - host, plan.host_bytes());
            let measured = step.last_run().unwrap().measured;
            assert_eq!((measured.used, measured.obtained), (plan.peak(), plan.obtains()));
            spilled = measured.spilled;
        }
        let values = held.iter().map(|w| w.read()?.to_vec()).collect::<Result<_>>()?;
        Ok((values, spilled, budgets))
    };
    let (kept, nothing, budgets) = run(None)?;
    assert!(nothing.is_zero());
    for budget in budgets {
        let (waited, spilled, _) = run(Some(budget))?;
        println!("spilled {spilled}, the same: {}", waited == kept);
    }
    Ok(())
}

/// Rows that a mask selects: how many there are is read from the device.
fn rows() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0], [5.0, 6.0]])?;
    let step =
        function(|(x, mask): (Tensor, Tensor)| -> Result<Tensor> { x.boolean_mask(&mask)? * 10.0 });
    for mask in [[true, false, true], [false; 3], [true; 3]] {
        let mask = tensor(mask)?;
        println!("taken: {}.", numbers(&x.boolean_mask(&mask)?)?);
        println!("planned: {}.", numbers(&step.call((x.clone(), mask.clone()))?)?);
        println!("at: {:?}", mask.nonzero()?.to_vec::<i64>()?);
    }
    Ok(())
}

/// More tensors than a limit has room for: they come back as they were.
fn evict() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let sizes = [1 << 20];
    let held = (0..8).map(|i| tensor(vec![2.0 * i as f32; sizes[0]])?.to("cuda:0"));
    memory::set_limit("cuda:0", Some(Bytes::mib(12)))?;
    let held: Vec<Tensor> = held.collect::<Result<_>>()?;
    let away = memory::info("cuda:0")?.away;
    let mut same = true;
    for (i, one) in held.iter().enumerate() {
        same &= one.to_vec::<f32>()? == vec![2.0 * i as f32; sizes[0]];
    }
    println!("{away} away, the same: {same}");
    Ok(())
}

fn fails(folder: &Path) -> Result<()> {
    let file = folder.join("saved.npy");
    let x = ones([3])?.to("cuda:0")?;
    let v = Variable::new("v", x.clone())?;
    save_npy(&file, &v.read()?)?;
    // Some launches that work, and one that does not.
    let mut sum = x.clone();
    let failed = (0..100).find_map(|_| {
        sum = (&sum + &x).unwrap();
        sum.to_vec::<f32>().err()
    });
    println!("first: {}", failed.unwrap());
    println!("then: {}", x.to_vec::<f32>().unwrap_err());
    println!("and: {}", full(1, DType::F32, [1 << 20])?.to("cuda:0").unwrap_err());
    let here = ones([3])?;
    println!("on the host: {}", numbers(&(&(&here + &here)? + &here)?)?);
    println!("restored: {}", numbers(&read_npy(&file)?)?);
    Ok(())
}

/// Steps take the time of the device's clock: of the double half a millisecond from any moment to any other.
fn timeline() -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let step = function(|x: Tensor| -> Result<Tensor> {
        fori_loop(0, 3, (x * 2.0)?, |_, x: Tensor| (x + 1.0)?.sum(0)?.broadcast_to([4]))
    });
    step.call(ones([4])?)?;
    let recording = memory::record("cuda:0")?;
    step.call(ones([4])?)?;
    let timeline = recording.finish();
    let call = &timeline.calls[0];
    assert!(call.steps.iter().all(|end| *end == 500_000), "{:?}", call.steps);
    for step in &call.inside {
        println!("{} x {} in {} us", step.op, step.runs, step.nanoseconds / 1000);
    }
    Ok(())
}

/// Counts its steps in a variable, and saves it every ten.
fn train(folder: &Path, from: usize, to: usize) -> Result<()> {
    let _scope = device::scope("cuda:0")?;
    let file = folder.join("training.npy");
    let v = Variable::new("v", full(from as f32, DType::F32, [3])?)?;
    let step = function({
        let v = v.clone();
        move |x: Tensor| -> Result<Tensor> {
            v.assign_add(&x)?;
            v.read()
        }
    });
    for k in from + 1..=to {
        let made = step.call(ones([3])?)?;
        if k % 10 == 0 {
            save_npy(&file, &v.read()?)?;
        }
        println!("step {k}");
        if k == to {
            println!("ended at step {k}: {}", numbers(&made)?);
        }
    }
    Ok(())
}

fn go_on(folder: &Path) -> Result<()> {
    let v = read_npy(folder.join("training.npy"))?;
    let at = v.to_vec::<f32>()?[0] as usize;
    println!("restored at step {at}: {}", numbers(&v)?);
    train(folder, at, at + 10)
}

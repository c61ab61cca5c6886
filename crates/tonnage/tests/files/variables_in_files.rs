//! Variables whose values are stored in files: the same numbers as in memory, in the memory that the plan says.

use tonnage::optim::Optimizer;
use tonnage::{
    Conv, DType, Elementwise, Function, GradientTape, RandomKey, Result, Tensor, Variable, cond,
    fori_loop, function, tensor, variables_in_files, zeros,
};

const WIDE: usize = 384;
const DEEP: usize = 4;

fn weight(i: u32) -> Result<Tensor> {
    let random = RandomKey::new(u64::from(i)).normal([WIDE, WIDE], DType::F32)?;
    random * 0.08
}

fn layers(in_files: bool) -> Result<Vec<Variable>> {
    let make = || (0..DEEP as u32).map(|i| Variable::new(&format!("w{i}"), weight(i)?)).collect();
    if in_files { variables_in_files(make) } else { make() }
}

fn batch() -> Result<Tensor> {
    // Bytes, as a user's batch is.
    tensor(RandomKey::new(99).normal([16, WIDE], DType::F32)?.to_vec::<f32>()?)?.reshape([16, WIDE])
}

fn training<'a>(
    weights: &'a [Variable],
    optimizer: &'a Optimizer,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + 'a> {
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in weights {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        optimizer.apply(weights, &tape.gradient(&loss, weights)?)?;
        Ok(loss)
    })
}

#[test]
fn training_gives_the_bits_that_it_gives_in_memory() -> Result<()> {
    let optimizers: [fn() -> Optimizer; 3] = [
        || Optimizer::sgd(0.1),
        || Optimizer::adamw(0.01, 0.01),
        || Optimizer::adam(0.01).clip_by_global_norm(0.5).averages(0.9),
    ];
    for make in optimizers {
        let mut found = Vec::new();
        for in_files in [false, true] {
            let (weights, optimizer) = (layers(in_files)?, make());
            let step = training(&weights, &optimizer);
            let losses: Vec<f32> =
                (0..4).map(|_| step.call(batch()?)?.scalar()).collect::<Result<_>>()?;
            let values: Vec<Vec<f32>> =
                weights.iter().map(|w| w.read()?.to_vec()).collect::<Result<_>>()?;
            found.push((losses, values));
        }
        assert!(found[0].0[3] < found[0].0[0]);
        assert_eq!(found[0], found[1]);
    }
    Ok(())
}

#[test]
fn what_is_measured_is_what_was_planned_and_less_than_the_model() -> Result<()> {
    let (weights, optimizer) = (layers(true)?, Optimizer::adam(0.01));
    optimizer.build(&weights)?;
    let step = training(&weights, &optimizer);
    let x = batch()?;
    let model = (DEEP * WIDE * WIDE * 4) as u64;
    for iteration in 0..3 {
        let plan = step.plan(&x)?;
        // The weights and both moments.
        assert_eq!(plan.writes().get(), 3 * model, "iteration {iteration}");
        assert!(plan.reads().get() >= 2 * model, "iteration {iteration}");
        assert!(plan.peak().get() < 2 * model, "iteration {iteration}: {}", plan.peak());
        step.call(x.clone())?;
        let ran = step.last_run().unwrap();
        assert_eq!(ran.measured.used, plan.peak(), "iteration {iteration}");
        assert!(ran.measured.used.get() < 2 * model);
    }
    assert!(weights.iter().all(|w| w.bytes().is_zero()));
    Ok(())
}

#[test]
fn a_budget_below_the_weights_is_met() -> Result<()> {
    let (weights, optimizer) = (layers(true)?, Optimizer::adam(0.01));
    let step = training(&weights, &optimizer).budget("1800KiB")?;
    let x = batch()?;
    for _ in 0..2 {
        let plan = step.plan(&x)?;
        assert!(plan.peak() <= "1800KiB".parse()?);
        step.call(x.clone())?;
        assert_eq!(step.last_run().unwrap().measured.used, plan.peak());
    }
    // The time of the files is said beforehand.
    let price = step.prices(&x)?[0].fitted.seconds;
    let in_memory = layers(false)?;
    let other = Optimizer::adam(0.01);
    let without = training(&in_memory, &other).prices(&x)?[0].fitted.seconds;
    assert!(price > without, "{price} {without}");
    Ok(())
}

/// A convolution needs its filters in memory: one layer's at a time.
#[test]
fn layers_that_need_their_weights_whole_hold_them_one_at_a_time() -> Result<()> {
    let filters = |in_files: bool| {
        let make = || {
            let one = |i| RandomKey::new(i).normal([3, 3, 128, 128], DType::F32)? * 0.03;
            (0..4).map(|i| Variable::new(&format!("f{i}"), one(i)?)).collect::<Result<Vec<_>>>()
        };
        if in_files { variables_in_files(make) } else { make() }
    };
    let x = RandomKey::new(9).normal([1, 6, 6, 128], DType::F32)?.to_vec::<f32>()?;
    let x = tensor(x)?.reshape([1, 6, 6, 128])?;
    let mut found = Vec::new();
    for in_files in [false, true] {
        let filters = filters(in_files)?;
        let step = function(|x: Tensor| {
            let mut tape = GradientTape::new();
            let mut h = x;
            for f in &filters {
                h = h.conv2d(&f.read()?, &Conv::same())?.tanh()?;
            }
            let loss = h.square()?.mean_all()?;
            Optimizer::sgd(0.1).apply(&filters, &tape.gradient(&loss, &filters)?)?;
            Ok(loss)
        });
        let plan = step.plan(&x)?;
        step.call(x.clone())?;
        assert_eq!(step.last_run().unwrap().measured.used, plan.peak());
        // Two filters at most: one that is read, and a gradient.
        assert!(!in_files || plan.peak() < "1700KiB".parse()?, "{}", plan.peak());
        let loss = step.call(x.clone())?.scalar::<f32>()?;
        found.push((loss, filters[0].read()?.to_vec::<f32>()?));
    }
    assert_eq!(found[0], found[1]);
    Ok(())
}

#[test]
fn updates_at_once_and_what_was_read_before() -> Result<()> {
    let value = RandomKey::new(5).normal([400, 400], DType::F32)?;
    let (here, there) = (
        Variable::new("here", value.clone())?,
        variables_in_files(|| Variable::new("there", value))?,
    );
    assert!(there.is_in_files() && !here.is_in_files());
    assert_eq!(format!("{there:?}"), "Variable(`there`, f32[400, 400], in files)");
    let before = there.read()?;
    let first = before.to_vec::<f32>()?;
    let rows = tensor([3i32, 7, 3])?;
    for v in [&here, &there] {
        v.assign_add(&tensor(2.0f32)?)?;
        v.assign_sub(&RandomKey::new(6).normal([400], DType::F32)?)?;
        v.assign_rows(&rows, &zeros([3, 400])?)?;
        v.assign_add(&(v.read()? * 0.5)?)?;
    }
    assert_eq!(here.read()?.to_vec::<f32>()?, there.read()?.to_vec::<f32>()?);
    // Who read it before keeps what it read.
    assert_eq!(before.to_vec::<f32>()?, first);
    there.assign(&tensor(4.0f32)?)?;
    assert!(there.read()?.to_vec::<f32>()?.iter().all(|x| *x == 4.0));
    assert!(there.bytes().is_zero());
    Ok(())
}

#[test]
fn loops_branches_and_several_updates_in_a_call() -> Result<()> {
    let make = || Variable::new("v", RandomKey::new(1).normal([400, 400], DType::F32)?);
    let (here, there) = (make()?, variables_in_files(make)?);
    let mut found = Vec::new();
    for v in [&here, &there] {
        let run = function(|x: Tensor| {
            v.assign_add(&x)?;
            let between = v.read()?.sum_all()?;
            fori_loop(0, 3, tensor(0.0f32)?, |_, h: Tensor| {
                v.assign(&(v.read()? * 0.5)?)?;
                h + 1.0
            })?;
            let changed = || {
                v.assign_sub(&v.read()?.square()?)?;
                tensor(1.0f32)
            };
            cond(&tensor(0.0f32)?.less(&x.sum_all()?)?, changed, || tensor(0.0f32))?;
            v.assign_add(&tensor(1.0f32)?)?;
            Ok((between, v.read()?.mean_all()?))
        });
        let (a, b) = run.call(RandomKey::new(2).uniform([400, 400], DType::F32)?)?;
        found.push((a.scalar::<f32>()?, b.scalar::<f32>()?, v.read()?.to_vec::<f32>()?));
    }
    assert_eq!(found[0], found[1]);
    Ok(())
}

#[test]
fn a_call_that_fails_leaves_the_values_as_they_were() -> Result<()> {
    let v = variables_in_files(|| Variable::new("v", zeros([400, 400])?))?;
    v.assign_add(&tensor(1.0f32)?)?;
    let run = function(|at: Tensor| {
        v.assign_add(&tensor(1.0f32)?)?;
        v.read()?.gather(&at, 0)
    });
    run.call(tensor([5i32])?)?;
    assert_eq!(v.read()?.sum_all()?.scalar::<f32>()?, 320_000.0);
    assert!(run.call(tensor([1000i32])?).is_err());
    assert_eq!(v.read()?.sum_all()?.scalar::<f32>()?, 320_000.0);
    Ok(())
}

#[test]
fn small_ones_stay_in_memory_and_sessions_have_none() -> Result<()> {
    let (small, large) = variables_in_files(|| {
        Ok::<_, tonnage::Error>((
            Variable::new("bias", zeros([100])?)?,
            Variable::new("weight", zeros([400, 400])?)?,
        ))
    })?;
    assert!(!small.is_in_files() && large.is_in_files());
    assert!(!Variable::new("after", zeros([400, 400])?)?.is_in_files());
    let graph = tonnage::Graph::new();
    let made = graph.build(|| variables_in_files(|| Variable::new("v", zeros([400, 400])?)));
    let error = made.unwrap_err().to_string();
    assert!(error.contains("lives in sessions"), "{error}");
    Ok(())
}

/// Under a budget the batch runs in pieces, and what goes to a file waits for all of them.
#[test]
fn a_batch_in_pieces_leaves_the_whole_value() -> Result<()> {
    let weight = (RandomKey::new(3).normal([32, 32], DType::F32)? * 0.2)?;
    let weight = tensor(weight.to_vec2::<f32>()?)?;
    let x = tensor(RandomKey::new(4).normal([8192, 32], DType::F32)?.to_vec2::<f32>()?)?;
    let mut found = Vec::new();
    for in_files in [false, true] {
        let make = || Variable::new("v", zeros([8192, 32])?);
        let v = if in_files { variables_in_files(make)? } else { make()? };
        let run = function(|x: Tensor| {
            let h = (0..3).try_fold(x, |h, _| h.matmul(&weight)?.tanh())?;
            v.assign_add(&h)
        });
        let run = match in_files {
            true => run.budget("2700KiB")?,
            false => run,
        };
        for _ in 0..2 {
            let plan = run.plan(&x)?;
            run.call(x.clone())?;
            assert_eq!(run.last_run().unwrap().measured.used, plan.peak());
        }
        found.push(v.read()?.to_vec::<f32>()?);
    }
    let near = |(a, b): (&f32, &f32)| (a - b).abs() <= 1e-5;
    assert!(found[0].iter().zip(&found[1]).all(near));
    Ok(())
}

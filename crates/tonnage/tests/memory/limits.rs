//! A device's limit: functions are planned into what it leaves, eager tensors leave memory and come back, and
//! results stay the same to the bit.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, Context, DType, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor,
    Variable, Watched, function, memory, range, set_seed, tensor,
};

use crate::common::{in_use, own_context};

const KIB: u64 = 1024;

/// Takes the limit off again, whatever happens.
struct Limited;

impl Limited {
    fn to(bytes: Bytes) -> Limited {
        memory::set_limit("cpu:0", Some(bytes)).unwrap();
        Limited
    }

    /// To so much more than is in use.
    fn leaving(bytes: Bytes) -> Limited {
        Limited::to(in_use() + bytes)
    }
}

impl Drop for Limited {
    fn drop(&mut self) {
        memory::set_limit("cpu:0", None).unwrap();
    }
}

/// Numbers in memory, other ones for other seeds.
fn numbers(rows: usize, columns: usize, seed: usize) -> Tensor {
    let at = |i: usize| ((i * 7919 + seed * 104_729) % 1013) as f32 / 506.5 - 1.0;
    let values: Vec<f32> = (0..rows * columns).map(at).collect();
    tensor(values).unwrap().reshape([rows as i64, columns as i64]).unwrap()
}

fn peak() -> Bytes {
    memory::info("cpu:0").unwrap().peak
}

const WIDTH: usize = 32;

fn weights(layers: usize) -> Vec<Variable> {
    let value = |i| (numbers(WIDTH, WIDTH, i) * 0.3).unwrap();
    (0..layers).map(|i| Variable::new(&format!("w{i}"), value(i)).unwrap()).collect()
}

/// One step of training with momentum, which captures a constant.
fn step(
    weights: &[Variable],
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let held = weights.to_vec();
    let zero = || (numbers(WIDTH, WIDTH, 0) * 0.0).unwrap();
    let momentum: Vec<Variable> =
        held.iter().map(|w| Variable::new(&format!("m_{}", w.name()), zero()).unwrap()).collect();
    let captured = numbers(1, WIDTH, 99);
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in &held {
            h = (h.matmul(&w.read()?)? + &captured)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        for ((w, m), grad) in held.iter().zip(&momentum).zip(tape.gradient(&loss, &sources)?) {
            m.assign(&((m.read()? * 0.9)? + grad.tensor()?)?)?;
            w.assign_sub(&(m.read()? * 0.1)?)?;
        }
        Ok(loss)
    })
}

fn trained(limit: Option<u64>) -> (Vec<f32>, Vec<Vec<f32>>, usize) {
    let weights = weights(16);
    let step = step(&weights);
    let x = numbers(512, WIDTH, 5);
    let plan = step.plan(&x).unwrap();
    let before = in_use();
    let _limited = limit.map(|percent| {
        let part = plan.obtains().get() * percent / 100;
        Limited::leaving(Bytes::new(part))
    });
    memory::reset_peak("cpu:0").unwrap();
    let losses = (0..8).map(|_| step.call(x.clone()).unwrap().scalar::<f32>().unwrap()).collect();
    let values = weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect();
    if let Some(percent) = limit {
        assert!(peak() <= before + Bytes::new(plan.obtains().get() * percent / 100));
    }
    (losses, values, step.last_run().unwrap().fitted.map_or(0, |fitted| fitted.recomputed))
}

#[test]
fn a_function_without_a_budget_is_planned_into_what_the_limit_leaves() {
    let _context = own_context();
    let (losses, values, free) = trained(None);
    for percent in [100, 80, 60, 55] {
        let (less, same, recomputed) = trained(Some(percent));
        assert_eq!(less, losses, "at {percent}%");
        assert_eq!(same, values, "at {percent}%");
        assert_eq!(recomputed > free, percent < 100, "at {percent}%: {recomputed} nodes ran again");
    }
}

#[test]
fn what_a_call_takes_under_a_limit_is_what_its_plan_says() {
    let _context = own_context();
    let step = step(&weights(16));
    let x = numbers(512, WIDTH, 5);
    let free = step.plan(&x).unwrap();
    // Everything that a call needs is in its plan: arguments, variables, what was captured, momentum.
    let (wide, row) = (Bytes::of(WIDTH * WIDTH * 4), Bytes::of(WIDTH * 4));
    let variables: Bytes = (0..32).map(|_| wide).sum();
    assert_eq!(free.inputs, Bytes::of(512 * WIDTH * 4) + variables + row);
    let _limited = Limited::leaving(Bytes::new(free.obtains().get() * 6 / 10));
    let plan = step.plan(&x).unwrap();
    assert!(plan.peak() < free.peak());
    for _ in 0..2 {
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        drop(step.call(x.clone()).unwrap());
        assert_eq!(peak() - before, plan.obtains());
        let ran = step.last_run().unwrap();
        assert_eq!((ran.measured.used, ran.measured.obtained), (plan.peak(), plan.obtains()));
        assert_eq!(ran.fitted, plan.fitted);
        assert!(ran.seconds > 0.0 && ran.to_string().contains("nodes recomputed"), "{ran}");
    }
}

#[test]
fn what_is_reserved_stays_within_a_budget_whatever_is_warm() {
    let _context = own_context();
    let x = numbers(512, WIDTH, 5);
    let free = step(&weights(16)).plan(&x).unwrap();
    let step = step(&weights(16)).budget(Bytes::new(free.peak().get() * 6 / 10)).unwrap();
    let plan = step.plan(&x).unwrap();
    let step = step.budget(plan.peak()).unwrap();
    let others = in_use() - plan.inputs;
    for i in 0..5 {
        // Blocks of other sizes that stay warm after they are dropped.
        let warm: Vec<Tensor> = (1..5).map(|n| numbers(64 * n, 128, i)).collect();
        drop(warm);
        memory::reset_peak("cpu:0").unwrap();
        let warm = memory::info("cpu:0").unwrap().cached;
        drop(step.call(x.clone()).unwrap());
        let info = memory::info("cpu:0").unwrap();
        let most = plan.peak().max(plan.inputs + warm) + others;
        assert!(info.peak_reserved <= most, "{info}\n{most} with {others} of others");
        assert_eq!(step.last_run().unwrap().measured.obtained, plan.obtains());
    }
}

#[test]
fn a_limit_that_moves_by_a_few_bytes_is_not_another_plan() {
    let _context = own_context();
    let step = step(&weights(16));
    let x = numbers(512, WIDTH, 5);
    let obtains = step.plan(&x).unwrap().obtains().get();
    let take = |bytes: u64| {
        let _limited = Limited::leaving(Bytes::new(bytes));
        step.call(x.clone()).unwrap();
        step.graph_bytes()
    };
    let sweep = || -> Vec<Bytes> { (0..20).map(|i| take(obtains * 6 / 10 + 128 * i)).collect() };
    let mut seen = sweep();
    let held = *seen.last().unwrap();
    seen.dedup();
    assert!(seen.len() <= 3, "so many points within 3 KiB: {seen:?}");
    assert_eq!(sweep(), [held; 20]);
    // What it holds of plans is counted, and given up with them.
    assert!(held > step.plan(&x).unwrap().bytes());
}

#[test]
fn the_smaller_of_budget_and_limit_counts() {
    let _context = own_context();
    let x = numbers(512, WIDTH, 5);
    let free = step(&weights(16)).plan(&x).unwrap();
    let budget = Bytes::new(free.peak().get() * 7 / 10);
    let budgeted = step(&weights(16)).budget(budget).unwrap();
    let wide = Limited::leaving(free.obtains());
    let under_budget = budgeted.plan(&x).unwrap().peak();
    assert!(under_budget <= budget);
    drop(wide);
    let _narrow = Limited::leaving(Bytes::new(free.obtains().get() * 55 / 100));
    let under_limit = budgeted.plan(&x).unwrap();
    assert!(under_limit.obtains() <= Bytes::new(free.obtains().get() * 55 / 100));
    assert!(under_limit.peak() < under_budget);
    budgeted.call(x).unwrap();
}

/// What was planned for the same room by other levers is not taken.
#[test]
fn plans_under_a_limit_follow_what_is_allowed() {
    let _context = own_context();
    let x = numbers(512, WIDTH, 5);
    fn least<F: Fn(Tensor) -> Result<Tensor>>(
        step: &Function<Tensor, Tensor, F>,
        x: &Tensor,
    ) -> Bytes {
        let _limited = Limited::leaving(Bytes::new(KIB));
        let error = step.plan(x).unwrap_err();
        let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else {
            panic!("{error}");
        };
        *least
    }
    let weights = weights(24);
    let step = step(&weights);
    let with = least(&step, &x);
    let limited = Limited::to(with);
    step.call(x.clone()).unwrap();
    drop(limited);
    let step = step.no_spill();
    let without = least(&step, &x);
    assert!(without > with, "{without} without a file, {with} with one");
    let _limited = Limited::to(with);
    assert!(step.call(x.clone()).is_err());
}

#[test]
fn a_call_that_the_limit_leaves_no_room_for_is_refused_before_it_starts_and_the_least_limit_works()
{
    let _context = own_context();
    let weights = weights(8);
    let step = step(&weights);
    let x = numbers(512, WIDTH, 5);
    let before: Vec<Vec<f32>> =
        weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect();
    // Tensors below 32 KiB stay where they are.
    let others: Vec<Tensor> = (0..20).map(|i| numbers(32, 128, i)).collect();
    let held = in_use();
    let limited = Limited::leaving(Bytes::new(70 * KIB));
    memory::reset_peak("cpu:0").unwrap();
    let error = step.call(x.clone()).unwrap_err();
    let ErrorKind::OverBudget { budget, least: Some(least), shortage, .. } = error.kind() else {
        panic!("{error}");
    };
    assert_eq!((*budget, peak()), (held + Bytes::new(70 * KIB), held), "{error}");
    // 320 KiB on one line of this file, and the inputs of the call are not among them.
    let line = &shortage.holders[0];
    assert_eq!((line.bytes, line.buffers), (Bytes::new(320 * KIB), 20), "{error}");
    assert!(line.what.contains(file!()), "{error}");
    for (w, old) in weights.iter().zip(&before) {
        assert_eq!(w.read().unwrap().to_vec::<f32>().unwrap(), *old);
    }
    let least = *least;
    drop(limited);
    let limited = Limited::to(least);
    step.call(x.clone()).unwrap();
    drop(limited);
    let _limited = Limited::to(Bytes::new(least.get() - 1));
    assert!(step.call(x).is_err());
    drop(others);
}

#[test]
fn eager_tensors_leave_memory_under_a_limit_and_come_back_as_they_were() {
    let _context = own_context();
    let started = in_use();
    let many = || -> Vec<Tensor> { (0..16).map(|i| numbers(256, 128, i)).collect() };
    let sums = |tensors: &[Tensor]| -> Vec<f32> {
        // All pairs, so that everybody comes back again and again.
        let mut all = Vec::new();
        for a in tensors {
            for b in tensors.iter().rev().step_by(3) {
                all.push((a * b).unwrap().sum_all().unwrap().scalar::<f32>().unwrap());
            }
        }
        all
    };
    let free = sums(&many());
    // 16 tensors of 128 KiB, and room for 5.
    let limited = Limited::leaving(Bytes::new(5 * 128 * KIB));
    memory::reset_peak("cpu:0").unwrap();
    let tensors = many();
    assert_eq!(sums(&tensors), free);
    let info = memory::info("cpu:0").unwrap();
    assert!(info.away >= Bytes::new(11 * 128 * KIB), "{info}");
    assert!(info.peak <= info.limit.unwrap() && info.peak_reserved <= info.limit.unwrap());
    assert!(info.to_string().contains("away 1."), "{info}");
    drop(limited);
    for (i, tensor) in tensors.iter().enumerate() {
        let same = numbers(256, 128, i);
        assert_eq!(tensor.to_vec::<f32>().unwrap(), same.to_vec::<f32>().unwrap());
    }
    drop(tensors);
    assert_eq!((in_use(), memory::info("cpu:0").unwrap().away), (started, Bytes::ZERO));
}

#[test]
fn a_recipe_that_became_resident_leaves_first_and_is_recomputed() {
    let _context = own_context();
    let drawn = range(0.0f32, 1024.0, 1.0).unwrap().reshape([32, 32]).unwrap();
    let wide = range(0.0f32, 32_768.0, 1.0).unwrap().reshape([32, 1024]).unwrap();
    let other = numbers(256, 128, 1);
    let first = drawn.matmul(&wide).unwrap();
    assert!(!wide.is_recipe());
    // Used after `other`, and still the first to go: dropping it costs nothing.
    let limited = Limited::leaving(Bytes::new(64 * KIB));
    let held = in_use();
    let more = numbers(256, 128, 2);
    assert_eq!(memory::info("cpu:0").unwrap().away, Bytes::new(128 * KIB));
    assert_eq!((in_use(), wide.is_recipe()), (held, false));
    let recomputed = drawn.matmul(&wide).unwrap();
    assert_eq!(recomputed.to_vec::<f32>().unwrap(), first.to_vec::<f32>().unwrap());
    drop(limited);
    drop((other, more));
}

#[test]
fn an_eager_tape_trains_under_a_limit_to_the_same_bits() {
    let _context = own_context();
    let run = |limit: Option<u64>| {
        set_seed(3);
        let weights = weights(6);
        let x = numbers(512, WIDTH, 5);
        let _limited = limit.map(|kib| Limited::leaving(Bytes::new(kib * KIB)));
        memory::reset_peak("cpu:0").unwrap();
        let mut losses = Vec::new();
        for _ in 0..3 {
            let mut tape = GradientTape::new();
            let mut h = x.clone();
            for w in &weights {
                h = h.matmul(&w.read().unwrap()).unwrap().tanh().unwrap();
            }
            let loss = h.square().unwrap().mean_all().unwrap();
            let sources: Vec<&dyn Watched> = weights.iter().map(|w| w as &dyn Watched).collect();
            for (w, grad) in weights.iter().zip(tape.gradient(&loss, &sources).unwrap()) {
                w.assign_sub(&(grad.tensor().unwrap() * 0.1).unwrap()).unwrap();
            }
            losses.push(loss.scalar::<f32>().unwrap());
        }
        let values: Vec<Vec<f32>> =
            weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect();
        (losses, values, peak())
    };
    let (losses, values, free) = run(None);
    let (less, same, peak) = run(Some(280));
    assert!(peak < free, "{peak} and {free}");
    assert_eq!((less, same), (losses, values));
}

#[test]
fn variables_that_left_memory_are_updated_where_they_come_back() {
    let _context = own_context();
    let limited = Limited::leaving(Bytes::new(4 * 128 * KIB));
    let variables: Vec<Variable> =
        (0..8).map(|i| Variable::new(&format!("v{i}"), numbers(256, 128, i)).unwrap()).collect();
    for _ in 0..3 {
        for v in &variables {
            v.assign_add(&tensor(1.0f32).unwrap()).unwrap();
        }
    }
    for (i, v) in variables.iter().enumerate() {
        let mut expected: Vec<f32> = numbers(256, 128, i).to_vec().unwrap();
        expected.iter_mut().for_each(|x| *x = *x + 1.0 + 1.0 + 1.0);
        assert_eq!(v.read().unwrap().to_vec::<f32>().unwrap(), expected);
        assert_eq!(v.bytes(), Bytes::new(128 * KIB));
    }
    // Who holds what says so still, away or not.
    let held = memory::info("cpu:0").unwrap().holders;
    assert!(held.iter().any(|h| h.owner.kind == tonnage::Kind::Variable));
    drop(limited);
}

#[test]
fn what_cannot_be_evicted_is_still_an_error_and_leaks_nothing() {
    let _context = own_context();
    let before = in_use();
    {
        let _limited = Limited::leaving(Bytes::new(3 * 128 * KIB));
        let (a, b) = (numbers(256, 128, 1), numbers(256, 128, 2));
        // Both inputs are pinned, and result and inputs are more than there is.
        let _small: Vec<Tensor> = (0..12).map(|i| numbers(32, 128, i)).collect();
        let error = (&a + &b).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::OverBudget { .. }), "{error}");
    }
    assert_eq!(in_use(), before);
}

#[test]
fn threads_that_share_tensors_under_a_limit_neither_wait_for_ever_nor_differ() {
    let _context = own_context();
    let tensors: Vec<Tensor> = (0..12).map(|i| numbers(128, 128, i)).collect();
    let work = |at: usize| -> Vec<f32> {
        let pick = |i: usize| &tensors[(at * 5 + i * 7) % tensors.len()];
        (0..40)
            .map(|i| match (pick(i) * pick(i + 1)).and_then(|p| p.sum_all()) {
                Ok(sum) => sum.scalar::<f32>().unwrap(),
                // All that is in memory is pinned by the others at this moment.
                Err(error) => match error.kind() {
                    ErrorKind::OverBudget { .. } => f32::NAN,
                    _ => panic!("{error}"),
                },
            })
            .collect()
    };
    let free: Vec<Vec<f32>> = (0..4).map(&work).collect();
    let limited = {
        // What is there already counts: all but 14 of 64 KiB have to go.
        let most = in_use() + Bytes::new(2 * 64 * KIB);
        Limited::to(most)
    };
    let got: Vec<Vec<f32>> = std::thread::scope(|scope| {
        let work = |at| {
            let (work, context) = (&work, Context::current());
            scope.spawn(move || {
                let _entered = context.enter();
                work(at)
            })
        };
        let threads: Vec<_> = (0..4).map(work).collect();
        threads.into_iter().map(|t| t.join().unwrap()).collect()
    });
    for (a, b) in got.iter().flatten().zip(free.iter().flatten()) {
        assert!(a.is_nan() || a == b, "{a} and {b}");
    }
    let worked = got.iter().flatten().filter(|x| !x.is_nan()).count();
    assert!(worked > 100, "{worked} of 160");
    drop(limited);
    assert_eq!(tensors[0].dtype(), DType::F32);
}

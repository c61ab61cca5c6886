//! Optimizers: against PyTorch's, in eager mode and planned; by rows; in memory; at 16 bits; and refused.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod formulas;
mod rows;

use tonnage::optim::{
    Adafactor, Adagrad, Adam, Adam8Bit, ByRows, Lion, LossScale, Next, Now, Optimizer, RmsProp,
    Rule, Schedule, Sgd, Slot,
};
use tonnage::{
    Bytes, DType, Elementwise, Gradient, GradientTape, Kind, Result, Tensor, TensorType, Variable,
    function, memory, random_normal, set_seed, tensor, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

/// PyTorch's steps; cases.py makes them.
const CASES: &str = include_str!("cases.txt");

fn optimizer(case: &str) -> Option<Optimizer> {
    Some(match case {
        "sgd" => Optimizer::sgd(0.1),
        "momentum" => Optimizer::new(Sgd { momentum: 0.9, nesterov: false }, 0.1),
        "nesterov_l2" => Optimizer::new(Sgd { momentum: 0.8, nesterov: true }, 0.1).l2(0.05),
        "adam" => Optimizer::adam(0.05),
        "adamw" => {
            let rule = Adam { beta1: 0.8, beta2: 0.99, ..Adam::default() };
            Optimizer::new(rule, 0.05).weight_decay(0.1)
        }
        "adagrad" => Optimizer::new(Adagrad::default(), 0.3),
        "rmsprop" => Optimizer::new(RmsProp::default(), 0.01),
        "rmsprop_centered" => {
            let rule = RmsProp { centered: true, momentum: 0.5, ..RmsProp::default() };
            Optimizer::new(rule, 0.01)
        }
        "adafactor" => Optimizer::new(Adafactor::default(), 0.3),
        _ => return None,
    })
}

fn start() -> Variable {
    Variable::new("w", tensor([[1.0f64, -2.0, 0.5], [3.0, -0.25, 0.75]]).unwrap()).unwrap()
}

/// The gradient of cases.py.
fn gradient(w: &Variable, step: &Tensor) -> Result<Gradient> {
    let goal = tensor([[0.5f64, -1.0, 2.0], [1.0, 0.0, -3.0]])?;
    let half = (w.read()?.square()? * 0.5)?;
    Ok(Gradient::Dense((half - (goal * step)?)?))
}

#[test]
fn steps_are_those_of_pytorch_eager_and_planned() {
    let _context = own_context();
    for line in CASES.lines() {
        let mut words = line.split(' ');
        let case = words.next().unwrap();
        let expected: Vec<f64> = words.map(|word| word.parse().unwrap()).collect();
        let (eager, planned) = (start(), start());
        let (one, other) = (optimizer(case).unwrap(), optimizer(case).unwrap());
        let step = function(|step: Tensor| other.apply([&planned], &[gradient(&planned, &step)?]));
        for (i, expected) in expected.chunks(6).enumerate() {
            let number = tensor((i + 1) as f64).unwrap();
            one.apply([&eager], &[gradient(&eager, &number).unwrap()]).unwrap();
            step.call(number).unwrap();
            for w in [&eager, &planned] {
                let got = w.read().unwrap().to_vec::<f64>().unwrap();
                for (got, expected) in got.iter().zip(expected) {
                    assert!((got - expected).abs() < 1e-9, "{case} step {i}: {got} {expected}");
                }
            }
        }
        assert_eq!(one.steps().unwrap(), 5);
        assert_eq!(step.traces(), 1, "{case}");
    }
}

/// One element, by hand.
#[test]
fn lion_takes_steps_of_one_size() {
    let _context = own_context();
    let w = Variable::new("w", tensor([1.0f64]).unwrap()).unwrap();
    let lion = Optimizer::new(Lion::default(), 0.1).weight_decay(0.5);
    let (mut value, mut mean) = (1.0f64, 0.0f64);
    for gradient in [2.0, -0.1, -30.0] {
        lion.apply([&w], &[Gradient::Dense(tensor([gradient]).unwrap())]).unwrap();
        value = value * (1.0 - 0.1 * 0.5) - 0.1 * (0.9 * mean + 0.1 * gradient).signum();
        mean = 0.99 * mean + 0.01 * gradient;
    }
    close(&w.read().unwrap(), &[value], 1e-12);
}

fn lookup(table: &Variable, indices: &Tensor) -> Result<Gradient> {
    let mut tape = GradientTape::new();
    let rows = table.read()?.gather(indices, 0)?;
    tape.gradient(&rows.square()?.sum_all()?, table)
}

/// A rule that leaves a row with gradient 0 alone does the same by rows and on the whole.
#[test]
fn a_gradient_of_rows_steps_those_rows_however_often_they_occur() {
    let _context = own_context();
    let rules: [fn() -> Optimizer; 2] =
        [|| Optimizer::sgd(0.1), || Optimizer::new(Adagrad::default(), 0.3)];
    for make in rules {
        let values = tensor([[1.0f64, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]]).unwrap();
        let by_rows = Variable::new("rows", values.clone()).unwrap();
        let whole = Variable::new("whole", values).unwrap();
        let (one, other) = (make(), make());
        let step = function(|indices: Tensor| {
            let gradient = lookup(&by_rows, &indices)?;
            assert!(matches!(gradient, Gradient::Rows(_)));
            one.apply([&by_rows], &[gradient])
        });
        for indices in [[2i64, 0, 2], [3, 3, 3], [0, 2, 3]] {
            let indices = tensor(indices).unwrap();
            step.call(indices.clone()).unwrap();
            let dense = Gradient::Dense(lookup(&whole, &indices).unwrap().tensor().unwrap());
            other.apply([&whole], &[dense]).unwrap();
        }
        let expected = whole.read().unwrap().to_vec::<f64>().unwrap();
        close(&by_rows.read().unwrap(), &expected, 1e-12);
    }
}

#[test]
fn rows_that_are_not_asked_for_keep_their_state_of_adam() {
    let _context = own_context();
    let table = Variable::new("table", zeros([4, 2]).unwrap()).unwrap();
    let adam = Optimizer::adam(0.1);
    adam.apply([&table], &[Gradient::Dense(tensor([[1.0f32, 1.0]; 4]).unwrap())]).unwrap();
    let before = table.read().unwrap().to_vec::<f32>().unwrap();
    adam.apply([&table], &[lookup(&table, &tensor([1i64]).unwrap()).unwrap()]).unwrap();
    let after = table.read().unwrap().to_vec::<f32>().unwrap();
    assert_eq!([&before[..2], &before[4..]], [&after[..2], &after[4..]]);
    assert_ne!(before[2..4], after[2..4]);
}

fn loss(w: &Variable, x: &Tensor) -> Result<Tensor> {
    x.matmul(&w.read()?)?.square()?.mean_all()
}

/// The state is in the plan before the first step, under its own kind; and steps need nothing beside the gradient.
#[test]
fn state_is_planned_before_the_first_step_and_written_in_place() {
    let _context = own_context();
    let made = random_normal([64, 256], DType::F32).unwrap().to_vec2::<f32>().unwrap();
    let w = Variable::new("w", tensor(made).unwrap()).unwrap();
    let x = tensor(vec![vec![0.5f32; 64]; 8]).unwrap();
    let adam = Optimizer::adam(0.01);
    let plain = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.gradient(&loss(&w, &x)?, &w)?.tensor()
    });
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        let gradient = tape.gradient(&loss(&w, &x)?, &w)?;
        adam.apply([&w], &[gradient])
    });
    let state = adam.bytes([&w]).unwrap();
    assert_eq!(state.get(), 2 * 64 * 256 * 4);
    let foreseen = step.plan(&x).unwrap();
    let extra = foreseen.peak().get() - plain.plan(&x).unwrap().peak().get();
    // Beside the slots: the number of steps. The rate is never written, and stays a recipe.
    assert!(extra <= state.get() + 1024, "{foreseen}");
    let before = in_use();
    step.call(x.clone()).unwrap();
    let held = memory::info("cpu:0").unwrap();
    assert_eq!((held.in_use - before).get(), state.get() + 64);
    assert!(held.by_kind.contains(&(Kind::Optimizer, state + Bytes::new(64))), "{held:?}");
    call_checked(&step, &x);
    assert_eq!(step.traces(), 1);
}

#[test]
fn a_rate_changes_without_a_new_trace_and_schedules_follow_the_step() {
    let _context = own_context();
    let w = Variable::new("w", tensor([0.0f64]).unwrap()).unwrap();
    let sgd = Optimizer::sgd(1.0);
    let step = function(|g: Tensor| sgd.apply([&w], &[Gradient::Dense(g)]));
    let one = tensor([-1.0f64]).unwrap();
    step.call(one.clone()).unwrap();
    sgd.set_rate(0.25).unwrap();
    assert_eq!(sgd.rate().unwrap(), 0.25);
    step.call(one.clone()).unwrap();
    assert_eq!((step.traces(), w.read().unwrap().to_vec::<f64>().unwrap()), (1, vec![1.25]));

    let schedule = Schedule::Step { start: 1.0, every: 2, factor: 0.5 };
    let (v, sgd) =
        (Variable::new("v", tensor([0.0f64]).unwrap()).unwrap(), Optimizer::sgd(schedule));
    let step = function(|g: Tensor| sgd.apply([&v], &[Gradient::Dense(g)]));
    for expected in [1.0, 2.0, 2.5, 3.0, 3.25] {
        step.call(one.clone()).unwrap();
        assert_eq!(v.read().unwrap().to_vec::<f64>().unwrap(), [expected]);
    }
    let refused = sgd.set_rate(0.1).unwrap_err().to_string();
    assert!(refused.contains("Step"), "{refused}");
}

#[test]
fn schedules_give_the_rates_of_their_formulas() {
    let _context = own_context();
    let close = |schedule: &Schedule, step, expected: f64| {
        let got = schedule.rate(step).unwrap();
        assert!((got - expected).abs() < 1e-12, "{schedule:?} at {step}: {got}");
    };
    let exponential = Schedule::Exponential { start: 0.8, every: 10, factor: 0.5 };
    close(&exponential, 5, 0.8 * 0.5f64.sqrt());
    let cosine = Schedule::Cosine { start: 1.0, end: 0.2, steps: 8 };
    close(&cosine, 0, 1.0);
    close(&cosine, 2, 0.2 + 0.4 * (1.0 + (std::f64::consts::PI / 4.0).cos()));
    close(&cosine, 100, 0.2);
    let linear = Schedule::Linear { start: 1.0, end: 0.0, steps: 4 }.warm_up(4);
    for (step, expected) in [(0, 0.25), (3, 1.0), (4, 1.0), (5, 0.75), (9, 0.0)] {
        close(&linear, step, expected);
    }
}

/// Fits a line; the loss after some steps.
fn fitted(optimizer: &Optimizer, dtype: DType) -> f64 {
    set_seed(5);
    let w = Variable::new("w", zeros([32, 24]).unwrap().cast(dtype).unwrap()).unwrap();
    let x = random_normal([64, 32], DType::F32).unwrap();
    let goal = x.matmul(&random_normal([32, 24], DType::F32).unwrap()).unwrap();
    let step = function(|(x, goal): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        let guess = x.matmul(&w.read()?.cast(DType::F32)?)?;
        let loss = (guess - goal)?.square()?.mean_all()?;
        let gradient = tape.gradient(&loss, &w)?;
        optimizer.apply([&w], &[gradient])?;
        Ok(loss)
    });
    let mut last = 0.0;
    for _ in 0..150 {
        last = step.call((x.clone(), goal.clone())).unwrap().scalar::<f32>().unwrap().into();
    }
    last
}

#[test]
fn adam_of_8_bits_gets_where_adam_gets_with_a_quarter_of_its_state() {
    let _context = own_context();
    let (adam, small) = (Optimizer::adam(0.05), Optimizer::new(Adam8Bit::default(), 0.05));
    let (whole, eighth) = (fitted(&adam, DType::F32), fitted(&small, DType::F32));
    assert!(whole < 0.2 && eighth < 2.0 * whole + 0.05, "{whole} {eighth}");
    let w = Variable::new("big", zeros([1000, 1000]).unwrap()).unwrap();
    let ratio = small.bytes([&w]).unwrap().get() as f64 / 1e6;
    assert!(ratio < 2.04, "{ratio}");
}

#[test]
fn a_copy_in_f32_keeps_steps_that_16_bits_would_lose() {
    let _context = own_context();
    let step = 1e-4;
    let moved = |optimizer: &Optimizer| {
        let w = Variable::new("w", tensor([1.0f32]).unwrap().cast(DType::BF16).unwrap()).unwrap();
        let gradient = tensor([-1.0f32]).unwrap().cast(DType::BF16).unwrap();
        for _ in 0..1000 {
            optimizer.apply([&w], &[Gradient::Dense(gradient.clone())]).unwrap();
        }
        w.read().unwrap().cast(DType::F32).unwrap().to_vec::<f32>().unwrap()[0]
    };
    assert_eq!(moved(&Optimizer::sgd(step)), 1.0);
    assert!((moved(&Optimizer::sgd(step).master_weights()) - 1.1).abs() < 0.01);
}

/// Adds gradients up, under a name that the optimizer uses itself.
struct Sums;

impl Rule for Sums {
    fn name(&self) -> &'static str {
        "sums"
    }
    fn slots(&self, ty: &TensorType) -> Vec<Slot> {
        vec![Slot::like("master", ty)]
    }
    fn by_rows(&self) -> ByRows {
        ByRows::Sums
    }
    fn check(&self) -> Result<()> {
        Ok(())
    }
    fn step(&self, now: &Now<'_>) -> Result<Next> {
        let sum = now.slots[0].add(now.gradient)?;
        Ok(Next { value: now.value.sub(&sum)?, slots: vec![sum] })
    }
}

#[test]
fn a_custom_rule_may_name_its_slots_as_it_likes() {
    let _context = own_context();
    let w = Variable::new("w", tensor([10.0f32]).unwrap()).unwrap();
    let sums = Optimizer::new(Sums, 1.0).averages(0.5).master_weights();
    for _ in 0..3 {
        sums.apply([&w], &[Gradient::Dense(tensor([1.0f32]).unwrap())]).unwrap();
    }
    assert_eq!(w.read().unwrap().to_vec::<f32>().unwrap(), [10.0 - 1.0 - 2.0 - 3.0]);
    assert_eq!(sums.average(&w).unwrap().read().unwrap().to_vec::<f32>().unwrap(), [6.125]);
}

#[test]
fn averages_follow_their_variables() {
    let _context = own_context();
    let w = Variable::new("w", tensor([1.0f64]).unwrap()).unwrap();
    let sgd = Optimizer::sgd(1.0).averages(0.9);
    let mut expected = (1.0, 1.0);
    for _ in 0..3 {
        sgd.apply([&w], &[Gradient::Dense(tensor([-1.0f64]).unwrap())]).unwrap();
        expected.0 += 1.0;
        expected.1 += (expected.0 - expected.1) * 0.1;
    }
    close(&sgd.average(&w).unwrap().read().unwrap(), &[expected.1], 1e-12);
}

#[test]
fn a_gradient_that_overflows_is_left_out_and_the_loss_scaled_down() {
    let _context = own_context();
    let w = Variable::new("w", tensor([1.0f32]).unwrap()).unwrap();
    let (adam, scale) = (Optimizer::adam(0.1), LossScale::starting_at(1024.0, 2).unwrap());
    let step = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        let loss = scale.scale(&(w.read()? * x)?.sum_all()?)?;
        scale.apply(&adam, [&w], &[tape.gradient(&loss, &w)?])
    });
    let factor = || scale.variables()[0].read().unwrap().scalar::<f32>().unwrap();
    let call = |x: f32| step.call(tensor([x]).unwrap()).unwrap().scalar::<bool>().unwrap();
    assert!(call(1.0));
    let after = w.read().unwrap().to_vec::<f32>().unwrap();
    assert!((after[0] - 0.9).abs() < 1e-6, "{after:?}");
    assert!(!call(f32::INFINITY));
    assert_eq!((w.read().unwrap().to_vec::<f32>().unwrap(), factor()), (after, 512.0));
    assert_eq!(adam.steps().unwrap(), 1);
    assert!(call(1.0) && call(1.0));
    assert_eq!(factor(), 1024.0);
}

#[test]
fn what_makes_no_sense_is_refused_and_changes_nothing() {
    let _context = own_context();
    let w = start();
    let before = w.read().unwrap().to_vec::<f64>().unwrap();
    let gradient = || Gradient::Dense(tensor([[1.0f64; 3]; 2]).unwrap());
    let refused = |optimizer: Optimizer, gradients: &[Gradient], words: &[&str]| {
        let error = optimizer.apply([&w], gradients).unwrap_err().to_string();
        for word in words {
            assert!(error.contains(word), "{word}: {error}");
        }
    };
    refused(Optimizer::sgd(f64::NAN), &[gradient()], &["NaN", "negative"]);
    refused(Optimizer::sgd(-1.0), &[gradient()], &["-1"]);
    refused(Optimizer::new(Sgd { momentum: 1.5, nesterov: false }, 0.1), &[gradient()], &["1.5"]);
    refused(Optimizer::new(Adam { beta2: 1.0, ..Adam::default() }, 0.1), &[gradient()], &["beta2"]);
    refused(
        Optimizer::sgd(Schedule::Linear { start: 1.0, end: 0.0, steps: 0 }),
        &[gradient()],
        &["0 steps"],
    );
    refused(Optimizer::sgd(0.1), &[], &["1 variables and 0 gradients"]);
    let wrong = Gradient::Dense(tensor([1.0f64]).unwrap());
    refused(Optimizer::sgd(0.1), &[wrong], &["`w`", "[2, 3]", "[1]"]);
    refused(Optimizer::sgd(0.1).clip_by_norm(-1.0), &[gradient()], &["clipping"]);
    assert_eq!(w.read().unwrap().to_vec::<f64>().unwrap(), before);
    // One that is not connected is left alone.
    Optimizer::adam(0.1).apply([&w], &[Gradient::Unconnected]).unwrap();
    assert_eq!(w.read().unwrap().to_vec::<f64>().unwrap(), before);
}

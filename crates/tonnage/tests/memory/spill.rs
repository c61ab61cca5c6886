//! Values that wait in a file: the same bits in less memory than rematerialization could do with, and a disk that fails
//! changes nothing.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, Elementwise, ErrorKind, Function, GradientTape, Result, Tensor, Variable, Watched, cond,
    function, memory,
};

use crate::common::chain::{self, drawn};
use crate::common::{call_checked, folder, in_use, own_context, test_name};

const WIDTH: usize = 16;
const ROWS: usize = 2048;

fn weights(layers: usize) -> Vec<Variable> {
    chain::weights(layers, WIDTH, 11)
}

/// One step of training; the batch stays whole, so that a file is what helps most.
fn step(
    weights: &[Variable],
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let held = weights.to_vec();
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let mut h = x;
        for w in &held {
            h = h.matmul(&w.read()?)?.tanh()?;
        }
        let loss = h.square()?.mean_all()?;
        let sources: Vec<&dyn Watched> = held.iter().map(|w| w as &dyn Watched).collect();
        for (w, grad) in held.iter().zip(tape.gradient(&loss, &sources)?) {
            w.assign_sub(&(grad.tensor()? * 0.1)?)?;
        }
        Ok(loss)
    })
    .exact()
}

fn values(weights: &[Variable]) -> Vec<Vec<f32>> {
    weights.iter().map(|w| w.read().unwrap().to_vec().unwrap()).collect()
}

/// The least budget with which a call works.
fn least<F: Fn(Tensor) -> Result<Tensor>>(f: Function<Tensor, Tensor, F>, x: &Tensor) -> Bytes {
    let error = f.budget("1KiB").unwrap().plan(x).unwrap_err();
    let ErrorKind::OverBudget { least: Some(least), .. } = error.kind() else { panic!("{error}") };
    *least
}

#[test]
fn training_gives_the_same_bits_in_less_memory_where_values_wait_in_a_file() {
    let _context = own_context();
    let x = drawn([ROWS, WIDTH], 1.0);
    let without = least(step(&weights(24)).no_spill(), &x);
    let with = least(step(&weights(24)), &x);
    assert!(with < without, "{with} with a file, {without} without");
    let run = |budget: Option<Bytes>| {
        let weights = weights(24);
        let step = match budget {
            Some(budget) => step(&weights).budget(budget).unwrap(),
            None => step(&weights),
        };
        let losses: Vec<f32> =
            (0..4).map(|_| step.call(x.clone()).unwrap().scalar().unwrap()).collect();
        (losses, values(&weights))
    };
    let expected = run(None);
    let middle = Bytes::new((with.get() + without.get()) / 2);
    for budget in [with, middle] {
        assert!(run(Some(budget)) == expected, "at {budget}");
        let step = step(&weights(24)).budget(budget).unwrap();
        let plan = step.plan(&x).unwrap();
        assert!(plan.peak() <= budget && plan.spilled() > Bytes::ZERO, "{plan}");
        assert_eq!(plan.fitted.unwrap().spilled, plan.spilled());
        assert!(plan.disk <= plan.spilled());
        call_checked(&step, &x);
        let (_, measured) = step.call_measured(x.clone()).unwrap();
        assert_eq!(measured.unwrap().spilled, plan.spilled());
    }
}

#[test]
fn every_update_comes_after_everything_is_read_back() {
    let _context = own_context();
    let x = drawn([ROWS, WIDTH], 1.0);
    let budget = least(step(&weights(24)), &x);
    let plan = step(&weights(24)).budget(budget).unwrap().plan(&x).unwrap();
    let nodes = &plan.graph.nodes;
    let last = nodes.iter().rposition(|n| n.op.name == "unspill_wait").unwrap();
    let first = nodes.iter().position(|n| !n.updates().is_empty()).unwrap();
    assert!(last < first, "{plan:#}");
    let text = format!("{plan:#}");
    for word in ["spilled", "spills", "reads back", "waits", "to a file of"] {
        assert!(text.contains(word), "{word} in {text}");
    }
}

/// What a branch makes cannot be recomputed; it is idle while the rest runs.
fn with_branch() -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    function(|x: Tensor| {
        let big = (&x).square()?.sum_all()?.greater(0.0)?;
        let held = cond(&big, || (&x).exp(), || (&x).tanh())?;
        let mut h = held.matmul(&held.t()?)?;
        for _ in 0..4 {
            let a = h.matmul(&h)?.tanh()?;
            let b = a.matmul(&h)?.tanh()?;
            h = ((b.matmul(&a)? + &b)? + &a)?.tanh()?;
        }
        h.matmul(&held)?.sum_all()
    })
    .exact()
}

#[test]
fn a_value_that_may_not_be_recomputed_waits_in_a_file() {
    let _context = own_context();
    let x = drawn([256, 256], 0.1);
    let expected = with_branch().call(x.clone()).unwrap().scalar::<f32>().unwrap();
    let unlimited = with_branch().plan(&x).unwrap().peak();
    assert_eq!(least(with_branch().no_spill(), &x), unlimited);
    let budget = least(with_branch(), &x);
    assert!(budget < unlimited, "{budget} of {unlimited}");
    let f = with_branch().budget(budget).unwrap();
    let plan = f.plan(&x).unwrap();
    assert_eq!(plan.fitted.unwrap().recomputed, 0, "{plan}");
    assert_eq!(plan.spilled(), Bytes::new(256 * 256 * 4));
    assert_eq!(call_checked(&f, &x).scalar::<f32>().unwrap(), expected);
}

/// A program of a seed: matrices of 64 KiB, each made of two earlier ones, some of them long before; through views
/// too. The result is made of the last ones.
fn wandering(seed: u64, x: Tensor) -> Result<Tensor> {
    let mut dice = seed;
    let mut below = |n: usize| {
        dice = dice.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (dice >> 33) as usize % n
    };
    let mut all = vec![x];
    for _ in 0..18 {
        let near = all[all.len() - 1 - below(all.len().min(3))].clone();
        let far = all[below(all.len())].clone();
        all.push(match below(7) {
            0 => (near + far)?.tanh()?,
            1 => (near * &far)?,
            2 => near.matmul(&far.t()?)?.tanh()?,
            3 => near.t()?.matmul(&far)?.tanh()?,
            4 => {
                (near.reshape([64, 256])? + far.reshape([64, 256])?)?.reshape([128, 128])?.relu()?
            }
            5 => near.softmax(-1)?.matmul(&far)?,
            _ => (near.exp()?.sum_keep([0])? * far)?.tanh()?,
        });
    }
    let last = all.split_off(all.len() - 3);
    (&last[0] + &last[1])?.matmul(&last[2])
}

#[test]
fn random_programs_give_the_same_bits_at_their_least_budget() {
    let _context = own_context();
    let x = drawn([128, 128], 0.5);
    let mut spilled = 0;
    for seed in 0..30 {
        let of = || function(move |x: Tensor| wandering(seed, x)).exact();
        let expected = of().call(x.clone()).unwrap().to_vec::<f32>().unwrap();
        let f = of().budget(least(of(), &x)).unwrap();
        let plan = f.plan(&x).unwrap();
        plan.graph.verify().unwrap();
        let got = call_checked(&f, &x).to_vec::<f32>().unwrap();
        let same = got.iter().zip(&expected).all(|(a, b)| a.to_bits() == b.to_bits());
        assert!(same, "seed {seed}\n{plan:#}");
        spilled += usize::from(!plan.spilled().is_zero());
    }
    assert!(spilled > 10, "{spilled} of 30 spill");
}

#[test]
fn prices_tell_what_is_spilled() {
    let _context = own_context();
    let x = drawn([ROWS, WIDTH], 1.0);
    let prices = step(&weights(24)).prices(&x).unwrap();
    assert!(prices[0].fitted.spilled.is_zero());
    assert!(prices.iter().any(|p| !p.fitted.spilled.is_zero()), "{prices:?}");
    assert!(prices.is_sorted_by(|a, b| a.peak > b.peak), "{prices:?}");
    assert!(prices.is_sorted_by(|a, b| a.fitted.seconds <= b.fitted.seconds), "{prices:?}");
    let without = step(&weights(24)).no_spill().prices(&x).unwrap();
    assert!(without.iter().all(|p| p.fitted.spilled.is_zero()));
}

#[test]
fn a_folder_that_cannot_be_written_is_an_error_before_anything_happens() {
    let _context = own_context();
    let weights = weights(24);
    let x = drawn([ROWS, WIDTH], 1.0);
    let budget = least(step(&weights), &x);
    let step = step(&weights).budget(budget).unwrap();
    step.plan(&x).unwrap();
    let (before, held) = (values(&weights), in_use());
    let gone = folder("gone");
    memory::set_spill_folder(&gone).unwrap();
    std::fs::remove_dir(&gone).unwrap();
    let error = step.call(x.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Spill { .. }), "{error}");
    let text = error.to_string();
    assert!(text.contains(&gone.display().to_string()) && text.contains("no_spill"), "{text}");
    assert_eq!((values(&weights), in_use()), (before.clone(), held));
    assert!(memory::set_spill_folder(&gone).is_err());
    memory::set_spill_folder(std::env::temp_dir()).unwrap();
    step.call(x).unwrap();
    assert_ne!(values(&weights), before);
}

/// Run as a process of its own, in which no file may become long: as on a disk that is full.
#[test]
fn child_on_a_full_disk() {
    let _context = own_context();
    if std::env::var_os("TONNAGE_TEST_FULL").is_none() {
        return;
    }
    let weights = weights(24);
    let x = drawn([ROWS, WIDTH], 1.0);
    let budget = least(step(&weights), &x);
    let step = step(&weights).budget(budget).unwrap();
    let before = values(&weights);
    let error = step.call(x.clone()).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Spill { .. }), "{error}");
    assert!(error.to_string().contains("make room on the disk"), "{error}");
    assert_eq!(values(&weights), before);
    step.unlimited().call(x).unwrap();
    assert_ne!(values(&weights), before);
}

#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_before_any_variable_is_written_and_leaves_no_file() {
    let _context = own_context();
    let folder = folder("full");
    // The shell's limit counts blocks; the signal that comes with it is ignored, as programs that care do.
    let run = "trap '' XFSZ; ulimit -f 1; exec \"$0\" --exact \"$1\"";
    let child = std::process::Command::new("sh")
        .args(["-c", run])
        .arg(std::env::current_exe().unwrap())
        .arg(test_name(module_path!(), "child_on_a_full_disk"))
        .env("TONNAGE_TEST_FULL", "1")
        .env("TONNAGE_SPILL_DIR", &folder)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}");
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
    std::fs::remove_dir(&folder).unwrap();
}

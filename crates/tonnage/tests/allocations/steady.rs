//! Steady state: no tensor-sized allocation outside of the ledger, and nothing that grows with time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Result, Tensor, Variable, function, memory,
    random_normal, tensor,
};
use tonnage_counting::everywhere;

use crate::common::in_use;
use crate::one_at_a_time;

/// From here on a request is as large as a tensor: buffers of this size are mapped by the ledger.
const TENSOR: usize = 64 * 1024;

/// Runs `f` and fails if it asks the allocator for as much as a tensor.
#[track_caller]
fn nothing_large<R>(f: impl FnOnce() -> R) -> R {
    let (made, seen) = everywhere(f);
    assert!(seen.largest < TENSOR, "{} bytes outside of the ledger", seen.largest);
    made
}

fn resident(sizes: [usize; 2]) -> Tensor {
    let values = random_normal(sizes, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([sizes[0] as i64, sizes[1] as i64]).unwrap()
}

fn step(w: &Variable, x: &Tensor) -> Result<Tensor> {
    let mut tape = GradientTape::new();
    let y = x.matmul(&w.read()?)?.tanh()?.softmax(-1)?;
    let loss = y.square()?.sum_all()?;
    let grads = tape.gradient(&loss, &[w])?;
    w.assign_sub(&(grads[0].tensor()? * 0.01)?)?;
    Ok(loss)
}

fn in_memory() -> u64 {
    memory::resident().map_or(0, Bytes::get)
}

#[test]
fn the_counter_counts() {
    let _own = one_at_a_time();
    let caught = std::panic::catch_unwind(|| nothing_large(|| vec![1u8; TENSOR].len()));
    assert!(caught.is_err(), "a vector of a tensor's size is seen");
}

#[test]
fn large_tensors_are_in_the_ledger_and_nowhere_else() {
    let _own = one_at_a_time();
    let (x, w) = (resident([512, 768]), resident([768, 640]));
    let chain = || -> Result<Tensor> {
        let y = (x.matmul(&w)?.relu()? * 2.0)?;
        let z = (y.softmax(1)? + y.max_keep(1)?)?;
        let t = z.t()?.reshape([-1, 8])?.sum([0])?;
        (z.sum_all()? + t.sum_all()?)?.exp()
    };
    nothing_large(|| chain().unwrap());
    let v = Variable::new("w", resident([768, 640])).unwrap();
    let u = v.clone();
    let f = function(move |x: Tensor| step(&u, &x));
    nothing_large(|| {
        for _ in 0..3 {
            f.call(x.clone()).unwrap();
        }
    });
    nothing_large(|| step(&v, &x).unwrap());
}

/// How many times longer a soak runs than its slice in the tests.
fn soak() -> usize {
    if std::env::var_os("TONNAGE_SOAK").is_some() { 100 } else { 1 }
}

#[test]
fn soak_small_ops_leave_memory_flat() {
    let _own = one_at_a_time();
    let start = in_use();
    let x = resident([16, 16]);
    let run = |times: usize| {
        let mut y = x.clone();
        for _ in 0..times / 2 {
            y = (y.matmul(&x).unwrap().tanh().unwrap() + &x).unwrap();
            memory::reset_peak("cpu:0").unwrap();
        }
        y
    };
    drop(run(1000));
    let (held, before) = (in_use(), in_memory());
    let last = run(10_000 * soak());
    assert_eq!(in_use(), held + Bytes::new(16 * 16 * 4), "one result");
    let grown = in_memory().saturating_sub(before);
    assert!(grown < 1 << 20, "{grown} bytes more in memory");
    drop((x, last));
    assert_eq!(in_use(), start);
}

#[test]
fn a_loop_of_matmuls_outside_of_a_tape_holds_one_result() {
    let _own = one_at_a_time();
    let x = resident([16, 16]);
    let size = Bytes::new(16 * 16 * 4);
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let mut y = x.clone();
    for _ in 0..10_000 {
        y = y.matmul(&x).unwrap();
    }
    assert_eq!(in_use(), before + size);
    let peak = memory::info("cpu:0").unwrap().peak - before;
    assert!(peak <= size + size + Bytes::new(64 * 1024), "two results and scratch, not {peak}");
}

/// Ten thousand steps in a soak, a slice of them here: from the third on nothing grows.
#[test]
fn soak_training_leaves_memory_flat_after_the_third_step() {
    let _own = one_at_a_time();
    let start = in_use();
    for planned in [false, true] {
        let (v, x) = (Variable::new("w", resident([48, 64])).unwrap(), resident([32, 48]));
        let u = v.clone();
        let f = function(move |x: Tensor| step(&u, &x));
        let one = || match planned {
            true => drop(f.call(x.clone()).unwrap()),
            false => drop(step(&v, &x).unwrap()),
        };
        (0..3).for_each(|_| one());
        memory::reset_peak("cpu:0").unwrap();
        one();
        let figures = || (in_use(), memory::info("cpu:0").unwrap().peak);
        let (third, before) = (figures(), in_memory());
        for _ in 0..100 * soak() {
            one();
            assert_eq!(figures(), third, "planned {planned}");
        }
        let grown = in_memory().saturating_sub(before);
        assert!(grown < 1 << 20, "planned {planned}: {grown} bytes more in memory");
    }
    assert_eq!(in_use(), start);
}

#[test]
fn soak_planned_steps_leave_memory_flat() {
    let _own = one_at_a_time();
    let start = in_use();
    {
        let (v, x) = (Variable::new("w", resident([24, 16])).unwrap(), resident([8, 24]));
        let u = v.clone();
        let f = function(move |x: Tensor| step(&u, &x));
        let run = |times: usize| (0..times).for_each(|_| drop(f.call(x.clone()).unwrap()));
        run(300);
        let (held, before) = (in_use(), in_memory());
        memory::reset_peak("cpu:0").unwrap();
        run(3000 * soak());
        assert_eq!(in_use(), held);
        let peak = memory::info("cpu:0").unwrap().peak - held;
        assert_eq!(peak, f.plan(&x).unwrap().obtains(), "what one call obtains");
        let grown = in_memory().saturating_sub(before);
        assert!(grown < 1 << 20, "{grown} bytes more in memory");
        assert_eq!(f.traces(), 1);
    }
    assert_eq!(in_use(), start);
}

#[test]
fn what_was_held_goes_back_to_the_system() {
    let _own = one_at_a_time();
    let start = in_use();
    let before = in_memory();
    let count = 64 << 20 >> 2; // 64 MiB each
    let held: Vec<Tensor> = (0..4)
        .map(|_| random_normal([count], DType::F32).unwrap().cast(DType::F32).unwrap())
        .map(|x| x.scatter_add(&tensor([0i64]).unwrap(), &tensor([1.0f32]).unwrap()).unwrap())
        .collect();
    assert!(in_use() >= start + Bytes::mib(256), "{}", in_use());
    let full = in_memory();
    assert!(before == 0 || full > before + (200 << 20), "{before} {full}");
    drop(held);
    assert_eq!(in_use(), start);
    let left = in_memory().saturating_sub(before);
    assert!(left <= 4 << 20, "{left} bytes are still in memory");
}

#[test]
fn a_tape_that_is_dropped_holds_nothing() {
    let _own = one_at_a_time();
    let (x, w) = (resident([64, 64]), resident([64, 64]));
    let start = in_use();
    for _ in 0..50 {
        let tape = GradientTape::new();
        tape.watch(&w);
        let y = x.matmul(&w).unwrap().tanh().unwrap().relu().unwrap().softmax(1).unwrap();
        assert!(tape.held().bytes() > Bytes::ZERO);
        drop(y);
        assert!(in_use() > start, "the tape holds what the backward pass needs");
        drop(tape);
        assert_eq!(in_use(), start);
    }
    // One that gave its gradient holds nothing either, while it still lives.
    let mut tape = GradientTape::new();
    tape.watch(&w);
    let y = x.matmul(&w).unwrap().tanh().unwrap().sum_all().unwrap();
    drop(tape.gradient(&y, &[&w]).unwrap());
    drop(y);
    assert_eq!((tape.held().bytes(), in_use()), (Bytes::ZERO, start));
}

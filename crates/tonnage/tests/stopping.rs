//! A process of its own, whose number of threads is set once: to one. The host asks for a stop in the middle of one long op: it
//! ends with an error, what it had made is dropped, and no variable is left half updated.
//!
//! On one thread kernels ask themselves: then the first question is asked at a place that no clock decides.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use std::cell::Cell;

use common::{in_use, own_context};
use tonnage::{
    Attention, DType, Elementwise, Entered, ErrorKind, RandomKey, Result, Tensor, Variable,
    function,
};

thread_local! {
    static STOP: Cell<bool> = const { Cell::new(false) };
    static ASKED: Cell<usize> = const { Cell::new(0) };
}

/// The host's answer, on the thread of the test, which is the one that is asked.
fn question() -> bool {
    ASKED.set(ASKED.get() + 1);
    STOP.get()
}

/// A context with one thread and a host that can be asked.
fn asking_context() -> Entered {
    let context = own_context();
    tonnage::set_threads(1).unwrap();
    tonnage::bind::set_question(question);
    context
}

/// Runs something while the host says whether to stop; how often it was asked.
fn asked<R>(stop: bool, f: impl FnOnce() -> R) -> (R, usize) {
    STOP.set(stop);
    ASKED.set(0);
    let made = f();
    STOP.set(false);
    (made, ASKED.get())
}

fn drawn(sizes: &[usize]) -> Tensor {
    let made = RandomKey::new(7).normal(sizes, DType::F32).unwrap();
    let lengths: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
    tonnage::tensor(made.to_vec::<f32>().unwrap()).unwrap().reshape(lengths).unwrap()
}

type Op = (&'static str, &'static [usize], fn(&Tensor) -> Result<Tensor>);

const OPS: &[Op] = &[
    ("svd", &[200, 200], |x| Ok(x.svd()?.1)),
    ("eigh", &[350, 350], |x| Ok(x.matmul(&x.t()?)?.eigh()?.0)),
    ("qr", &[500, 400], |x| Ok(x.qr()?.1)),
    ("solve", &[550, 550], |x| x.solve(x)),
    ("inv", &[600, 600], Tensor::inv),
    ("matmul", &[600, 600], |x| x.matmul(x)),
    ("sort", &[4_500_000], |x| x.sort(-1, false)),
    ("exp", &[6_000_000], |x| x.exp()),
    ("sum", &[8, 2_000_000], |x| x.sum([1])),
    ("softmax", &[3000, 2000], |x| x.softmax(-1)),
    ("attention", &[1, 2, 1200, 64], |x| {
        x.scaled_dot_product_attention(x, x, &Attention::new().causal())
    }),
];

#[test]
fn a_long_eager_op_stops_at_the_first_question_that_says_so() {
    let _context = asking_context();
    for (name, sizes, op) in OPS {
        let x = drawn(sizes);
        let before = in_use();
        let (ended, questions) = asked(true, || op(&x));
        let error = ended.expect_err(name);
        assert!(matches!(error.kind(), ErrorKind::Interrupted), "{name}: {error}");
        assert_eq!(questions, 1, "{name} went on");
        assert_eq!(in_use(), before, "{name} left something");
        let (ended, questions) = asked(false, || op(&x));
        assert!(ended.is_ok() && questions > 0, "{name}");
    }
}

#[test]
fn an_op_is_stopped_that_takes_longer_than_its_cost_says() {
    let _context = asking_context();
    // Reckoned as under 5 milliseconds, it takes many times as long as it waits before it asks.
    let x = drawn(&[3_900_000]);
    let (ended, questions) = asked(true, || x.sort(-1, false));
    assert!(matches!(ended.unwrap_err().kind(), ErrorKind::Interrupted));
    assert_eq!(questions, 1);
}

/// What writes a recipe out.
type Reader = (&'static str, fn(&Tensor) -> Result<()>);

const READERS: &[Reader] = &[
    ("to_vec", |x| x.to_vec::<f64>().map(drop)),
    ("an op that needs all bytes", |x| x.sort(-1, false).map(drop)),
    ("a reshape of a transposed recipe", |x| {
        x.reshape([2, -1])?.t()?.reshape([-1])?.sort(-1, false).map(drop)
    }),
    ("a variable", |x| Variable::new("x", x.clone())?.assign_add(x)),
];

#[test]
fn a_recipe_that_is_written_out_stops_and_stays_a_recipe() {
    let _context = asking_context();
    let made: [fn() -> Result<Tensor>; 3] = [
        || RandomKey::new(3).normal([8_000_000], DType::F64),
        || RandomKey::new(4).uniform([8_000_000], DType::F64)?.sqrt(),
        || tonnage::full(1.5, DType::F64, [8_000_000]),
    ];
    for (number, make) in made.iter().enumerate() {
        for (name, read) in READERS {
            let (x, before) = (make().unwrap(), in_use());
            let (ended, questions) = asked(true, || read(&x));
            let error = ended.expect_err(name);
            assert!(matches!(error.kind(), ErrorKind::Interrupted), "{number}, {name}: {error}");
            assert_eq!(questions, 1, "{number}, {name} went on");
            assert_eq!(in_use(), before, "{number}, {name} left something");
        }
        let x = make().unwrap();
        let (_, of_stopped) = asked(true, || x.to_vec::<f64>().is_err());
        assert_eq!(of_stopped, 1);
        assert_eq!(x.to_vec::<f64>().unwrap(), make().unwrap().to_vec::<f64>().unwrap());
    }
}

#[test]
fn the_kernel_of_a_step_is_stopped_too() {
    let _context = asking_context();
    // One step that takes many times as long as a call waits before it asks.
    let f = function(|x: Tensor| Ok(x.svd()?.1));
    let (ended, questions) = asked(true, || f.call(drawn(&[600, 600])));
    assert!(matches!(ended.unwrap_err().kind(), ErrorKind::Interrupted));
    assert_eq!(questions, 1);
}

#[test]
fn an_update_of_a_variable_runs_to_its_end() {
    let _context = asking_context();
    let ones = tonnage::full(1.0, DType::F32, [8_000_000]).unwrap();
    let x = Variable::new("x", ones.clone()).unwrap();
    // Its bytes are there from the first update on: to write a recipe out is no update yet, and may be stopped.
    x.assign_add(&ones).unwrap();
    let (ended, _) = asked(true, || x.assign_add(&ones));
    ended.unwrap();
    assert_eq!(x.read().unwrap().sum_all().unwrap().scalar::<f32>().unwrap(), 24e6);
}

//! Loops whose states wait in a file for their gradient: the gradients of those that save them in memory, in memory that does not
//! depend on the number of iterations, and the bytes written that the plan says. Loops that are asked to stop.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

use std::cell::Cell;

use tonnage::{
    Bytes, Elementwise, ErrorKind, Function, GradientTape, Loop, Result, Tensor, Variable,
    function, tensor,
};

use crate::common::{call_checked, close, in_use, own_context};

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

fn start(len: usize) -> Tensor {
    tensor((0..len).map(|i| (i * 37 % 101) as f64 / 101.0 - 0.4).collect::<Vec<_>>()).unwrap()
}

/// How a loop is ended.
#[derive(Clone, Copy)]
enum End {
    /// After so many iterations.
    Iterations(i64),
    /// When a sum is over a number, which only the data know.
    Data(f64),
}

fn looped(options: Loop, end: End, x: &Tensor, w: &Tensor) -> Result<Tensor> {
    let iteration = |y: Tensor| (y.sin()? * w)? + 0.3;
    match end {
        End::Iterations(n) => options.fori_loop(0, n, x.clone(), |_, y| iteration(y)),
        End::Data(most) => {
            let state = (tensor(0.0f64)?, x.clone());
            let (_, y) = options.while_loop(
                state,
                |(sum, _): (Tensor, Tensor)| sum.less(most),
                |(sum, y)| Ok(((sum + (&y).square()?.mean_all()?)?, iteration(y)?)),
            )?;
            Ok(y)
        }
    }
}

fn gradients(options: &Loop, end: End, x: &Tensor, w: &Tensor) -> Result<(Tensor, Tensor)> {
    let mut tape = GradientTape::new();
    tape.watch(x);
    tape.watch(w);
    let loss = looped(options.clone(), end, x, w)?.square()?.sum_all()?;
    let [dx, dw] = tape.gradient(&loss, [x, w])?;
    Ok((dx.or_zeros(x)?, dw.or_zeros(w)?))
}

type Gradients = Function<
    (Tensor, Tensor),
    (Tensor, Tensor),
    Box<dyn Fn((Tensor, Tensor)) -> Result<(Tensor, Tensor)>>,
>;

fn planned(options: Loop, end: End) -> Gradients {
    function(Box::new(move |(x, w): (Tensor, Tensor)| gradients(&options, end, &x, &w)))
}

#[test]
fn states_in_a_file_give_the_gradients_of_states_in_memory() {
    let _context = own_context();
    let (x, w) = (start(50), start(50));
    for end in
        [0, 1, 2, 3, 40].map(End::Iterations).into_iter().chain([0.0, 0.01, 5.0].map(End::Data))
    {
        let (dx, dw) = call_checked(&planned(Loop::new(), end), &(x.clone(), w.clone()));
        let spilled = call_checked(&planned(Loop::new().spill(), end), &(x.clone(), w.clone()));
        let eager = gradients(&Loop::new().spill(), end, &x, &w).unwrap();
        for made in [spilled, eager] {
            close(&made.0, &values(&dx), 1e-12);
            close(&made.1, &values(&dw), 1e-12);
        }
    }
}

#[test]
fn memory_does_not_depend_on_the_iterations_and_the_file_is_as_long_as_was_said() {
    let _context = own_context();
    let (x, w) = (start(1000), start(1000));
    let mut peaks = Vec::new();
    for iterations in [10, 300] {
        let f = planned(Loop::new().spill(), End::Iterations(iterations));
        let plan = f.plan(&(x.clone(), w.clone())).unwrap();
        let states = Bytes::new(8000).rounded().get() * (iterations as u64 - 1);
        assert_eq!(plan.spilled().get(), states);
        assert_eq!(plan.recomputed_iterations(), Some(0));
        let lines = plan.explain().steps;
        assert!(lines.iter().any(|line| line.loop_grad.as_ref().is_some_and(|back| back.in_file)));
        let measured = f.call_measured((x.clone(), w.clone())).unwrap().1.unwrap();
        assert_eq!(measured.spilled, plan.spilled());
        assert_eq!(measured.recomputed_iterations, 0);
        assert_eq!(measured.used, plan.peak());
        peaks.push(plan.peak());
    }
    assert_eq!(peaks[0], peaks[1]);
    let kept = planned(Loop::new(), End::Iterations(300)).plan(&(x, w)).unwrap().peak();
    assert!(peaks[1].get() * 2 < kept.get(), "{} {kept}", peaks[1]);
}

#[test]
fn a_loop_inside_of_a_loop_writes_a_file_each_iteration() {
    let _context = own_context();
    let nested = |spill: bool| {
        let options = move || if spill { Loop::new().spill() } else { Loop::new() };
        function(move |x: Tensor| {
            let mut tape = GradientTape::new();
            tape.watch(&x);
            let y = options().fori_loop(0, 4, x.clone(), |_, y| {
                options().fori_loop(0, 5, y, |_, y| y.sin()? * 1.5)
            })?;
            tape.gradient(&y.sum_all()?, &x)?.tensor()
        })
    };
    let x = start(64);
    let (f, g) = (nested(true), nested(false));
    close(&call_checked(&f, &x), &values(&call_checked(&g, &x)), 1e-12);
    let plan = f.plan(&x).unwrap();
    let measured = f.call_measured(x).unwrap().1.unwrap();
    assert_eq!(measured.spilled, plan.spilled());
}

#[test]
fn a_loop_without_a_gradient_writes_nothing() {
    let _context = own_context();
    let f = function(|x: Tensor| Loop::new().spill().fori_loop(0, 9, x, |_, y| y.sin()));
    assert_eq!(f.plan(&start(64)).unwrap().spilled(), Bytes::ZERO);
}

thread_local! {
    static STOP: Cell<bool> = const { Cell::new(false) };
}

/// A call that is asked to stop, which it would not without.
fn stopped<A: tonnage::Tree, R: tonnage::Tree + std::fmt::Debug, F: Fn(A) -> Result<R>>(
    f: &Function<A, R, F>,
    arguments: impl Fn() -> A,
) {
    tonnage::bind::set_question(|| STOP.get());
    STOP.set(true);
    // The first call traces: constants of the program stay with the function.
    let in_use = [0, 1].map(|_| {
        let error = f.call(arguments()).unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::Interrupted), "{error}");
        in_use()
    });
    STOP.set(false);
    assert_eq!(in_use[0], in_use[1]);
}

#[test]
fn a_loop_that_does_not_end_stops_where_the_host_asks_for_it() {
    let _context = own_context();
    let endless = |x: Tensor| tonnage::while_loop(x, |_| tensor(true), |x| x * 0.5);
    stopped(&function(endless), || start(20_000));
}

#[test]
fn a_call_that_is_stopped_leaves_variables_as_they_were_and_a_loop_of_updates_after_a_whole_iteration()
 {
    let _context = own_context();
    let [one, two] =
        ["one", "two"].map(|name| Variable::new(name, tensor(0.0f64).unwrap()).unwrap());
    let number = |v: &Variable| v.read().unwrap().scalar::<f64>().unwrap();
    let held = one.clone();
    let before = function(move |x: Tensor| {
        let y = tonnage::while_loop(x, |_| tensor(true), |x| x * 0.5)?;
        held.assign_add(&(y.sum_all()? + 1.0)?)?;
        Ok(y)
    });
    stopped(&before, || start(20_000));
    assert_eq!(number(&one), 0.0);
    let held = [one.clone(), two.clone()];
    let iterations = function(move |x: Tensor| {
        tonnage::while_loop(
            x,
            |_| tensor(true),
            |x| {
                held[0].assign_add(&tensor(1.0f64)?)?;
                held[1].assign_add(&tensor(2.0f64)?)?;
                x * 0.5
            },
        )
    });
    stopped(&iterations, || start(20_000));
    assert_eq!(number(&two), 2.0 * number(&one));
}

//! Gradients of loops: against the same iterations written out, with any number of checkpoints, in the iterations and the
//! bytes that the plan says.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests")]

use tonnage::{
    DType, Dim, Elementwise, Function, GradientTape, Loop, Result, Tensor, Variable, cond,
    constant, fori_loop, function, map_fn, random_normal, tensor, while_loop,
};
use tonnage_plan::schedule::revolve;

use crate::common::{call_checked, close, own_context};

fn numbers(sizes: &[i64], seed: u64) -> Tensor {
    let count: i64 = sizes.iter().product();
    let value = |i: i64| ((i as u64 * 7919 + seed * 104_729) % 2003) as f64 / 1001.0 - 1.0;
    tensor((0..count).map(value).collect::<Vec<_>>()).unwrap().reshape(sizes).unwrap()
}

fn values(tensor: &Tensor) -> Vec<f64> {
    tensor.to_vec::<f64>().unwrap()
}

/// Gradients of a scalar function with respect to all its arguments.
fn gradients(f: &dyn Fn(&[Tensor]) -> Result<Tensor>, arguments: &[Tensor]) -> Result<Vec<Tensor>> {
    let mut tape = GradientTape::new();
    arguments.iter().for_each(|x| tape.watch(x));
    let loss = f(arguments)?;
    let sources: Vec<&dyn tonnage::Watched> = arguments.iter().map(|x| x as _).collect();
    let grads = tape.gradient(&loss, &sources)?;
    grads.iter().zip(arguments).map(|(grad, x)| grad.or_zeros(x)).collect()
}

/// Checks a loop against the same iterations written out, in a function (bytes and iterations as planned) and eagerly.
#[track_caller]
fn check(
    looped: impl Fn(&[Tensor]) -> Result<Tensor> + Clone + 'static,
    plain: &dyn Fn(&[Tensor]) -> Result<Tensor>,
    arguments: &[Tensor],
) {
    let expected = gradients(plain, arguments).unwrap();
    let inner = looped.clone();
    let f = function(move |arguments: Vec<Tensor>| gradients(&inner, &arguments));
    let traced = call_checked(&f, &arguments.to_vec());
    let eager = gradients(&looped, arguments).unwrap();
    for ((want, traced), eager) in expected.iter().zip(&traced).zip(&eager) {
        close(traced, &values(want), 1e-9);
        close(eager, &values(want), 1e-9);
    }
}

fn with(max_checkpoints: Option<usize>, reverse: bool) -> Loop {
    let options = if reverse { Loop::new().reverse() } else { Loop::new() };
    match max_checkpoints {
        Some(max_checkpoints) => options.checkpoints(max_checkpoints),
        None => options,
    }
}

#[test]
fn a_scan_has_gradients_of_rows_of_states_and_of_what_it_reads() {
    let _context = own_context();
    fn step(h: Tensor, x: Tensor, w: &Tensor) -> Result<(Tensor, Tensor)> {
        let next = (h.matmul(w)? + &x)?.tanh()?;
        Ok((next.clone(), (next * x)?))
    }
    for iterations in [0, 1, 2, 7, 20] {
        for max_checkpoints in [None, Some(1), Some(2), Some(3)] {
            for reverse in [false, true] {
                let looped = move |a: &[Tensor]| {
                    let (h, xs, w) = (a[0].clone(), a[1].clone(), &a[2]);
                    let (last, ys) =
                        with(max_checkpoints, reverse)
                            .scan(h, xs, |h: Tensor, x: Tensor| step(h, x, w))?;
                    ys.square()?.sum_all()? + last.sum_all()?
                };
                let plain = move |a: &[Tensor]| {
                    let (mut h, mut sum) = (a[0].identity()?, constant(0.0f64, ())?);
                    for i in 0..iterations {
                        let i = if reverse { iterations - 1 - i } else { i };
                        let x = a[1].slice(&[(i..i + 1).into()])?.reshape([1, 3])?;
                        let (next, y) = step(h, x, &a[2])?;
                        (h, sum) = (next, (sum + y.square()?.sum_all()?)?);
                    }
                    sum + h.sum_all()?
                };
                let arguments =
                    [numbers(&[1, 3], 1), numbers(&[iterations, 1, 3], 2), numbers(&[3, 3], 3)];
                check(looped, &plain, &arguments);
            }
        }
    }
}

#[test]
fn a_loop_that_the_data_end_has_a_gradient() {
    let _context = own_context();
    fn grow(x: Tensor, a: &[Tensor]) -> Result<Tensor> {
        (&x * &a[1])? + x.tanh()?
    }
    for (start, max_checkpoints) in
        [(0.5, None), (0.01, None), (0.01, Some(1)), (0.01, Some(3)), (50.0, None)]
    {
        let looped = move |a: &[Tensor]| {
            let options = with(max_checkpoints, false).at_most(40);
            let last = options.while_loop(
                a[0].clone(),
                |x| x.sum_all()?.less(20.0),
                |x: Tensor| grow(x, a),
            )?;
            last.square()?.sum_all()
        };
        let plain = move |a: &[Tensor]| {
            let mut x = a[0].identity()?;
            while x.sum_all()?.scalar::<f64>()? < 20.0 {
                x = grow(x, a)?;
            }
            x.square()?.sum_all()
        };
        check(looped, &plain, &[tensor([start, start * 2.0]).unwrap(), tensor(1.1f64).unwrap()]);
    }
}

#[test]
fn loops_in_loops_and_branches_in_loops_have_gradients() {
    let _context = own_context();
    let looped = |a: &[Tensor]| {
        let last = Loop::new().checkpoints(2).fori_loop(0, 6, a[0].clone(), |i, h: Tensor| {
            let inner = Loop::new()
                .checkpoints(1)
                .fori_loop(0, 3, h, |_, h: Tensor| (h * &a[1])?.tanh())?;
            let half = ((&i).cast(DType::F64)? * 0.5)?.cast(DType::I64)?;
            let even = (i - (half * 2)?)?.less(1)?;
            cond(&even, || (&inner).square(), || &inner * 0.5)
        })?;
        last.sum_all()
    };
    let plain = |a: &[Tensor]| {
        let mut h = a[0].identity()?;
        for i in 0..6 {
            for _ in 0..3 {
                h = (h * &a[1])?.tanh()?;
            }
            h = if i % 2 == 0 { h.square()? } else { (h * 0.5)? };
        }
        h.sum_all()
    };
    check(looped, &plain, &[numbers(&[4], 5), numbers(&[4], 6)]);
}

#[test]
fn rows_of_a_map_have_gradients() {
    let _context = own_context();
    let looped = |a: &[Tensor]| {
        let ys = map_fn(a[0].clone(), |x: Tensor| (x.exp()? * &a[1])?.sum_all())?;
        (&ys * &ys)?.sum_all()
    };
    let plain = |a: &[Tensor]| {
        let ys = ((&a[0]).exp()? * &a[1])?.sum(1)?;
        (&ys * &ys)?.sum_all()
    };
    check(looped, &plain, &[numbers(&[5, 3], 1), numbers(&[3], 2)]);
}

#[test]
fn what_no_result_depends_on_has_no_backward_pass() {
    let _context = own_context();
    // The second value is carried and never matters; the third matters and depends on nothing watched.
    let f = function(|(x, z): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let start = (x.clone(), x.identity()?, z);
        let body =
            |_: Tensor, (x, y, z): (Tensor, Tensor, Tensor)| Ok(((x * &z)?, y.exp()?, z.square()?));
        let (last, ..) = fori_loop(0, 4, start, body)?;
        tape.gradient(&last.sum_all()?, &[&x])?[0].tensor()
    });
    let arguments = (numbers(&[3], 1), numbers(&[3], 2));
    let text = f.graph(&arguments).unwrap();
    assert_eq!(text.matches("1 back").count(), 1, "{text}");
    let z = values(&arguments.1);
    let expected: Vec<f64> =
        z.iter().map(|z| (0..4).map(|i| z.powi(1 << i)).product::<f64>()).collect();
    close(&call_checked(&f, &arguments), &expected, 1e-12);
}

#[test]
fn variables_that_a_body_reads_and_writes_have_gradients() {
    let _context = own_context();
    let (w, h) = (
        Variable::new("w", numbers(&[3], 1)).unwrap(),
        Variable::new("h", numbers(&[3], 2)).unwrap(),
    );
    let (vw, vh) = (w.clone(), h.clone());
    let f = function(move |(): ()| {
        let mut tape = GradientTape::new();
        fori_loop(0, 4, (), |_, ()| vh.assign(&(vh.read()? * vw.read()?)?))?;
        let grads = tape.gradient(&vh.read()?.sum_all()?, &[&vw, &vh])?;
        Ok((grads[0].tensor()?, grads[1].tensor()?))
    });
    let (before, by) = (values(&h.read().unwrap()), values(&w.read().unwrap()));
    let (dw, _) = f.call(()).unwrap();
    let expected: Vec<f64> = before.iter().zip(&by).map(|(h, w)| 4.0 * h * w.powi(3)).collect();
    close(&dw, &expected, 1e-12);
    let after: Vec<f64> = before.iter().zip(&by).map(|(h, w)| h * w.powi(4)).collect();
    close(&h.read().unwrap(), &after, 1e-12);
}

#[test]
fn a_recomputed_iteration_draws_the_same_random_numbers() {
    let _context = own_context();
    // y = x * noise_0 * ... * noise_n, so dy/dx = y / x, if both saw the same noise.
    for max_checkpoints in [1usize, 2, 100] {
        let run = move |x: &Tensor| -> Result<(Tensor, Tensor)> {
            let mut tape = GradientTape::new();
            tape.watch(x);
            let options = Loop::new().checkpoints(max_checkpoints);
            let y = options.fori_loop(0, 6, x.clone(), |_, y: Tensor| {
                let y = (y * random_normal([3], DType::F64)?)?;
                let large = y.sum_all()?.less(0.0)?;
                cond(&large, || &y * random_normal([3], DType::F64)?, || Ok(y.clone()))
            })?;
            let grad = tape.gradient(&y.sum_all()?, &[x])?[0].tensor()?;
            Ok((y, grad))
        };
        let x = numbers(&[3], 4);
        let f = function(move |x: Tensor| run(&x));
        for (y, grad) in [f.call(x.clone()).unwrap(), run(&x).unwrap()] {
            let expected: Vec<f64> =
                values(&y).iter().zip(values(&x)).map(|(y, x)| y / x).collect();
            close(&grad, &expected, 1e-10);
        }
    }
}

fn power(
    iterations: i64,
    max_checkpoints: usize,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let options = Loop::new().checkpoints(max_checkpoints);
        let y = options.fori_loop(0, iterations, x.clone(), |_, x: Tensor| (x * 1.01)?.tanh())?;
        tape.gradient(&y.sum_all()?, &[&x])?[0].tensor()
    })
}

#[test]
fn recomputed_iterations_are_as_many_as_revolve_says() {
    let _context = own_context();
    let x = tensor([0.5f64, -0.25]).unwrap();
    for (iterations, max_checkpoints) in
        [(1, 1), (5, 1), (9, 2), (20, 3), (60, 5), (60, 59), (60, 60), (60, 7)]
    {
        let f = power(iterations, max_checkpoints);
        let expected = revolve::recomputed(iterations as u64, max_checkpoints as u64);
        let plan = f.plan(&x).unwrap();
        assert_eq!(plan.recomputed_iterations(), Some(expected));
        let (_, measured) = f.call_measured(x.clone()).unwrap();
        assert_eq!(
            measured.unwrap().recomputed_iterations,
            expected,
            "{iterations} iterations, {max_checkpoints} checkpoints"
        );
        call_checked(&f, &x);
    }
    let text = power(60, 5).plan(&x).unwrap().to_string();
    let recomputed = revolve::recomputed(60, 5);
    assert!(text.contains(&format!("gradients recompute {recomputed} loop iterations")), "{text}");
    assert!(text.contains("back through 60 iterations, 5 checkpoints of 64 B"), "{text}");
}

#[test]
fn a_gradient_checkpoints_the_states_that_it_was_given_and_no_more() {
    let _context = own_context();
    let state = 64 * 1024u64;
    let x = numbers(&[8192], 1);
    let peak = |iterations: i64, max_checkpoints: usize| {
        let f = power(iterations, max_checkpoints);
        let plan = f.plan(&x).unwrap();
        call_checked(&f, &x);
        (plan.peak().get() as f64 / state as f64).round() as u64
    };
    // The argument is the first state. Besides: the checkpoints, those on their way, the last one, and the
    // gradient, which works in place.
    for (iterations, max_checkpoints) in [(50, 4), (500, 4), (12, 11)] {
        let spare = tonnage_plan::schedule::spare(iterations as u64, max_checkpoints as u64) as u64;
        assert!(spare <= 2);
        assert_eq!(peak(iterations, max_checkpoints), 1 + max_checkpoints as u64 + spare + 2);
    }
    // With a checkpoint for every state nothing is on its way.
    assert_eq!(peak(9, 9), 1 + 8 + 2);
}

#[test]
fn second_derivatives_through_loops_are_those_of_the_iterations() {
    let _context = own_context();
    let second = |f: &dyn Fn(&Tensor) -> Result<Tensor>, x: &Tensor| -> Result<Tensor> {
        let mut outer = GradientTape::new();
        outer.watch(x);
        let mut inner = GradientTape::new();
        inner.watch(x);
        let y = f(x)?;
        let first = inner.gradient(&y, &[x])?[0].tensor()?;
        let sum = first.square()?.sum_all()?;
        outer.gradient(&sum, &[x])?[0].tensor()
    };
    let counted =
        |x: &Tensor| fori_loop(0, 4, x.clone(), |_, h: Tensor| (h * x)?.tanh())?.sum_all();
    let data = |x: &Tensor| {
        let last = Loop::new().at_most(6).while_loop(
            (constant(0i32, ())?, x.clone()),
            |(i, h)| cond(&i.less(4)?, || h.sum_all()?.less(1e9), || tensor(false)),
            |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, (h * x)?.tanh()?)),
        )?;
        last.1.sum_all()
    };
    let plain = |x: &Tensor| {
        let mut h = x.identity()?;
        for _ in 0..4 {
            h = (h * x)?.tanh()?;
        }
        h.sum_all()
    };
    let x = numbers(&[3], 3);
    let expected = values(&second(&plain, &x).unwrap());
    close(&second(&counted, &x).unwrap(), &expected, 1e-9);
    close(&second(&data, &x).unwrap(), &expected, 1e-9);
    let f = function(move |x: Tensor| second(&counted, &x));
    close(&call_checked(&f, &x), &expected, 1e-9);
    let f = function(move |x: Tensor| second(&data, &x));
    close(&f.call(x.clone()).unwrap(), &expected, 1e-9);
    // One that only the data end has to say where it ends at most.
    let endless = |x: &Tensor| {
        while_loop(x.clone(), |h| h.sum_all()?.less(5.0), |h: Tensor| h * 1.5)?.sum_all()
    };
    let error = second(&endless, &tensor([0.1f64]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("say how many iterations it may take at most"), "{error}");
}

#[test]
fn one_trace_serves_any_number_of_rows() {
    let _context = own_context();
    let f = function(|(xs, w): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&xs);
        tape.watch(&w);
        let start = constant(0.5f64, [3])?;
        let body = |h: Tensor, x: Tensor| {
            let h = ((h * &w)? + x)?.tanh()?;
            Ok((h.clone(), h.square()?))
        };
        let (last, ys) = Loop::new().scan(start, xs.clone(), body)?;
        let grads = tape.gradient(&(ys.sum_all()? + last.sum_all()?)?, &[&xs, &w])?;
        Ok((grads[0].tensor()?, grads[1].tensor()?))
    })
    .signature((
        Tensor::spec(DType::F64, [Dim::open("rows"), Dim::from(3)]),
        Tensor::spec(DType::F64, [3]),
    ));
    for rows in [1i64, 5, 40, 100] {
        let arguments = (numbers(&[rows, 3], 1), numbers(&[3], 2));
        let (dx, dw) = call_checked(&f, &arguments);
        let plain = |a: &[Tensor]| {
            let (mut h, mut sum) = (constant(0.5f64, [3])?, constant(0.0f64, ())?);
            for i in 0..rows {
                let x = a[0].slice(&[(i..i + 1).into()])?.reshape([3])?;
                h = ((h * &a[1])? + x)?.tanh()?;
                sum = (sum + (&h).square()?.sum_all()?)?;
            }
            sum + h.sum_all()?
        };
        let expected = gradients(&plain, &[arguments.0.clone(), arguments.1.clone()]).unwrap();
        close(&dx, &values(&expected[0]), 1e-9);
        close(&dw, &values(&expected[1]), 1e-9);
        let max_checkpoints = tonnage_core::loop_checkpoints::default_max_checkpoints(rows as u64);
        let recomputed = f.plan(&arguments).unwrap().recomputed_iterations().unwrap();
        let at_most = revolve::recomputed(rows as u64, max_checkpoints);
        assert!(recomputed <= at_most && recomputed <= rows as u64 / 2, "{recomputed} of {rows}");
    }
    assert_eq!(f.traces(), 1);
}

#[test]
fn a_gather_in_a_loop_adds_rows_to_the_tables_gradient() {
    let _context = own_context();
    let table = numbers(&[1000, 64], 1);
    let f = function(|(table, picks): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&table);
        let body = |sum: Tensor, pick: Tensor| Ok(((sum + table.gather(&pick, 0)?)?, ()));
        let (sum, ()) = Loop::new().scan(constant(0.0f64, [2, 64])?, picks, body)?;
        tape.gradient(&sum.square()?.sum_all()?, &[&table])?[0].tensor()
    });
    let picks = tensor([[3i64, 5], [3, 7], [5, 3]]).unwrap();
    let arguments = (table.clone(), picks);
    let plan = f.plan(&arguments).unwrap();
    let whole = 1000 * 64 * 8;
    assert!(plan.obtains().get() < whole + whole / 4, "one gradient of the table\n{plan}");
    let grad = call_checked(&f, &arguments);
    let rows = table.to_vec2::<f64>().unwrap();
    let at = |i: usize, c: usize| rows[i][c];
    let got = grad.to_vec2::<f64>().unwrap();
    for c in [0, 63] {
        let (left, right) =
            (2.0 * (2.0 * at(3, c) + at(5, c)), 2.0 * (at(5, c) + at(7, c) + at(3, c)));
        assert!((got[3][c] - (2.0 * left + right)).abs() < 1e-9);
        assert!((got[5][c] - (left + right)).abs() < 1e-9);
        assert!((got[7][c] - right).abs() < 1e-9);
        assert_eq!(got[4][c], 0.0);
    }
}

#[test]
fn a_body_may_compute_with_sizes_that_the_data_decide() {
    let _context = own_context();
    let iteration = |x: &Tensor, i: &Tensor, sum: Tensor| -> Result<Tensor> {
        let positive = tensor(0.0f64)?.less(x)?;
        let (kept, scaled) = (x.boolean_mask(&positive)?, (x * i)?.boolean_mask(&positive)?);
        (sum + kept.sum_all()?)? + (&kept * &scaled)?.sum_all()?
    };
    let looped = move |args: &[Tensor]| {
        let x = args[0].clone();
        fori_loop(1, 4, tensor(0.0f64)?, move |i: Tensor, sum: Tensor| {
            iteration(&x, &i.cast(DType::F64)?, sum)
        })
    };
    let plain = |args: &[Tensor]| {
        (1..4).try_fold(tensor(0.0f64)?, |sum, i| iteration(&args[0], &tensor(f64::from(i))?, sum))
    };
    check(looped, &plain, &[numbers(&[9], 3)]);
}

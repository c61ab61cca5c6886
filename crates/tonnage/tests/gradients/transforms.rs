//! Derivatives of functions: closures, planned functions, and functions that are traced.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, Check, DType, Elementwise, ErrorKind, GradientTape, Result, Tensor, Variable,
    check_gradients, cond, constant, function, grad, grad_wrt, hvp, jvp, memory, random_normal,
    tensor, value_and_grad, vjp, while_loop,
};

use crate::common::{call_checked, close, in_use, own_context};

fn loss((w, x): (Tensor, Tensor)) -> Result<Tensor> {
    x.matmul(&w)?.tanh()?.square()?.sum_all()
}

fn sample() -> (Tensor, Tensor) {
    let w = tensor([[0.5f64, -1.0], [2.0, 0.25], [0.1, 0.7]]).unwrap();
    (w, tensor([[1.0f64, 2.0, -1.0], [0.3, 0.4, 0.5]]).unwrap())
}

#[test]
fn grad_is_what_the_tape_gives_of_all_arguments_or_some() {
    let _context = own_context();
    let (w, x) = sample();
    let mut tape = GradientTape::new();
    tape.watch((&w, &x));
    let y = loss((w.clone(), x.clone())).unwrap();
    let (dw, dx) = tape.gradient(&y, (&w, &x)).unwrap();
    let (dw, dx) = (dw.tensor().unwrap(), dx.tensor().unwrap());
    let expected = [dw.to_vec::<f64>().unwrap(), dx.to_vec::<f64>().unwrap()];
    let (value, (gw, gx)) = value_and_grad(loss)((w.clone(), x.clone())).unwrap();
    close(&value, &y.to_vec::<f64>().unwrap(), 1e-15);
    close(&gw, &expected[0], 1e-15);
    close(&gx, &expected[1], 1e-15);
    let by_w = grad_wrt(loss, |(w, _)| w.clone());
    close(&by_w((w.clone(), x.clone())).unwrap(), &expected[0], 1e-15);
    // Of a planned function, and inside of one.
    let planned = function(loss);
    let of = grad(|args: (Tensor, Tensor)| planned.call(args));
    close(&of((w.clone(), x.clone())).unwrap().0, &expected[0], 1e-15);
    let inside = function(grad(loss));
    close(&call_checked(&inside, &(w, x)).1, &expected[1], 1e-15);
}

#[test]
fn what_comes_in_twice_is_two_arguments() {
    let _context = own_context();
    let x = tensor(3.0f64).unwrap();
    let by_first = grad_wrt(|(a, b): (Tensor, Tensor)| a * b, |(a, _)| a.clone());
    assert_eq!(by_first((x.clone(), x.clone())).unwrap().scalar::<f64>().unwrap(), 3.0);
    // x * d(x * y)/dy at y = x is x * x: the inner gradient does not see the outer x.
    let outer = grad(|x: Tensor| {
        let held = x.clone();
        let inner = grad(move |y: Tensor| &held * y);
        &x * inner(x.clone())?
    });
    assert_eq!(outer(x).unwrap().scalar::<f64>().unwrap(), 6.0);
}

#[test]
fn vjp_and_jvp_are_transposes() {
    let _context = own_context();
    let (w, x) = sample();
    let f = |(w, x): (Tensor, Tensor)| -> Result<(Tensor, Tensor)> {
        let y = x.matmul(&w)?.softmax(-1)?;
        let z = (y.max(1)? * x.sum([1])?)?.exp()?;
        Ok((y, z))
    };
    let tangents =
        (random_normal([3, 2], DType::F64).unwrap(), random_normal([2, 3], DType::F64).unwrap());
    let seeds =
        (random_normal([2, 2], DType::F64).unwrap(), random_normal([2], DType::F64).unwrap());
    let dot =
        |a: &Tensor, b: &Tensor| a.mul(b).unwrap().sum_all().unwrap().scalar::<f64>().unwrap();
    let (_, moved) = jvp(f, (w.clone(), x.clone()), tangents.clone()).unwrap();
    let (_, back) = vjp(f, (w, x)).unwrap();
    let grads = back.call(seeds.clone()).unwrap();
    let forwards = dot(&moved.0, &seeds.0) + dot(&moved.1, &seeds.1);
    let backwards = dot(&grads.0, &tangents.0) + dot(&grads.1, &tangents.1);
    assert!((forwards - backwards).abs() < 1e-12, "{forwards} {backwards}");
}

#[test]
fn forward_mode_goes_through_branches_loops_and_functions() {
    let _context = own_context();
    let step = function(|h: Tensor| h.tanh()? + 0.1);
    let f = |x: Tensor| -> Result<Tensor> {
        let start = (constant(0i32, ())?, x.clone());
        let (_, h) = while_loop(
            start,
            |(i, _)| i.less(4),
            |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, (h.tanh()? * &x)?)),
        )?;
        let positive = constant(0.0f64, ())?.less(&h.sum_all()?)?;
        let y = cond(&positive, || (&h).exp(), || (&h).square())?;
        step.call(y)
    };
    let x = tensor([0.9f64, 1.4, -0.2]).unwrap();
    check_gradients(f, &x, Check::default()).unwrap();
    // Inside of a function, the same bits.
    let t = tensor([1.0f64, -0.5, 2.0]).unwrap();
    let (y, dy) = jvp(f, x.clone(), t.clone()).unwrap();
    let planned = function(move |(x, t): (Tensor, Tensor)| jvp(f, x, t));
    let (py, pdy) = call_checked(&planned, &(x, t));
    assert_eq!(y.to_vec::<f64>().unwrap(), py.to_vec::<f64>().unwrap());
    close(&dy, &pdy.to_vec::<f64>().unwrap(), 1e-15);
}

#[test]
fn forward_mode_holds_tangents_of_what_is_held() {
    let _context = own_context();
    let resident = || {
        let values = random_normal([32, 32], DType::F32).unwrap().to_vec::<f32>().unwrap();
        tensor(values).unwrap().reshape([32, 32]).unwrap()
    };
    let (w, h) = (resident(), resident());
    let peak = |times: usize| {
        let before = in_use();
        memory::reset_peak("cpu:0").unwrap();
        let f = |w: Tensor| -> Result<Tensor> {
            let mut y = h.clone();
            for _ in 0..times {
                y = y.matmul(&w)?.tanh()?;
            }
            Ok(y)
        };
        drop(jvp(f, w.clone(), w.clone()).unwrap());
        assert_eq!(in_use(), before);
        memory::info("cpu:0").unwrap().peak - before
    };
    let (short, long) = (peak(3), peak(300));
    assert_eq!(short, long, "constant memory");
    assert!(long <= Bytes::new(12 * 32 * 32 * 4 + 64 * 1024), "{long}");
}

#[test]
fn a_loop_goes_forwards_in_the_memory_of_one_iteration() {
    let _context = own_context();
    let f = |iterations: i32| {
        function(move |(w, t): (Tensor, Tensor)| {
            let run = |w: Tensor| -> Result<Tensor> {
                let start = (constant(0i32, ())?, constant(0.5f32, [32, 32])?);
                let body = |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, h.matmul(&w)?.tanh()?));
                Ok(while_loop(start, |(i, _)| i.less(iterations), body)?.1)
            };
            jvp(run, w, t)
        })
    };
    let w = random_normal([32, 32], DType::F32).unwrap();
    let args = (w.clone(), w);
    let (short, long) = (f(2), f(500));
    assert_eq!(short.plan(&args).unwrap().peak(), long.plan(&args).unwrap().peak());
    call_checked(&long, &args);
}

#[test]
fn hessian_vector_products_are_those_of_the_hessian() {
    let _context = own_context();
    let f = |x: Tensor| -> Result<Tensor> { ((&x).square()? * &x)?.mul(&x.sum_all()?)?.sum_all() };
    let x = tensor([0.5f64, -1.0, 2.0]).unwrap();
    let v = tensor([1.0f64, 0.3, -0.7]).unwrap();
    let hv = hvp(f, x.clone(), v.clone()).unwrap().to_vec::<f64>().unwrap();
    let slope = grad(f);
    let moved =
        |by: f64| slope((&x + (&v * by).unwrap()).unwrap()).unwrap().to_vec::<f64>().unwrap();
    let (up, down) = (moved(1e-5), moved(-1e-5));
    for i in 0..3 {
        assert!((hv[i] - (up[i] - down[i]) / 2e-5).abs() < 1e-7, "{i} {hv:?}");
    }
    // Backward over backward, and inside of a function, agree.
    let twice = grad(move |x: Tensor| grad(f)(x)?.mul(&v)?.sum_all());
    close(&twice(x.clone()).unwrap(), &hv, 1e-12);
    let v = tensor([1.0f64, 0.3, -0.7]).unwrap();
    let planned = function(move |(x, v): (Tensor, Tensor)| hvp(f, x, v));
    close(&call_checked(&planned, &(x, v)), &hv, 1e-12);
}

#[test]
fn tapes_and_forward_passes_nest_either_way() {
    let _context = own_context();
    // d/dx of d/dt (x * t)^3 at t = 1, along t: d/dx 3 x^3 = 9 x^2.
    let inner = |x: &Tensor| -> Result<Tensor> {
        let x = x.clone();
        let f = move |t: Tensor| -> Result<Tensor> {
            let y = (&x * &t)?;
            (&y * &y)? * &y
        };
        Ok(jvp(f, tensor(1.0f64)?, tensor(1.0f64)?)?.1)
    };
    let x = tensor(2.0f64).unwrap();
    assert_eq!(grad(move |x: Tensor| inner(&x))(x.clone()).unwrap().scalar::<f64>().unwrap(), 36.0);
    // Forwards over forwards.
    let cube = |x: Tensor| -> Result<Tensor> { (&x * &x)? * &x };
    let slope = |x: Tensor| Ok(jvp(cube, x, tensor(1.0f64)?)?.1);
    let (_, curve) = jvp(slope, x, tensor(1.0f64).unwrap()).unwrap();
    assert_eq!(curve.scalar::<f64>().unwrap(), 12.0);
}

#[test]
fn a_planned_function_under_a_tape_has_a_gradient_and_saves_what_its_rows_declare() {
    let _context = own_context();
    let w = Variable::new("w", tensor(vec![vec![0.1f32; 64]; 64]).unwrap()).unwrap();
    let v = w.clone();
    let f = function(move |x: Tensor| x.matmul(&v.read()?)?.tanh()?.exp());
    let x = tensor(vec![vec![0.5f32; 64]; 32]).unwrap();
    let run = |x: &Tensor, planned: bool| {
        let mut tape = GradientTape::new();
        tape.watch(x);
        let y = match planned {
            true => f.call(x.clone()).unwrap(),
            false => x.matmul(&w.read().unwrap()).unwrap().tanh().unwrap().exp().unwrap(),
        };
        let loss = y.square().unwrap().sum_all().unwrap();
        let held = tape.held().bytes();
        let (dx, dw) = tape.gradient(&loss, (x, &w)).unwrap();
        (held, dx.tensor().unwrap(), dw.tensor().unwrap())
    };
    let (eager, planned) = (run(&x, false), run(&x, true));
    assert_eq!(eager.0, planned.0, "bytes saved");
    for (a, b) in [(eager.1, planned.1), (eager.2, planned.2)] {
        let a: Vec<f64> = a.to_vec::<f32>().unwrap().iter().map(|x| *x as f64).collect();
        close(&b, &a, 1e-5);
    }
}

#[test]
fn second_derivatives_go_through_planned_functions() {
    let _context = own_context();
    let f = function(|x: Tensor| ((&x).square()? * &x)?.tanh());
    let of = |x: Tensor| f.call(x)?.sum_all();
    let x = tensor([0.5f64, -0.3]).unwrap();
    check_gradients(of, &x, Check { order: 2, ..Check::default() }).unwrap();
}

#[test]
fn wrong_derivatives_are_found_with_their_input_and_figures() {
    let _context = own_context();
    let x = tensor([0.5f64, -1.0]).unwrap();
    // No gradient goes through one of two equal parts: half of it is missing.
    let f = |(a, b): (Tensor, Tensor)| -> Result<Tensor> {
        (a * 3.0)? + (&b.stop_gradient()? + &b)?.square()?
    };
    let error = check_gradients(f, &(x.clone(), x.clone()), Check::default()).unwrap_err();
    let ErrorKind::WrongGradient { input, got, slope, .. } = error.kind() else {
        panic!("{error}")
    };
    assert_eq!(*input, 1);
    assert!((2.0 * got - slope).abs() < 1e-6 * slope.abs().max(1.0), "{error}");
    let text = error.to_string();
    assert!(text.contains("input 1, f64[2]") && text.contains("transforms.rs:"), "{text}");
    // Only the second derivative is wrong here.
    let g = |x: Tensor| -> Result<Tensor> { ((&x).square()? * x.stop_gradient()?)?.sum_all() };
    let once = |x: Tensor| -> Result<Tensor> { ((&x).square()? * &x)?.sum_all() };
    let twice = Check { order: 2, ..Check::default() };
    check_gradients(once, &x, twice).unwrap();
    assert!(check_gradients(g, &x, twice).is_err());
    // In f32 too.
    let x = tensor([0.5f32, -1.0]).unwrap();
    check_gradients(|x: Tensor| x.exp()?.tanh(), &x, Check::default()).unwrap();
}

#[test]
fn bad_calls_are_refused_with_both_sides() {
    let _context = own_context();
    let (x, i) = (tensor([1.0f32, 2.0]).unwrap(), tensor([1i32]).unwrap());
    let text = |result: Result<Tensor>| result.unwrap_err().to_string();
    let vector = text(grad(|x: Tensor| x.square())(x.clone()));
    assert!(vector.contains("grad: the function returned f32[2]") && vector.contains("sum_all"));
    let whole = text(grad(|x: Tensor| x.cast(DType::F32)?.sum_all())(i.clone()));
    assert!(whole.contains("argument 0 is i32[1]"), "{whole}");
    let short = jvp(|x: Tensor| x.exp(), x.clone(), tensor([1.0f32]).unwrap()).unwrap_err();
    assert!(short.to_string().contains("argument 0 is f32[2], its tangent f32[1]"), "{short}");
    // Whole numbers among the arguments do not move.
    let f = |(x, i): (Tensor, Tensor)| x.gather(&i, 0);
    let (_, moved) = jvp(f, (x.clone(), i.clone()), (x.clone(), i)).unwrap();
    assert_eq!(moved.to_vec::<f32>().unwrap(), [2.0]);
}

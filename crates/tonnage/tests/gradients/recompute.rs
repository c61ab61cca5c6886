//! Functions that are recomputed in the backward pass, and functions with a gradient of their own.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, Check, DType, Elementwise, Gradient, GradientTape, Result, Tensor, Variable,
    check_gradients, checkpoint, cond, constant, custom_gradient, function, grad, jvp, memory,
    random_normal, random_uniform, set_seed, tensor, while_loop,
};

use crate::common::{call_checked, close, in_use, own_context};

fn resident(shape: [usize; 2]) -> Tensor {
    let values = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([shape[0] as i64, shape[1] as i64]).unwrap()
}

fn numbers(gradient: &Gradient) -> Vec<f64> {
    gradient.tensor().unwrap().cast(DType::F64).unwrap().to_vec().unwrap()
}

/// A block whose rows save many times what goes in.
fn block(x: Tensor) -> Result<Tensor> {
    let mut y = x;
    for _ in 0..8 {
        y = y.tanh()?.exp()?.relu()?;
        y = (&y * (&y).square()?)?.tanh()?;
    }
    Ok(y)
}

#[test]
fn a_checkpointed_function_saves_its_arguments_and_gives_the_same_gradient() {
    let _context = own_context();
    let x = resident([64, 64]);
    let one = Bytes::new(64 * 64 * 4);
    let light = checkpoint(block);
    let run = |f: &dyn Fn(Tensor) -> Result<Tensor>| {
        let start = in_use();
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = f(x.clone()).unwrap().sum_all().unwrap();
        let (held, used) = (tape.held().bytes(), in_use() - start);
        let dx = tape.gradient(&y, &x).unwrap().tensor().unwrap().to_vec::<f32>().unwrap();
        (held, used, dx)
    };
    let (all, plain, a) = run(&block);
    let (held, used, b) = run(&light);
    assert_eq!(held, one, "x, which is there anyway");
    assert!(used < one, "{used}");
    assert!(
        all > Bytes::new(16 * one.get()) && plain > Bytes::new(16 * one.get()),
        "{all} {plain}"
    );
    for (a, b) in a.iter().zip(&b) {
        assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{a} {b}");
    }
}

#[test]
fn in_a_function_the_plan_shows_what_checkpoints_save() {
    let _context = own_context();
    let net = |recompute: bool| {
        function(move |x: Tensor| {
            let mut tape = GradientTape::new();
            tape.watch(&x);
            let mut y = x.clone();
            for _ in 0..4 {
                y = if recompute { checkpoint(block)(y)? } else { block(y)? };
            }
            let loss = y.sum_all()?;
            tape.gradient(&loss, &x)?.tensor()
        })
    };
    let x = resident([64, 64]);
    let (plain, light) = (net(false), net(true));
    let (a, b) = (plain.plan(&x).unwrap().arena, light.plan(&x).unwrap().arena);
    assert!(3 * b.get() < a.get(), "{a} without, {b} with checkpoints");
    let (a, b) = (call_checked(&plain, &x), call_checked(&light, &x));
    let a: Vec<f64> = a.to_vec::<f32>().unwrap().iter().map(|x| *x as f64).collect();
    close(&b, &a, 1e-5);
}

#[test]
fn checkpoints_nest() {
    let _context = own_context();
    let f = |x: Tensor| {
        let inner = checkpoint(block);
        checkpoint(move |x: Tensor| inner(inner(x)?))(x)?.sum_all()
    };
    let x = resident([32, 32]);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = f(x.clone()).unwrap();
    assert_eq!(tape.held().bytes(), Bytes::new(32 * 32 * 4));
    let nested = numbers(&tape.gradient(&y, &x).unwrap());
    let plain = grad(|x: Tensor| block(block(x)?)?.sum_all())(x.clone()).unwrap();
    let planned = function(grad(f));
    let plain: Vec<f64> = plain.to_vec::<f32>().unwrap().iter().map(|x| *x as f64).collect();
    for (a, b) in plain.iter().zip(&nested) {
        assert!((a - b).abs() <= 1e-5 * a.abs().max(1.0), "{a} {b}");
    }
    close(&call_checked(&planned, &x), &plain, 1e-5);
    let x = tensor([0.3f64, -0.7]).unwrap();
    let small = |x: Tensor| checkpoint(|x: Tensor| x.tanh()?.exp())(x);
    check_gradients(small, &x, Check { order: 2, ..Check::default() }).unwrap();
}

/// Half of the elements, others every time.
fn dropout(x: &Tensor) -> Result<Tensor> {
    let keep = random_uniform([1000], DType::F64)?.less(0.5)?.cast(DType::F64)?;
    x * keep
}

#[test]
fn random_numbers_repeat_exactly_in_the_backward_pass() {
    let _context = own_context();
    let x = tensor(vec![1.0f64; 1000]).unwrap();
    let ones = tensor(true).unwrap();
    let within_branch = move |x: Tensor| cond(&ones, || dropout(&x), || Ok(x.clone()));
    type F<'a> = &'a dyn Fn(Tensor) -> Result<Tensor>;
    let plain: F = &|x| dropout(&x);
    let checkpointed: F = &|x| checkpoint(|x: Tensor| dropout(&x))(x);
    let twice: F =
        &|x| checkpoint(|x: Tensor| checkpoint(|x: Tensor| dropout(&x))(dropout(&x)?))(x);
    let branch: F = &within_branch;
    let both: F = &|x| checkpoint(|x: Tensor| within_branch(x))(x);
    for (case, f) in [plain, checkpointed, twice, branch, both].into_iter().enumerate() {
        // y = x * mask, and the gradient of its sum is that same mask.
        let both = |x: Tensor| -> Result<(Tensor, Tensor)> {
            let mut tape = GradientTape::new();
            tape.watch(&x);
            let y = f(x.clone())?;
            let dx = tape.gradient(&y, &x)?.tensor()?;
            Ok((y, dx))
        };
        let mut seen = Vec::new();
        let planned = function(both);
        for iteration in 0..4 {
            let (y, dx) = match iteration < 2 {
                true => both(x.clone()).unwrap(),
                false => planned.call(x.clone()).unwrap(),
            };
            let (y, dx) = (y.to_vec::<f64>().unwrap(), dx.to_vec::<f64>().unwrap());
            assert!(y == dx, "function {case}, iteration {iteration}");
            assert!(!seen.contains(&y), "fresh numbers each time");
            seen.push(y);
        }
    }
}

#[test]
fn two_random_ops_differ_inside_and_outside_of_a_checkpoint() {
    let _context = own_context();
    let draw = || random_uniform([100], DType::F64);
    let f = function(move |x: Tensor| {
        let a = (&x + draw()?)?;
        let b = checkpoint(|x: Tensor| x + draw()?)(x.clone())?;
        let c = checkpoint(|x: Tensor| x + draw()?)(x)?;
        Ok((a, b, c))
    });
    set_seed(1);
    let (a, b, c) = f.call(tensor(vec![0.0f64; 100]).unwrap()).unwrap();
    let all = [a, b, c].map(|t| t.to_vec::<f64>().unwrap());
    assert!(all[0] != all[1] && all[1] != all[2] && all[0] != all[2]);
}

#[test]
fn variables_inside_of_a_checkpoint_get_their_gradients_and_are_written_once() {
    let _context = own_context();
    let w = Variable::new("w", tensor([2.0f64, 3.0]).unwrap()).unwrap();
    let count = Variable::not_trainable("count", tensor(0.0f64).unwrap()).unwrap();
    let (v, n) = (w.clone(), count.clone());
    let f = checkpoint(move |x: Tensor| {
        n.assign_add(&constant(1.0f64, ())?)?;
        (x * v.read()?)?.square()
    });
    let x = tensor([1.0f64, 10.0]).unwrap();
    let mut tape = GradientTape::new();
    let y = f(x.clone()).unwrap();
    assert_eq!(numbers(&tape.gradient(&y, &w).unwrap()), [4.0, 600.0]);
    assert_eq!(count.read().unwrap().scalar::<f64>().unwrap(), 1.0);
    let u = w.clone();
    let planned = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let y = f(x)?;
        tape.gradient(&y, &u)?.tensor()
    });
    assert_eq!(planned.call(x).unwrap().to_vec::<f64>().unwrap(), [4.0, 600.0]);
    assert_eq!(count.read().unwrap().scalar::<f64>().unwrap(), 2.0);
}

#[test]
fn a_gather_inside_of_a_checkpoint_keeps_its_gradient_as_rows() {
    let _context = own_context();
    let table = Variable::new("table", tensor(vec![vec![1.0f32; 4]; 1000]).unwrap()).unwrap();
    let t = table.clone();
    let f = checkpoint(move |i: Tensor| t.read()?.gather(&i, 0)?.square());
    let mut tape = GradientTape::new();
    let y = f(tensor([3i64, 5]).unwrap()).unwrap();
    let grads = tape.gradient(&y, &table).unwrap();
    assert!(matches!(grads, Gradient::Rows(_)), "{grads:?}");
    assert_eq!(numbers(&grads)[12..16], [2.0; 4]);
}

#[test]
fn forward_mode_goes_through_checkpoints_and_custom_gradients() {
    let _context = own_context();
    let twice = custom_gradient(
        |x: Tensor| Ok(((&x * 2.0)?, ())),
        |(), g: Tensor| g * 3.0, // not the derivative: what its user wants
    );
    let x = tensor([1.0f64]).unwrap();
    let (_, moved) = jvp(|x: Tensor| twice(x), x.clone(), x.clone()).unwrap();
    assert_eq!(moved.to_vec::<f64>().unwrap(), [3.0], "the transpose of the user's gradient");
    let f = |x: Tensor| checkpoint(|x: Tensor| x.tanh()?.exp())(x);
    check_gradients(f, &x, Check::default()).unwrap();
}

#[test]
fn a_custom_gradient_saves_what_it_says_and_second_derivatives_are_its_own() {
    let _context = own_context();
    let x = resident([64, 64]);
    let one = Bytes::new(64 * 64 * 4);
    // x^3 whose gradient saves x, and what lies between is not saved.
    let cube = custom_gradient(
        |x: Tensor| Ok((((&x).square()? * &x)?, x)),
        |x: Tensor, g: Tensor| g * (x.square()? * 3.0)?,
    );
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = cube(x.clone()).unwrap().sum_all().unwrap();
    assert_eq!(tape.held().bytes(), one, "{}", tape.held());
    let expected: Vec<f64> =
        x.to_vec::<f32>().unwrap().iter().map(|x| 3.0 * (*x as f64).powi(2)).collect();
    close(&tape.gradient(&y, &x).unwrap().tensor().unwrap(), &expected, 1e-5);
    // Its output, its argument, or something in between: each is saved without a copy.
    let root = custom_gradient(
        |x: Tensor| {
            let y = (x.log()? * 0.5)?.exp()?;
            Ok((y.clone(), y))
        },
        |y: Tensor, g: Tensor| (g * 0.5)? / y,
    );
    let x = tensor([4.0f64, 9.0]).unwrap();
    check_gradients(|x: Tensor| root(x), &x, Check { order: 2, ..Check::default() }).unwrap();
    check_gradients(|x: Tensor| cube(x), &x, Check { order: 2, ..Check::default() }).unwrap();
    let between = custom_gradient(
        |x: Tensor| {
            let e = x.exp()?;
            Ok(((&e + 1.0)?.log()?, e))
        },
        |e: Tensor, g: Tensor| (g * &e)? / (&e + 1.0)?,
    );
    let x = tensor([0.5f64, -1.0]).unwrap();
    check_gradients(|x: Tensor| between(x), &x, Check { order: 2, ..Check::default() }).unwrap();
    let planned = function(grad(move |x: Tensor| between(x)?.sum_all()));
    let slope = |x: f64| 1.0 / (1.0 + (-x).exp());
    close(&call_checked(&planned, &x), &[slope(0.5), slope(-1.0)], 1e-12);
}

#[test]
fn what_a_custom_gradient_does_not_speak_of_is_differentiated_as_usual() {
    let _context = own_context();
    let w = Variable::new("w", tensor([2.0f64]).unwrap()).unwrap();
    let other = tensor([5.0f64]).unwrap();
    let (v, o) = (w.clone(), other.clone());
    let f = custom_gradient(
        move |x: Tensor| {
            let w = v.read()?;
            Ok((((&x * &w)? * &o)?, w))
        },
        |w: Tensor, g: Tensor| (g * w)? * 100.0,
    );
    let x = tensor([3.0f64]).unwrap();
    let mut tape = GradientTape::new();
    tape.watch((&x, &other));
    let y = f(x.clone()).unwrap();
    let (dx, dw, d_other) = tape.gradient(&y, (&x, &w, &other)).unwrap();
    assert_eq!(
        (numbers(&dx), numbers(&dw), numbers(&d_other)),
        (vec![200.0], vec![15.0], vec![6.0])
    );
    // The backward pass may use what it captured: as it was when the function was called.
    let v = w.clone();
    let g = custom_gradient(|x: Tensor| Ok(((&x * 1.0)?, ())), move |(), g: Tensor| g * v.read()?);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = g(x.clone()).unwrap();
    w.assign(&tensor([7.0f64]).unwrap()).unwrap();
    assert_eq!(numbers(&tape.gradient(&y, &x).unwrap()), [2.0]);
}

#[test]
fn a_custom_gradient_of_the_wrong_number_or_type_is_refused() {
    let _context = own_context();
    let x = tensor([1.0f32, 2.0]).unwrap();
    let shape = custom_gradient(|x: Tensor| Ok((x.exp()?, ())), |(), g: Tensor| g.sum_all());
    let text = shape(x.clone()).unwrap_err().to_string();
    assert!(text.contains("the gradient of argument 0 is f32[], the argument f32[2]"), "{text}");
    assert!(text.contains("recompute.rs:"), "{text}");
    let dtype = custom_gradient(|x: Tensor| Ok((x.exp()?, ())), |(), g: Tensor| g.cast(DType::F64));
    let text = dtype(x.clone()).unwrap_err().to_string();
    assert!(text.contains("is f64[2], the argument f32[2]"), "{text}");
    let number =
        custom_gradient(|x: Vec<Tensor>| Ok((x[0].mul(&x[1])?, ())), |(), g: Tensor| Ok(vec![g]));
    let text = number(vec![x.clone(), x.clone()]).unwrap_err().to_string();
    assert!(text.contains("custom_gradient: 1 gradients for 2 arguments"), "{text}");
    let before = in_use();
    let reads = checkpoint(|x: Tensor| {
        x.to_vec::<f32>()?;
        Ok(x)
    });
    let text = reads(x.clone()).unwrap_err().to_string();
    assert!(text.contains("while_loop") && text.contains("cond"), "{text}");
    assert_eq!(in_use(), before);
}

#[test]
fn checkpoints_work_in_loops() {
    let _context = own_context();
    let f = |x: Tensor| -> Result<Tensor> {
        let body =
            |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, checkpoint(|h: Tensor| h.tanh()?.exp())(h)?));
        let start = (constant(0i32, ())?, x);
        Ok(while_loop(start, |(i, _)| i.less(3), body)?.1)
    };
    let x = tensor([0.2f64, -0.4]).unwrap();
    check_gradients(f, &x, Check::default()).unwrap();
    memory::reset_peak("cpu:0").unwrap();
    let planned = function(grad(move |x: Tensor| f(x)?.sum_all()));
    let eager = grad(move |x: Tensor| f(x)?.sum_all())(x.clone()).unwrap();
    close(&call_checked(&planned, &x), &eager.to_vec::<f64>().unwrap(), 1e-12);
}

//! The tape through the public surface: what it watches, what it gives, and what it holds.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::collections::BTreeMap;

use tonnage::{
    Bytes, Container, DType, Elementwise, ErrorKind, Gradient, GradientTape, Result, Tensor,
    Variable, function, memory, ones, random_normal, tensor, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

fn resident(shape: [usize; 2]) -> Tensor {
    let values = random_normal(shape, DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([shape[0] as i64, shape[1] as i64]).unwrap()
}

fn numbers(gradient: &Gradient) -> Vec<f64> {
    gradient.tensor().unwrap().cast(DType::F64).unwrap().to_vec().unwrap()
}

#[test]
fn sources_nest_in_any_way_and_gradients_nest_as_they_do() {
    let _context = own_context();
    let (a, b) = (tensor([1.0f64, 2.0]).unwrap(), tensor(3.0f64).unwrap());
    let v = Variable::new("v", tensor([4.0f64]).unwrap()).unwrap();
    let named = BTreeMap::from([("b", b.clone())]);
    let mut tape = GradientTape::persistent();
    tape.watch((&a, &named));
    let y = ((&a * &b).unwrap() * v.read().unwrap()).unwrap();
    let (grads, of_named, [of_v]) = tape.gradient(&y, (vec![&a], &named, [&v])).unwrap();
    assert_eq!(numbers(&grads[0]), [12.0, 12.0]);
    assert_eq!(numbers(&of_named["b"]), [12.0]);
    assert_eq!(numbers(&of_v), [9.0]);
    // A list of things of both kinds.
    let mixed: [&dyn tonnage::Watched; 2] = [&v, &b];
    assert_eq!(numbers(&tape.gradient(&y, mixed).unwrap()[1]), [12.0]);
}

#[test]
fn several_targets_add_up_and_each_may_have_a_gradient_of_its_own() {
    let _context = own_context();
    let x = tensor([1.0f64, 2.0]).unwrap();
    let mut tape = GradientTape::persistent();
    tape.watch(&x);
    let (y, z) = ((&x).square().unwrap(), (&x * 10.0).unwrap().sum_all().unwrap());
    assert_eq!(numbers(&tape.gradient(&(y.clone(), z.clone()), &x).unwrap()), [12.0, 14.0]);
    let given = (tensor([1.0f64, 0.5]).unwrap(), tensor(3.0f64).unwrap());
    let dx = tape.gradient_from(&(y.clone(), z), &given, &x).unwrap();
    assert_eq!(numbers(&dx), [32.0, 32.0]);
    // The same target twice, and a target that is a source.
    assert_eq!(numbers(&tape.gradient(&(y.clone(), y.clone()), &x).unwrap()), [4.0, 8.0]);
    assert_eq!(numbers(&tape.gradient(&x, &x).unwrap()), [1.0, 1.0]);
}

#[test]
fn a_tape_watches_what_it_is_told_to() {
    let _context = own_context();
    let (a, b) = (Variable::new("a", ones([2]).unwrap()), Variable::new("b", ones([2]).unwrap()));
    let (a, b) = (a.unwrap(), b.unwrap());
    let frozen = Variable::not_trainable("frozen", ones([2]).unwrap()).unwrap();
    let mut tape = GradientTape::persistent().watch_accessed_variables(false);
    tape.watch(&a);
    let y = ((a.read().unwrap() * b.read().unwrap()).unwrap() * frozen.read().unwrap()).unwrap();
    assert_eq!(numbers(&tape.gradient(&y, &a).unwrap()), [1.0, 1.0]);
    let error = tape.gradient(&y, &b).unwrap_err();
    assert!(error.to_string().contains("variable `b`, f32[2], was not watched"), "{error}");
    let mut tape = GradientTape::persistent();
    let y = (a.read().unwrap() * frozen.read().unwrap()).unwrap();
    assert!(tape.gradient(&y, &frozen).unwrap_err().to_string().contains("`frozen`"));
    // Watched by itself, though the target does not read it.
    assert!(tape.gradient(&y, &b).unwrap().is_unconnected());
}

#[test]
fn what_is_not_recorded_has_no_gradient_and_a_reset_tape_starts_anew() {
    let _context = own_context();
    let x = tensor([3.0f64]).unwrap();
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x).square().unwrap();
    let z = tape.stop_recording(|| (&x).exp()).unwrap();
    let sum = (y + z).unwrap();
    assert_eq!(numbers(&tape.gradient(&sum, &x).unwrap()), [6.0]);
    let text = tape.gradient(&sum, &x).unwrap_err().to_string();
    assert!(text.contains("it gave its gradient at") && text.contains("tape.rs:"), "{text}");
    tape.reset();
    tape.watch(&x);
    let y = (&x * 5.0).unwrap();
    assert_eq!(numbers(&tape.gradient(&y, &x).unwrap()), [5.0]);
}

#[test]
fn stop_gradient_stops_it() {
    let _context = own_context();
    let x = tensor([3.0f64]).unwrap();
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = (&x * (&x).square().unwrap().stop_gradient().unwrap()).unwrap();
    assert_eq!(numbers(&tape.gradient(&y, &x).unwrap()), [9.0]);
}

#[test]
fn third_derivatives_come_of_three_tapes() {
    let _context = own_context();
    let x = tensor([2.0f64]).unwrap();
    let mut tapes = [GradientTape::new(), GradientTape::new(), GradientTape::new()];
    tapes.iter().for_each(|tape| tape.watch(&x));
    let mut y = (&x).square().unwrap().square().unwrap();
    for (tape, expected) in tapes.iter_mut().rev().zip([32.0, 48.0, 48.0]) {
        y = tape.gradient(&y, &x).unwrap().tensor().unwrap();
        assert_eq!(y.to_vec::<f64>().unwrap(), [expected]);
    }
}

#[test]
fn a_variable_of_a_closed_container_is_named() {
    let _context = own_context();
    let container = Container::new("box");
    let v = container.enter(|| Variable::new("v", ones([2]).unwrap())).unwrap();
    let mut tape = GradientTape::new();
    let y = (v.read().unwrap() * 2.0).unwrap();
    container.close().unwrap();
    let error = tape.gradient(&y, &v).unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::Closed { .. }), "{error}");
    assert!(error.to_string().contains("`v`") && error.to_string().contains("tape.rs:"), "{error}");
}

/// A loop of matmuls under a tape holds what matmul's row declares: for the gradient of the left side
/// the right one, which is one tensor; for that of the right side every left one.
#[test]
fn a_loop_of_matmuls_holds_what_the_rows_declare_and_says_how_much() {
    let _context = own_context();
    let (h, w) = (resident([16, 16]), resident([16, 16]));
    let size = Bytes::new(16 * 16 * 4);
    let run = |watched: &Tensor, times: usize| {
        let before = in_use();
        let tape = GradientTape::new();
        tape.watch(watched);
        let mut y = h.clone();
        for _ in 0..times {
            y = y.matmul(&w).unwrap();
        }
        let (held, grown) = (tape.held(), in_use() - before);
        assert_eq!(held.ops.len(), times);
        assert!(held.to_string().contains("matmul"), "{held}");
        drop(y);
        drop(tape);
        assert_eq!(in_use(), before, "a dropped tape holds nothing");
        (held.bytes(), grown)
    };
    // To w: each left side, the first of which is there anyway, and w; the last result is ours.
    let times = 10_000;
    let all = Bytes::new(size.get() * times as u64);
    assert_eq!(run(&w, times), (all + size, all));
    // To h: w, however long the loop.
    assert_eq!(run(&h, times), (size, size));
}

#[test]
fn the_backward_pass_frees_what_it_has_passed() {
    let _context = own_context();
    let x = resident([256, 256]);
    let one = Bytes::new(256 * 256 * 4);
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let mut y = (&x).tanh().unwrap();
    for _ in 0..9 {
        y = y.tanh().unwrap();
    }
    let loss = y.sum_all().unwrap();
    drop(y);
    let held = tape.held().bytes();
    assert_eq!(held, Bytes::new(10 * one.get()));
    memory::reset_peak("cpu:0").unwrap();
    let before = in_use();
    let dx = tape.gradient(&loss, &x).unwrap();
    let peak = memory::info("cpu:0").unwrap().peak - before;
    // The last output is freed before the second rule begins: never more than what a rule works on.
    assert!(peak.get() <= 2 * one.get() + 4096, "{peak}");
    assert_eq!(in_use(), before - held + one, "the gradient alone is left");
    drop(dx);
}

#[test]
fn sums_of_gradients_are_added_up_in_place() {
    let _context = own_context();
    let x = resident([128, 128]);
    let one = (128 * 128 * 4) as u64;
    let mut tape = GradientTape::new();
    tape.watch(&x);
    // Thirty uses of x: thirty parts of its gradient.
    let mut y = (&x * 0.5).unwrap();
    for i in 0..30 {
        y = (y + (&x * (1.0 + i as f64)).unwrap()).unwrap();
    }
    let loss = y.sum_all().unwrap();
    drop(y);
    memory::reset_peak("cpu:0").unwrap();
    let before = in_use();
    let dx = tape.gradient(&loss, &x).unwrap();
    let peak = memory::info("cpu:0").unwrap().peak - before;
    assert!(peak.get() <= 3 * one, "{peak}");
    assert_eq!(numbers(&dx)[0], 0.5 + (1..=30).sum::<i32>() as f64);
}

#[test]
fn gradients_that_are_not_asked_for_are_neither_computed_nor_planned() {
    let _context = own_context();
    let (x, w) = (resident([12, 20]), resident([20, 28]));
    let run = |x: &Tensor, w: &Tensor| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        tape.watch((x, w));
        let y = x.matmul(w)?.sum_all()?;
        let scope = memory::scope();
        let dw = tape.gradient(&y, w)?.tensor()?;
        let products = scope.report().events.iter().filter(|e| e.op == "matmul").count();
        assert!(x.is_symbolic() || products > 0, "{}", scope.report());
        drop(scope);
        Ok(dw)
    };
    let scope = memory::scope();
    run(&x, &w).unwrap();
    let report = scope.report();
    let count = |rows: u64, columns: u64| {
        let obtained = |e: &&memory::Event| e.action == memory::Action::Allocated;
        let result = Bytes::new(rows * columns * 4).rounded();
        let product = |e: &&memory::Event| e.op == "matmul" && e.bytes == result;
        report.events.iter().filter(obtained).filter(product).count()
    };
    assert_eq!(count(12, 28), 2, "the product, and the ones of its gradient\n{report}");
    assert_eq!(count(20, 28), 1, "the gradient that was asked for\n{report}");
    assert_eq!(count(12, 20), 0, "not the other\n{report}");
    drop(scope);
    let f = function(move |(x, w): (Tensor, Tensor)| run(&x, &w));
    let plan = f.plan(&(x, w)).unwrap();
    let products = plan.graph.nodes.iter().filter(|node| node.op.name == "matmul");
    assert_eq!(products.count(), 1, "the sum's gradient needs no product\n{plan}");
}

#[test]
fn a_traced_tape_says_what_its_gradient_will_keep() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x).tanh()?.exp()?.sum_all()?;
        assert_eq!(tape.held().bytes(), Bytes::new(2 * 1024 * 4), "{}", tape.held());
        tape.gradient(&y, &x)?.tensor()
    });
    let x = tensor(vec![0.5f32; 1024]).unwrap();
    call_checked(&f, &x);
}

#[test]
fn jacobians_are_those_of_mathematics_row_by_row_or_not() {
    let _context = own_context();
    let x = tensor([[1.0f64, 2.0, 3.0], [0.5, -1.0, 2.0]]).unwrap();
    let w = tensor([[1.0f64, 2.0], [0.5, -1.0], [3.0, 1.0]]).unwrap();
    type F = fn(&Tensor, &Tensor) -> Result<Tensor>;
    let by_row: F = |x, w| x.matmul(w)?.tanh();
    let mixed: F = |x, w| {
        let y = x.matmul(w)?.tanh()?;
        let total = y.sum_all()?;
        y * total
    };
    for f in [by_row, mixed] {
        let mut tape = GradientTape::persistent();
        tape.watch((&x, &w));
        let y = f(&x, &w).unwrap();
        let (jx, jw) = tape.jacobian(&y, (&x, &w)).unwrap();
        let (jx, jw) = (jx.tensor().unwrap(), jw.tensor().unwrap());
        assert_eq!(jx.shape().to_string(), "[2, 2, 2, 3]");
        assert_eq!(jw.shape().to_string(), "[2, 2, 3, 2]");
        // Alone, x goes row by row where it can; both ways agree.
        let alone = tape.jacobian(&y, &x).unwrap().tensor().unwrap();
        close(&alone, &jx.to_vec::<f64>().unwrap(), 1e-12);
        let batch = tape.batch_jacobian(&y, &x).unwrap().to_vec::<f64>().unwrap();
        let whole = jx.to_vec::<f64>().unwrap();
        let at = x.to_vec::<f64>().unwrap();
        let value = |at: &[f64]| {
            let x = tensor(at.to_vec()).unwrap().reshape([2, 3]).unwrap();
            f(&x, &w).unwrap().to_vec::<f64>().unwrap()
        };
        for i in 0..6 {
            let moved = |by: f64| {
                let mut at = at.clone();
                at[i] += by;
                value(&at)
            };
            let (up, down) = (moved(1e-6), moved(-1e-6));
            for k in 0..4 {
                let slope = (up[k] - down[k]) / 2e-6;
                assert!((whole[k * 6 + i] - slope).abs() < 1e-8, "{k} {i}");
                if k / 2 == i / 3 {
                    assert!((batch[k * 3 + i % 3] - slope).abs() < 1e-8, "batch {k} {i}");
                }
            }
        }
    }
}

#[test]
fn a_jacobian_takes_the_result_and_one_backward_pass() {
    let _context = own_context();
    let (x, w) = (resident([64, 64]), resident([64, 64]));
    let mut tape = GradientTape::new();
    tape.watch(&x);
    let y = x.matmul(&w).unwrap().tanh().unwrap();
    memory::reset_peak("cpu:0").unwrap();
    let before = in_use();
    let j = tape.batch_jacobian(&y, &x).unwrap();
    assert_eq!(j.shape().to_string(), "[64, 64, 64]");
    let peak = memory::info("cpu:0").unwrap().peak - before;
    let (result, one) = (64 * 64 * 64 * 4u64, 64 * 64 * 4u64);
    // Once as it is gathered, once in the order that it has; and what one backward pass works on.
    assert!(peak.get() <= 2 * result + 16 * one, "{peak}");
}

#[test]
fn jacobians_inside_of_functions_are_planned() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x).square()?.mul(&x.sum_all()?)?;
        tape.jacobian(&y, &x)?.tensor()
    });
    let x = tensor([1.0f64, 2.0]).unwrap();
    // y_i = x_i^2 (x_1 + x_2)
    close(&call_checked(&f, &x), &[2.0 * 3.0 + 1.0, 1.0, 4.0, 4.0 * 3.0 + 4.0], 1e-12);
}

#[test]
fn an_unconnected_source_has_no_jacobian() {
    let _context = own_context();
    let (x, z) = (tensor([1.0f64]).unwrap(), zeros([3]).unwrap());
    let mut tape = GradientTape::new();
    tape.watch((&x, &z));
    let y = (&x * 2.0).unwrap();
    let (jx, jz) = tape.jacobian(&y, (&x, &z)).unwrap();
    assert_eq!(numbers(&jx), [2.0]);
    assert!(jz.is_unconnected());
}

#[test]
fn bits_give_way_to_a_result_that_is_saved_anyway() {
    let _context = own_context();
    let (x, w) = (resident([32, 64]), resident([64, 16]));
    let bits = |then: &dyn Fn(&Tensor) -> Result<Tensor>| {
        let tape = GradientTape::new();
        tape.watch((&x, &w));
        let y = (&x).relu().unwrap();
        then(&y).unwrap();
        let held = tape.held();
        let of_relu = held.ops.iter().find(|of| of.op == "relu").unwrap().bytes;
        (of_relu, held.bytes())
    };
    // A sum saves nothing: the bits are all there is.
    assert_eq!(bits(&|y| y.sum_all()).0, Bytes::new(32 * 64 / 8));
    // A product saves the result, which tells as much as the bits; it is counted once.
    let (of_relu, all) = bits(&|y| y.matmul(&w));
    let (y, w_bytes) = (Bytes::new(32 * 64 * 4), Bytes::new(64 * 16 * 4));
    assert_eq!((of_relu, all), (y, y + w_bytes));
    let gradient = |x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let y = (&x - 0.1)?.relu()?.matmul(&w)?.sum_all()?;
        tape.gradient(&y, &x)
    };
    let planned = function(|x: Tensor| gradient(x)?.tensor());
    let expected = planned.call(x.clone()).unwrap().to_vec::<f32>().unwrap();
    assert_eq!(gradient(x).unwrap().tensor().unwrap().to_vec::<f32>().unwrap(), expected);
}

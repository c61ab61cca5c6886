//! Chains of elementwise ops run in one pass, and what lies between them never exists.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use common::{alone, call_checked};
use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Tensor, Variable, function, random_normal, tensor,
};

fn large() -> Tensor {
    let values = random_normal([300, 400], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([300, 400]).unwrap()
}

#[test]
fn a_chain_takes_its_input_and_its_output_and_nothing_else() {
    let _turn = alone();
    let x = large();
    let size = Bytes::of(300 * 400 * 4).rounded();
    let f = function(|x: Tensor| ((&x * &x)? * 2.0)? + 1.0);
    let plan = f.plan(&x).unwrap();
    assert_eq!(plan.peak(), size + size);
    let y = call_checked(&f, &x);
    let eager = ((x.clone() * &x).unwrap() * 2.0).unwrap();
    let eager = (eager + 1.0).unwrap();
    assert_eq!(y.to_vec::<f32>().unwrap(), eager.to_vec::<f32>().unwrap());
}

#[test]
fn an_argument_that_is_given_up_holds_the_result() {
    let _turn = alone();
    let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
    f.call(large()).unwrap();
    let x = large();
    let before = common::in_use();
    tonnage::memory::reset_peak("cpu:0").unwrap();
    let y = f.call(x).unwrap();
    assert_eq!(tonnage::memory::info("cpu:0").unwrap().peak, before);
    drop(y);
}

#[test]
fn a_long_winded_function_and_a_compact_one_have_the_same_plan() {
    let _turn = alone();
    let x = large();
    let long = function(|x: Tensor| {
        let y = x.square()?;
        let z = (y * 2.0)?;
        let w = (z + 1.0)?;
        w.sum([1])
    });
    let compact = function(|x: Tensor| ((x.square()? * 2.0)? + 1.0)?.sum([1]));
    let (a, b) = (long.plan(&x).unwrap(), compact.plan(&x).unwrap());
    assert_eq!(a.graph.to_string(), b.graph.to_string());
    assert_eq!(a.peak(), b.peak());
    assert_eq!(
        a.graph.to_string().lines().filter(|l| l.contains("fused")).count(),
        1,
        "{}",
        a.graph
    );
    call_checked(&compact, &x);
}

#[test]
fn softmax_holds_no_second_copy_of_its_input() {
    let _turn = alone();
    let x = large();
    let f = function(|x: Tensor| x.softmax(-1));
    let size = Bytes::of(300 * 400 * 4).rounded();
    let plan = f.plan(&x).unwrap();
    assert!(plan.obtains() <= size + Bytes::of(300 * 4 * 3) + Bytes::new(16 * 1024), "{plan}");
    let y = call_checked(&f, &x);
    assert_eq!(y.to_vec::<f32>().unwrap(), x.softmax(-1).unwrap().to_vec::<f32>().unwrap());
}

#[test]
fn an_update_is_one_pass_over_the_variable() {
    let _turn = alone();
    let v = Variable::new("v", large()).unwrap();
    let w = v.clone();
    let step = function(move |x: Tensor| {
        let mut tape = GradientTape::new();
        let loss = (w.read()? * &x)?.sum_all()?;
        let grads = tape.gradient(&loss, &[&w])?;
        w.assign_sub(&(grads[0].tensor()? * 0.5)?)?;
        Ok(loss)
    });
    let x = large();
    let plan = step.plan(&x).unwrap();
    assert!(plan.graph.to_string().contains("fused_update"), "{}", plan.graph);
    // Neither the gradient nor the scaled gradient ever lies in memory.
    assert!(plan.arena < Bytes::of(16 * 1024), "{plan}");
    let before = v.read().unwrap().to_vec::<f32>().unwrap();
    call_checked(&step, &x);
    let after = v.read().unwrap().to_vec::<f32>().unwrap();
    let x = x.to_vec::<f32>().unwrap();
    for i in (0..x.len()).step_by(997) {
        let expected = (before[i] - x[i] * 0.5) - x[i] * 0.5;
        assert!((after[i] - expected).abs() <= 1e-5, "{} {expected}", after[i]);
    }
}

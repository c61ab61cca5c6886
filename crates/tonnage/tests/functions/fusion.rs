//! Chains of elementwise ops run in one pass, and what lies between them never exists.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Tensor, Variable, function, random_normal, tensor,
};

use crate::common::{call_checked, in_use, own_context};

fn large() -> Tensor {
    let values = random_normal([300, 400], DType::F32).unwrap().to_vec::<f32>().unwrap();
    tensor(values).unwrap().reshape([300, 400]).unwrap()
}

#[test]
fn a_chain_takes_its_input_and_its_output_and_nothing_else() {
    let _context = own_context();
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
    let _context = own_context();
    let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
    f.call(large()).unwrap();
    let x = large();
    let before = in_use();
    tonnage::memory::reset_peak("cpu:0").unwrap();
    let y = f.call(x).unwrap();
    assert_eq!(tonnage::memory::info("cpu:0").unwrap().peak, before);
    drop(y);
}

#[test]
fn a_long_winded_function_and_a_compact_one_have_the_same_plan() {
    let _context = own_context();
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
    let _context = own_context();
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
    let _context = own_context();
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

/// The ways in which people write softmax over the last axis.
fn by_hand(x: &Tensor, way: usize) -> tonnage::Result<Tensor> {
    match way {
        // As in a textbook.
        0 => {
            let e = (x - &x.max_keep([-1])?)?.exp()?;
            let sum = e.sum_keep([-1])?;
            e / sum
        }
        // Step by step, with axes dropped and put back, and names for everything.
        1 => {
            let most = x.max([-1])?.expand_dims(-1)?;
            let wide = most.broadcast_to(x.shape())?;
            let shifted = x.sub(&wide)?;
            let e = shifted.exp()?;
            let total = e.sum([-1])?;
            let total = total.expand_dims(-1)?.broadcast_to(x.shape())?;
            e.div(&total)
        }
        // By a factor.
        2 => {
            let e = (x - &x.max_keep([-1])?)?.exp()?;
            let factor = (1.0 / e.sum_keep([-1])?)?;
            e * factor
        }
        // Through the logarithm.
        _ => (x - &x.logsumexp_keep([-1])?)?.exp(),
    }
}

#[test]
fn softmax_by_hand_takes_no_more_than_the_op_and_a_number_a_row() {
    let _context = own_context();
    for sizes in [&[300usize, 400] as &[usize], &[8, 16], &[1, 100_000], &[6, 50, 700]] {
        let count: usize = sizes.iter().product();
        let values = random_normal([count], DType::F32).unwrap().to_vec::<f32>().unwrap();
        let dims: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
        let x = tensor(values).unwrap().reshape(&dims).unwrap();
        let op = function(|x: Tensor| x.softmax(-1)).plan(&x).unwrap();
        let rows = Bytes::of(count / sizes[sizes.len() - 1] * 4).rounded();
        let expected = x.softmax(-1).unwrap().to_vec::<f32>().unwrap();
        for way in 0..4 {
            let f = function(move |x: Tensor| by_hand(&x, way));
            let plan = f.plan(&x).unwrap();
            // The largest of each row and its sum live together; the arena is whole pages.
            let most = op.peak() + rows + rows;
            assert!(
                plan.peak() <= most.max(op.peak() + Bytes::new(4096)),
                "way {way} of {sizes:?}: {} and {}\n{plan}\n{}",
                plan.peak(),
                op.peak(),
                plan.graph
            );
            let got = call_checked(&f, &x).to_vec::<f32>().unwrap();
            for (a, b) in got.iter().zip(&expected) {
                assert!((a - b).abs() <= 1e-6 + 1e-5 * b, "way {way}: {a} {b}");
            }
        }
    }
}

#[test]
fn what_is_broadcast_at_the_end_is_never_narrow() {
    let _context = own_context();
    let row = tensor(vec![0.5f32; 64 * 1024]).unwrap();
    let f = function(|row: Tensor| (row.broadcast_to([16, 64 * 1024])?.exp()? * 2.0)? + 1.0);
    let plan = f.plan(&row).unwrap();
    assert_eq!(plan.obtains(), Bytes::of(16 * 64 * 1024 * 4).rounded(), "{plan}");
    let got = call_checked(&f, &row).to_vec::<f32>().unwrap();
    let one = (((&row).exp().unwrap() * 2.0).unwrap() + 1.0).unwrap().to_vec::<f32>().unwrap();
    assert!(got.iter().all(|value| value.to_bits() == one[0].to_bits()));
    // Into a reduction too.
    let f = function(|row: Tensor| row.broadcast_to([16, 64 * 1024])?.exp()?.sum_all());
    let plan = f.plan(&row).unwrap();
    assert!(plan.obtains() < Bytes::of(64 * 1024), "{plan}");
    call_checked(&f, &row);
    // What is expensive to compute is computed once a row.
    let f = function(|row: Tensor| row.broadcast_to([16, 64 * 1024])?.lgamma());
    let plan = f.plan(&row).unwrap();
    assert!(plan.obtains() > Bytes::of(16 * 64 * 1024 * 4).rounded(), "{plan}");
    call_checked(&f, &row);
}

/// A view of a number is no number, whatever is computed with it.
#[test]
fn views_of_numbers_keep_their_shape() -> tonnage::Result<()> {
    let _context = own_context();
    let run = function(|x: Tensor| {
        let wide = ((&x).sin()?.reshape([1, 1])? * 2.0)?;
        let more = ((&x + 1.0)?.expand_dims(0)? * &x)?;
        Ok((wide, more))
    });
    let (wide, more) = run.call(tensor(0.5f32)?)?;
    assert_eq!((wide.shape(), more.shape()), ([1, 1].into(), [1].into()));
    assert_eq!(wide.to_vec::<f32>()?, [0.5f32.sin() * 2.0]);
    assert_eq!(more.to_vec::<f32>()?, [0.75]);
    Ok(())
}

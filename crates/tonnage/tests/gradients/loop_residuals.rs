//! What is expensive in the iterations of a loop, saved for its gradient where a budget has room for it.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests stand outside of test functions"
)]

use tonnage::{
    DType, Elementwise, Function, GradientTape, Loop, Result, Tensor, Variable, Watched, concat,
    function, random_normal, random_uniform, set_seed, tensor,
};

use crate::common::{call_checked, own_context};

const ITERATIONS: usize = 24;
const BATCH: usize = 4;
const WIDTH: usize = 8;

fn drawn(sizes: &[usize]) -> Tensor {
    let values = (random_normal(sizes, DType::F32).unwrap() * 0.5).unwrap();
    let shape: Vec<i64> = sizes.iter().map(|n| *n as i64).collect();
    tensor(values.to_vec::<f32>().unwrap()).unwrap().reshape(&shape[..]).unwrap()
}

/// Gradients of a cell with two states and gates, by its weights and by every input, from its last state and from all that
/// it gave on the way. Some of what it gives is dropped at random.
fn cell(
    w: &Variable,
    options: Loop,
) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor> + use<>> {
    let w = w.clone();
    function(move |xs: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&xs);
        let value = w.read()?;
        let start = (xs.slice(&[(0..1).into()])?.reshape([BATCH as i64, WIDTH as i64])? * 0.5)?;
        let (last, given) = options.clone().scan(
            (start.clone(), start),
            xs.clone(),
            |(h, c): (Tensor, Tensor), x: Tensor| {
                let of_h = h.matmul(&value)?;
                let gate = (&of_h + &x)?.sigmoid()?;
                let new = (x.matmul(&value)? * &of_h)?.tanh()?;
                let c = ((&c * &gate)? + (&new * (1.0 - &gate)?)?)?;
                let dropped = random_uniform([BATCH, WIDTH], DType::F32)?.less(0.8)?;
                let h = ((&c).tanh()? * &gate)?;
                let y = (&h * dropped.cast(DType::F32)?)?;
                Ok(((h, c), y))
            },
        )?;
        let loss = (last.0.square()?.sum_all()? + given.sin()?.sum_all()?)?;
        let grads = tape.gradient(&loss, &[&w as &dyn Watched, &xs])?;
        let flat = |i: usize| grads[i].tensor()?.reshape([-1]);
        concat(&[&flat(0)?, &flat(1)?], 0)
    })
}

#[test]
fn what_is_expensive_in_an_iteration_is_saved_where_there_is_room_and_the_bits_stay() {
    let _context = own_context();
    set_seed(3);
    let w = Variable::new("w", drawn(&[WIDTH, WIDTH])).unwrap();
    let xs = drawn(&[ITERATIONS, BATCH, WIDTH]);
    for options in [Loop::new(), Loop::new().reverse()] {
        let lean = cell(&w, options.clone()).exact().budget("least").unwrap();
        set_seed(9);
        let expected = call_checked(&lean, &xs).to_vec::<f32>().unwrap();
        assert_eq!(lean.plan(&xs).unwrap().fitted.unwrap().residuals, 0);

        let quick = cell(&w, options.clone()).budget("1GiB").unwrap();
        let plan = quick.plan(&xs).unwrap();
        let fitted = plan.fitted.unwrap();
        assert_eq!((fitted.residuals, fitted.max_checkpoints), (1, None), "{plan}");
        assert!(
            plan.to_string().contains("a loop saves its residuals for the backward pass"),
            "{plan}"
        );
        assert_eq!(plan.recomputed_iterations(), Some(0));
        set_seed(9);
        assert_eq!(call_checked(&quick, &xs).to_vec::<f32>().unwrap(), expected);

        // With less room the most expensive are saved, then states alone, then a few of those.
        let most = plan.peak();
        let less = cell(&w, options.clone()).budget(most - tonnage::Bytes::new(64)).unwrap();
        let plan = less.plan(&xs).unwrap();
        assert!(plan.peak() < most && plan.fitted.unwrap().residuals == 1, "{plan}");
        set_seed(9);
        assert_eq!(call_checked(&less, &xs).to_vec::<f32>().unwrap(), expected);
        let prices = quick.prices(&xs).unwrap();
        assert_eq!(prices.last().unwrap().fitted.residuals, 0);
        for price in prices {
            let less = cell(&w, options.clone()).budget(price.peak).unwrap();
            set_seed(9);
            assert_eq!(call_checked(&less, &xs).to_vec::<f32>().unwrap(), expected);
        }
    }
}

#[test]
fn a_loop_whose_states_are_all_that_its_gradient_needs_saves_those_alone() {
    let _context = own_context();
    set_seed(3);
    let w = Variable::new("w", drawn(&[WIDTH, WIDTH])).unwrap();
    let xs = drawn(&[ITERATIONS, BATCH, WIDTH]);
    let f = function({
        let w = w.clone();
        move |xs: Tensor| {
            let mut tape = GradientTape::new();
            let value = w.read()?;
            let start = (xs.slice(&[(0..1).into()])?.reshape([BATCH as i64, WIDTH as i64])? * 0.0)?;
            let (last, ()) = tonnage::scan(start, xs, |h: Tensor, x: Tensor| {
                Ok(((h.matmul(&value)? + x)?.tanh()?, ()))
            })?;
            tape.gradient(&last.sum_all()?, &[&w])?[0].tensor()
        }
    });
    let plan = f.budget("1GiB").unwrap().plan(&xs).unwrap();
    let fitted = plan.fitted.unwrap();
    assert_eq!((fitted.residuals, fitted.recomputed_iterations), (0, Some(0)), "{plan}");
}

#[test]
fn states_that_were_counted_by_hand_or_wait_in_a_file_stay_as_they_are() {
    let _context = own_context();
    set_seed(3);
    let w = Variable::new("w", drawn(&[WIDTH, WIDTH])).unwrap();
    let xs = drawn(&[ITERATIONS, BATCH, WIDTH]);
    for options in [Loop::new().checkpoints(5), Loop::new().spill()] {
        let plan = cell(&w, options).budget("1GiB").unwrap().plan(&xs).unwrap();
        assert_eq!(plan.fitted.unwrap().residuals, 0, "{plan}");
    }
}

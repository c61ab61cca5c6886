//! Calls from several threads at once: no update is lost, no value is seen half written, and nobody waits for ever;
//! also from threads of other pools, which like to take up other work while they wait.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use rayon::prelude::*;
use tonnage::{Container, DType, Function, Result, Tensor, Variable, function, tensor, zeros};

/// Large enough that kernels share the work among threads.
const LARGE: usize = 1 << 18;

fn variable(name: &str, len: usize) -> Variable {
    Variable::new(name, zeros([len]).unwrap().identity().unwrap()).unwrap()
}

/// A function that adds 1 to all elements of some variables, in that order.
fn grow(variables: Vec<Variable>) -> Function<Tensor, Tensor, impl Fn(Tensor) -> Result<Tensor>> {
    function(move |one: Tensor| {
        for v in &variables {
            v.assign_add(&one.broadcast_to(v.ty().shape)?)?;
        }
        variables[0].read()?.sum_all()
    })
}

fn all_are(v: &Variable, expected: f32) {
    let values = v.read().unwrap().to_vec::<f32>().unwrap();
    assert!(values.iter().all(|x| *x == expected), "{expected}: {values:?}");
}

#[test]
fn no_update_is_lost() {
    for len in [3, LARGE] {
        let v = variable("v", len);
        let f = grow(vec![v.clone()]);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..25 {
                        f.call(tensor(1.0f32).unwrap()).unwrap();
                    }
                });
            }
        });
        all_are(&v, 100.0);
    }
}

#[test]
fn calls_from_the_threads_of_another_pool_take_turns() {
    let v = variable("v", LARGE);
    let f = grow(vec![v.clone()]);
    (0..60).into_par_iter().for_each(|i| match i % 3 {
        0 => v.assign_add(&tensor(1.0f32).unwrap().broadcast_to([LARGE]).unwrap()).unwrap(),
        _ => drop(f.call(tensor(1.0f32).unwrap()).unwrap()),
    });
    all_are(&v, 60.0);
}

#[test]
fn what_is_read_during_a_call_is_a_whole_value_and_stays_it() {
    let v = variable("v", LARGE);
    let f = grow(vec![v.clone()]);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            for _ in 0..40 {
                f.call(tensor(1.0f32).unwrap()).unwrap();
            }
        });
        while !writer.is_finished() {
            let before = v.read().unwrap();
            let first = before.to_vec::<f32>().unwrap();
            assert!(first.iter().all(|x| *x == first[0]), "torn");
            std::thread::yield_now();
            assert_eq!(before.to_vec::<f32>().unwrap(), first, "it changed after it was read");
        }
    });
    all_are(&v, 40.0);
}

#[test]
fn calls_that_write_the_same_variables_in_any_order_end() {
    let (a, b) = (variable("a", 1000), variable("b", LARGE));
    let (forth, back) = (grow(vec![a.clone(), b.clone()]), grow(vec![b.clone(), a.clone()]));
    (0..40).into_par_iter().for_each(|i| {
        let f = if i % 2 == 0 {
            forth.call(tensor(1.0f32).unwrap())
        } else {
            back.call(tensor(1.0f32).unwrap())
        };
        f.unwrap();
    });
    all_are(&a, 40.0);
    all_are(&b, 40.0);
}

#[test]
fn a_recipe_that_several_threads_need_whole_is_written_out_once() {
    for _ in 0..20 {
        let x = tonnage::random_normal([64, 64], DType::F32).unwrap();
        let all: Vec<Vec<f32>> = std::thread::scope(|scope| {
            let start = || x.matmul(&x).unwrap().to_vec::<f32>().unwrap();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(start)).collect();
            threads.into_iter().map(|t| t.join().unwrap()).collect()
        });
        assert!(all.windows(2).all(|w| w[0] == w[1]));
    }
}

#[test]
fn a_variable_that_gets_no_value_is_in_no_container() {
    let container = Container::new("c");
    let f = function(|x: Tensor| {
        // A value that is still to come cannot start a variable.
        Variable::new("v", x.clone())?;
        Ok(x)
    });
    let made = container.enter(|| f.call(tensor([1.0f32]).unwrap()));
    assert!(made.unwrap_err().to_string().contains("a first value that depends on an argument"));
    assert!(container.variables().is_empty());
}

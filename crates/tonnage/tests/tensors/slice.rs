//! One op of each kind, the whole way: eager, traced, planned, differentiated, run.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use tonnage::{
    Bytes, DType, Elementwise, GradientTape, Part, Result, Tensor, Variable, cond, constant,
    function, memory, random_normal, tensor, while_loop, zeros,
};

use crate::common::{call_checked, close, in_use, own_context};

#[test]
fn an_elementwise_chain_is_planned_and_runs_in_place() {
    let _context = own_context();
    let f = function(|x: Tensor| (x.square()? * 2.0)? + 1.0);
    let x = tensor([1.0f32, 2.0, 3.0]).unwrap();
    let y = call_checked(&f, &x);
    assert_eq!(y.to_vec::<f32>().unwrap(), [3.0, 9.0, 19.0]);
}

#[test]
fn by_value_nothing_is_allocated_beyond_the_input() {
    let _context = own_context();
    let x = random_normal([64, 64], DType::F32).unwrap().identity().unwrap();
    let x = tensor(x.to_vec::<f32>().unwrap()).unwrap();
    let before = in_use();
    memory::reset_peak("cpu:0").unwrap();
    let scope = memory::scope();
    let x = (x * 3.0).unwrap();
    let y = ((x * 2.0).unwrap() + 1.0).unwrap();
    assert_eq!(scope.report().count(memory::Action::Allocated), 0, "{}", scope.report());
    assert_eq!(memory::info("cpu:0").unwrap().peak, before);
    drop(y);
}

#[test]
fn recipes_cost_nothing_however_large() {
    let _context = own_context();
    let before = in_use();
    let x = constant(1.0f32, [1000, 1000, 1000]).unwrap();
    let y = ((&x * 2.0).unwrap() + 1.0).unwrap();
    assert!(y.is_recipe());
    assert_eq!(in_use(), before);
    let part = y.slice(&[(0..1).into(), (0..1).into()]).unwrap();
    assert_eq!(part.sum_all().unwrap().scalar::<f32>().unwrap(), 3000.0);
    assert_eq!(in_use(), before);
}

#[test]
fn a_tape_gives_the_gradient_that_mathematics_gives() {
    let _context = own_context();
    let x = tensor([[0.5f64, -1.0], [2.0, 0.25]]).unwrap();
    let w = tensor([[1.0f64, 2.0], [-1.0, 0.5]]).unwrap();
    let loss = |x: &Tensor, w: &Tensor| -> Result<Tensor> {
        x.matmul(w)?.tanh()?.relu()?.softmax(-1)?.square()?.sum_all()
    };
    let mut tape = GradientTape::new();
    tape.watch(&w);
    let y = loss(&x, &w).unwrap();
    let grads = tape.gradient(&y, &[&w]).unwrap();
    let analytic = grads[0].tensor().unwrap().to_vec::<f64>().unwrap();
    let at = w.to_vec::<f64>().unwrap();
    for i in 0..4 {
        let shifted = |by: f64| {
            let mut v = at.clone();
            v[i] += by;
            let w = tensor(v).unwrap().reshape([2, 2]).unwrap();
            loss(&x, &w).unwrap().scalar::<f64>().unwrap()
        };
        let numeric = (shifted(1e-6) - shifted(-1e-6)) / 2e-6;
        assert!((analytic[i] - numeric).abs() < 1e-8, "{i}: {} {numeric}", analytic[i]);
    }
}

#[test]
fn forward_backward_and_update_are_one_plan() {
    let _context = own_context();
    let before = in_use();
    {
        let w = Variable::new("w", random_normal([16, 4], DType::F32).unwrap()).unwrap();
        let v = w.clone();
        let step = function(move |x: Tensor| {
            let mut tape = GradientTape::new();
            let y = x.matmul(&v.read()?)?.relu()?;
            let loss = y.square()?.sum_all()?;
            let grads = tape.gradient(&loss, &[&v])?;
            v.assign_sub(&(grads[0].tensor()? * 0.001)?)?;
            Ok(loss)
        });
        let x = random_normal([8, 16], DType::F32).unwrap();
        let x = tensor(x.to_vec::<f32>().unwrap()).unwrap().reshape([8, 16]).unwrap();
        step.call(x.clone()).unwrap(); // the variable's recipe is written out
        let first = call_checked(&step, &x).scalar::<f32>().unwrap();
        let mut last = first;
        for _ in 0..20 {
            last = step.call(x.clone()).unwrap().scalar::<f32>().unwrap();
        }
        assert!(last < first, "{last} {first}");
    }
    assert_eq!(in_use(), before);
}

#[test]
fn a_traced_gradient_equals_the_eager_one() {
    let _context = own_context();
    let x = tensor([[0.5f64, -1.0, 0.1], [2.0, 0.25, -0.7]]).unwrap();
    let w = tensor([[1.0f64, 2.0], [-1.0, 0.5], [0.3, -0.2]]).unwrap();
    let grad = |x: &Tensor, w: &Tensor| -> Result<Tensor> {
        let mut tape = GradientTape::new();
        tape.watch(w);
        let y = x.matmul(w)?.relu()?.exp()?.sum([1])?;
        let loss = (y.max(0)? * y.sum_all()?)?;
        tape.gradient(&loss, &[w])?[0].tensor()
    };
    let eager = grad(&x, &w).unwrap().to_vec::<f64>().unwrap();
    let f = function(|(x, w): (Tensor, Tensor)| {
        let mut tape = GradientTape::new();
        tape.watch(&w);
        let y = x.matmul(&w)?.relu()?.exp()?.sum([1])?;
        let loss = (y.max(0)? * y.sum_all()?)?;
        tape.gradient(&loss, &[&w])?[0].tensor()
    });
    let traced = call_checked(&f, &(x, w));
    close(&traced, &eager, 1e-12);
}

#[test]
fn a_loop_runs_in_the_memory_of_one_iteration() {
    let _context = own_context();
    let w = tensor(vec![vec![0.1f32; 64]; 64]).unwrap();
    let run = |iterations: i32| {
        function(move |(h, w): (Tensor, Tensor)| {
            let (_, h) = while_loop(
                (constant(0i32, ())?, h),
                |(i, _)| i.less(iterations),
                |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, h.matmul(&w)?.tanh()?)),
            )?;
            Ok(h)
        })
    };
    let h = tensor(vec![vec![0.5f32; 64]; 64]).unwrap();
    let (short, long) = (run(2), run(50));
    let args = (h.clone(), w.clone());
    assert_eq!(short.plan(&args).unwrap().peak(), long.plan(&args).unwrap().peak());
    let got = call_checked(&long, &args);
    let mut expected = h;
    for _ in 0..50 {
        expected = expected.matmul(&w).unwrap().tanh().unwrap();
    }
    assert_eq!(got.to_vec::<f32>().unwrap(), expected.to_vec::<f32>().unwrap());
}

#[test]
fn the_gradient_of_a_loop_is_that_of_its_iterations() {
    let _context = own_context();
    let w = tensor([[0.3f64, -0.2], [0.5, 0.1]]).unwrap();
    let h = tensor([[1.0f64, 0.5]]).unwrap();
    for iterations in [0i32, 1, 2, 5, 30, 100] {
        let f = function(move |(h, w): (Tensor, Tensor)| {
            let mut tape = GradientTape::new();
            tape.watch(&w);
            tape.watch(&h);
            let (_, last) = while_loop(
                (constant(0i32, ())?, h.clone()),
                |(i, _)| i.less(iterations),
                |(i, h): (Tensor, Tensor)| Ok(((i + 1)?, (h.matmul(&w)?.tanh()? + &h)?)),
            )?;
            let grads = tape.gradient(&last.square()?.sum_all()?, &[&w, &h])?;
            Ok((grads[0].or_zeros(&w)?, grads[1].tensor()?))
        });
        let (dw, dh) = call_checked(&f, &(h.clone(), w.clone()));
        let mut tape = GradientTape::new();
        tape.watch(&w);
        tape.watch(&h);
        let mut last = h.identity().unwrap();
        for _ in 0..iterations {
            last = (last.matmul(&w).unwrap().tanh().unwrap() + &last).unwrap();
        }
        let loss = last.square().unwrap().sum_all().unwrap();
        let grads = tape.gradient(&loss, &[&w, &h]).unwrap();
        close(&dw, &grads[0].or_zeros(&w).unwrap().to_vec::<f64>().unwrap(), 1e-9);
        close(&dh, &grads[1].tensor().unwrap().to_vec::<f64>().unwrap(), 1e-9);
    }
}

#[test]
fn only_the_taken_branch_runs_and_its_gradient_is_right() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let mut tape = GradientTape::new();
        tape.watch(&x);
        let big = constant(1.0f64, ())?.less(&x.sum_all()?)?;
        let y = cond(&big, || (&x).square(), || (&x).exp())?;
        let loss = y.sum_all()?;
        let grads = tape.gradient(&loss, &[&x])?;
        Ok((loss, grads[0].tensor()?))
    });
    let (y, g) = call_checked(&f, &tensor([1.0f64, 2.0]).unwrap());
    close(&y, &[5.0], 1e-12);
    close(&g, &[2.0, 4.0], 1e-12);
    let (_, g) = call_checked(&f, &tensor([-1.0f64, 0.0]).unwrap());
    close(&g, &[(-1.0f64).exp(), 1.0], 1e-12);
}

#[test]
fn views_share_bytes_and_sizes_that_the_data_decide_are_planned_at_their_bound() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let picked = x.boolean_mask(&constant(0.0f32, ())?.less(&x)?)?;
        ((picked * 2.0)? + 1.0)?.sum_all()
    });
    let x = tensor([1.0f32, -2.0, 3.0, -4.0]).unwrap();
    assert_eq!(call_checked(&f, &x).scalar::<f32>().unwrap(), 10.0);
    assert!(f.plan(&x).unwrap().is_bound);
    let g = function(|x: Tensor| x.t()?.slice(&[Part::ALL.by(-1)])?.matmul(&x));
    let x = tensor([[1.0f32, 2.0], [3.0, 4.0]]).unwrap();
    assert_eq!(call_checked(&g, &x).to_vec::<f32>().unwrap(), [14.0, 20.0, 10.0, 14.0]);
}

#[test]
fn a_gather_keeps_its_gradient_as_rows() {
    let _context = own_context();
    let table = Variable::new("table", zeros([1000, 4]).unwrap()).unwrap();
    let mut tape = GradientTape::new();
    let rows = table.read().unwrap().gather(&tensor([3i64, 5, 3]).unwrap(), 0).unwrap();
    let loss = (rows * 2.0).unwrap().sum_all().unwrap();
    let before = in_use();
    let grads = tape.gradient(&loss, &[&table]).unwrap();
    assert!(matches!(grads[0], tonnage::Gradient::Rows(_)));
    assert!(in_use() <= before + Bytes::new(64 * 8), "follows the batch, not the table");
    let dense = grads[0].tensor().unwrap();
    assert_eq!(dense.sum([1]).unwrap().to_vec::<f32>().unwrap()[3], 16.0);
}

#[test]
fn second_derivatives_come_from_nested_tapes() {
    let _context = own_context();
    let x = tensor([1.0f64, 2.0]).unwrap();
    let mut outer = GradientTape::new();
    outer.watch(&x);
    let mut inner = GradientTape::new();
    inner.watch(&x);
    let y = ((&x).square().unwrap() * &x).unwrap().sum_all().unwrap();
    let first = inner.gradient(&y, &[&x]).unwrap()[0].tensor().unwrap();
    close(&first, &[3.0, 12.0], 1e-12);
    let second = outer.gradient(&first.sum_all().unwrap(), &[&x]).unwrap();
    close(&second[0].tensor().unwrap(), &[6.0, 12.0], 1e-12);
}

#[test]
fn variables_change_in_branches_and_loops() {
    let _context = own_context();
    let v = Variable::new("v", tensor(1.0f32).unwrap()).unwrap();
    let w = v.clone();
    let f = function(move |x: Tensor| {
        cond(&constant(0.0f32, ())?.less(&x)?, || w.assign_add(&x), || Ok(()))?;
        while_loop(
            constant(0i32, ())?,
            |i| i.less(3),
            |i: Tensor| {
                w.assign(&(w.read()? * 2.0)?)?;
                i + 1
            },
        )?;
        Ok(())
    });
    f.call(tensor(4.0f32).unwrap()).unwrap();
    assert_eq!(v.read().unwrap().scalar::<f32>().unwrap(), 40.0);
    f.call(tensor(-4.0f32).unwrap()).unwrap();
    assert_eq!(v.read().unwrap().scalar::<f32>().unwrap(), 320.0);
}

#[test]
fn a_result_whose_size_the_data_decide_is_as_large_as_they_say() {
    let _context = own_context();
    let f = function(|x: Tensor| {
        let picked = x.boolean_mask(&constant(0.0f32, ())?.less(&x)?)?;
        Ok(((&picked).square()?, picked))
    });
    for len in [4usize, 40_000] {
        let x: Vec<f32> = (0..len).map(|i| if i % 4 == 1 { i as f32 } else { -1.0 }).collect();
        let expected: Vec<f32> = x.iter().copied().filter(|x| *x > 0.0).collect();
        let (squares, picked) = call_checked(&f, &tensor(x).unwrap());
        assert_eq!(picked.to_vec::<f32>().unwrap(), expected);
        assert_eq!(squares.shape(), picked.shape());
        // Moved into an op it gives its bytes up, which are more than its elements.
        let doubled = (picked * 2.0).unwrap().to_vec::<f32>().unwrap();
        assert_eq!(doubled, expected.iter().map(|x| 2.0 * x).collect::<Vec<_>>());
        let sum = squares.sum_all().unwrap().cast(DType::F64).unwrap();
        close(&sum, &[expected.iter().map(|x| f64::from(*x) * f64::from(*x)).sum()], 1e-6);
    }
}

#[test]
fn random_numbers_are_fresh_in_every_iteration_and_every_call() {
    let _context = own_context();
    let draw = || -> Result<Tensor> {
        let start = (constant(0i32, ())?, zeros([3])?);
        let (_, x) = while_loop(
            start,
            |(i, _)| i.less(2),
            |(i, x): (Tensor, Tensor)| {
                Ok(((i + 1)?, ((x * 10.0)? + random_normal([3], DType::F32)?)?))
            },
        )?;
        Ok(x)
    };
    let values = |t: Tensor| t.to_vec::<f32>().unwrap();
    let (a, b) = (values(draw().unwrap()), values(draw().unwrap()));
    assert_ne!(a, b, "eager loops draw fresh numbers");
    let f = function(move |(): ()| draw());
    let (a, b) = (values(f.call(()).unwrap()), values(f.call(()).unwrap()));
    assert_ne!(a, b, "calls draw fresh numbers");
    tonnage::set_seed(3);
    let a = values(f.call(()).unwrap());
    tonnage::set_seed(3);
    assert_eq!(a, values(f.call(()).unwrap()), "a seed repeats them");
}

#[test]
fn planning_obtains_nothing_and_foresees_what_a_call_will() {
    let _context = own_context();
    let v = Variable::new("v", zeros([100, 100]).unwrap()).unwrap();
    let w = v.clone();
    let f = function(move |x: Tensor| {
        w.assign_add(&x)?;
        w.read()?.sum_all()
    });
    let x = tensor(vec![vec![1.0f32; 100]; 100]).unwrap();
    let before = in_use();
    let plan = f.plan(&x).unwrap();
    assert_eq!(in_use(), before, "the variable is a recipe still");
    assert_eq!(v.bytes(), Bytes::ZERO);
    memory::reset_peak("cpu:0").unwrap();
    f.call(x.clone()).unwrap();
    let peak = memory::info("cpu:0").unwrap().peak;
    assert_eq!(peak, before + v.bytes() + plan.obtains());
    assert_eq!(f.plan(&x).unwrap().peak(), plan.peak());
    call_checked(&f, &x);
}

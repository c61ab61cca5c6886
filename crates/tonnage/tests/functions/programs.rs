//! Small programs of the kinds that people write around functions: nested data, calls in calls, loops and branches with
//! variables, and what their mistakes say.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

use std::collections::{BTreeMap, HashMap};

use tonnage::{
    DType, Dim, Elementwise, Result, Tensor, Variable, cond, function, ones, random_normal, scan,
    tensor, tree, zeros,
};

use crate::common::{call_checked, own_context};

fn floats<const N: usize>(values: [f32; N]) -> Tensor {
    tensor(values).unwrap()
}

fn list(x: &Tensor) -> Vec<f32> {
    x.to_vec().unwrap()
}

struct Batch {
    features: BTreeMap<String, Tensor>,
    labels: Vec<(Tensor, Option<Tensor>)>,
}
tree!(Batch { features, labels });

#[test]
fn structs_of_maps_of_vectors_of_tuples_go_in_and_out() {
    let _context = own_context();
    let batch = |n: usize| Batch {
        features: [("a".to_string(), ones([n]).unwrap()), ("b".to_string(), floats([1.0, 2.0]))]
            .into(),
        labels: vec![(floats([3.0]), None), (floats([4.0]), Some(floats([5.0])))],
    };
    let f = function(|b: Batch| {
        let mut sums = HashMap::new();
        for (name, x) in &b.features {
            sums.insert(format!("sum of {name}"), x.sum_all()?);
        }
        let labels: Vec<Tensor> = b
            .labels
            .iter()
            .map(|(x, y)| match y {
                Some(y) => x + y,
                None => Ok(x.clone()),
            })
            .collect::<Result<_>>()?;
        Ok((sums, [labels[0].clone(), labels[1].clone()], ()))
    });
    let (sums, labels, ()) = call_checked(&f, &batch(3));
    assert_eq!(list(&sums["sum of a"]), [3.0]);
    assert_eq!(list(&sums["sum of b"]), [3.0]);
    assert_eq!((list(&labels[0]), list(&labels[1])), (vec![3.0], vec![9.0]));
    f.call(batch(3)).unwrap();
    assert_eq!(f.traces(), 1);
    f.call(batch(4)).unwrap();
    assert_eq!(f.traces(), 2);
}

#[test]
fn mistakes_of_an_input_signature_and_of_a_concrete_function_name_the_path() {
    let _context = own_context();
    let spec = |dims: [Dim; 2]| Tensor::spec(DType::F32, dims);
    let f = function(|(x, ys): (Tensor, Vec<Tensor>)| x.matmul(&ys[0]))
        .signature((spec([Dim::open("n"), 3.into()]), vec![spec([3.into(), 2.into()])]));
    f.call((ones([5, 3]).unwrap(), vec![ones([3, 2]).unwrap()])).unwrap();
    for (x, y, says) in [([5, 4], [3, 2], "`.0`"), ([5, 3], [2, 2], "`.1[0]`")] {
        let error = f.call((ones(x).unwrap(), vec![ones(y).unwrap()])).unwrap_err().to_string();
        assert!(error.contains("programs.rs:") && error.contains(says), "{error}");
    }
    let error = f.call((ones([5, 3]).unwrap(), vec![])).unwrap_err().to_string();
    assert!(error.contains("programs.rs:"), "{error}");
    let g = function(|x: Tensor| x + 1.0);
    let concrete = g.concrete(&Tensor::spec(DType::F32, [2, 2])).unwrap();
    let error = concrete.call(ones([2, 3]).unwrap()).unwrap_err().to_string();
    assert!(error.contains("[2, 2]") && error.contains("[2, 3]"), "{error}");
    let whole = zeros([2, 2]).unwrap().cast(DType::I32).unwrap();
    let error = concrete.call(whole).unwrap_err().to_string();
    assert!(error.contains("i32[2, 2]") && error.contains("f32[2, 2]"), "{error}");
}

#[test]
fn functions_call_functions_that_own_variables() {
    let _context = own_context();
    let inner = std::sync::Arc::new(function(|x: Tensor| {
        let v = Variable::new("count", zeros(())?)?;
        v.assign_add(&ones(())?)?;
        x * v.read()?
    }));
    let inside = inner.clone();
    let outer = function(move |x: Tensor| inside.call(x.clone())? + inside.call(x)?);
    let x = floats([1.0, 10.0]);
    assert_eq!(list(&outer.call(x.clone()).unwrap()), [3.0, 30.0]);
    assert_eq!(list(&outer.call(x.clone()).unwrap()), [7.0, 70.0]);
    assert_eq!((outer.variables().len(), inner.variables().len()), (0, 1));
    assert_eq!(list(&inner.call(x).unwrap()), [5.0, 50.0]);
}

#[test]
fn variables_in_bodies_and_branches_follow_the_program() {
    let _context = own_context();
    let total = Variable::new("total", zeros(()).unwrap()).unwrap();
    let best = Variable::new("best", zeros(()).unwrap()).unwrap();
    let (t, b) = (total.clone(), best.clone());
    let f = function(move |xs: Tensor| {
        scan((), xs, |(), x: Tensor| {
            t.assign_add(&x)?;
            let better = x.greater(&b.read()?)?;
            cond(&better, || b.assign(&x), || Ok(()))?;
            Ok(((), (t.read()?, b.read()?)))
        })
    });
    let ((), (sums, bests)) = f.call(floats([1.0, 5.0, 2.0, 7.0])).unwrap();
    assert_eq!((list(&sums), list(&bests)), (vec![1.0, 6.0, 8.0, 15.0], vec![1.0, 5.0, 5.0, 7.0]));
    assert_eq!(
        (list(&total.read().unwrap()), list(&best.read().unwrap())),
        (vec![15.0], vec![7.0])
    );
}

#[test]
fn a_plan_fits_a_terminal_whatever_its_names() {
    let _context = own_context();
    let long = "encoder/layer_11/attention/self/query/kernel_of_the_second_expert_of_the_mixture";
    let v = Variable::new(
        long,
        (random_normal([64, 64], DType::F32).unwrap() + floats([0.0])).unwrap(),
    )
    .unwrap();
    let f = function(move |x: Tensor| {
        let mut h = x;
        for _ in 0..8 {
            h = h.matmul(&v.read()?)?.softmax(-1)?;
        }
        scan(h, ones([3])?, |h: Tensor, y: Tensor| Ok(((h * y)?.tanh()?, ())))
    });
    let plan = f.plan(&Tensor::spec(DType::F32, [64, 64])).unwrap();
    for line in format!("{plan:#}").lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
}

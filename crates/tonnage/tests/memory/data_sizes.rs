//! Sizes that the data decide, under every budget: the same numbers, or a refusal.

use tonnage::{Bytes, Elementwise, ErrorKind, Result, Tensor, concat, function, tensor};

use crate::common::own_context;

type Case = (&'static str, fn((Tensor, Tensor)) -> Result<Tensor>);

fn masked(x: &Tensor) -> Result<Tensor> {
    x.boolean_mask(&tensor(0.0f64)?.less(&x.sum(1)?)?)
}

/// What becomes of the rows that are picked, beside a matrix of 4 rows that pieces could be cut of.
const CASES: [Case; 6] = [
    ("a product with a transpose", |(x, w)| masked(&x)?.matmul(&w.t()?)),
    ("a product of which rows are summed", |(x, w)| masked(&x)?.matmul(&w.t()?)?.sin()?.sum(0)),
    ("a product of which columns are summed", |(x, w)| masked(&x)?.matmul(&w.t()?)?.sin()?.sum(1)),
    ("all pairs", |(x, w)| {
        let (rows, others) = (masked(&x)?.expand_dims(0)?, w.expand_dims(1)?);
        ((rows - others)?.square()?).sum(2)
    }),
    ("a mean beside the whole", |(x, w)| {
        let product = masked(&x)?.matmul(&w.t()?)?;
        product.tanh()? + w.sum(1)?
    }),
    ("joined with what is known", |(x, w)| concat(&[&masked(&x)?, &w], 0)?.sin()?.matmul(&w.t()?)),
];

#[test]
fn every_budget_gives_the_same_numbers_or_is_refused() {
    let _context = own_context();
    let numbers = |n: usize| (0..n).map(|i| ((i * 37 + 11) % 23) as f64 / 7.0 - 1.4);
    let x = tensor(numbers(40).collect::<Vec<_>>()).unwrap().reshape([8, 5]).unwrap();
    let w = tensor(numbers(20).collect::<Vec<_>>()).unwrap().reshape([4, 5]).unwrap();
    for (name, body) in CASES {
        let free = function(body);
        let wanted = free.call((x.clone(), w.clone())).unwrap().to_vec::<f64>().unwrap();
        let peak = free.plan(&(x.clone(), w.clone())).unwrap().peak().get();
        let mut ran = 0;
        for budget in (peak / 2..peak).step_by(64).chain([peak]) {
            let step = function(body).budget(Bytes::new(budget)).unwrap();
            match step.call((x.clone(), w.clone())) {
                Ok(made) => {
                    let made = made.to_vec::<f64>().unwrap();
                    let near = |(a, b): (&f64, &f64)| (a - b).abs() <= 1e-12 * b.abs().max(1.0);
                    assert!(made.len() == wanted.len() && made.iter().zip(&wanted).all(near));
                    ran += 1;
                }
                Err(error) => {
                    let refused = matches!(error.kind(), ErrorKind::OverBudget { .. });
                    assert!(refused, "{name} within {budget} of {peak}: {error}");
                }
            }
        }
        assert!(ran > 0, "{name}");
    }
}

//! Steps of so many rows that they are taken in pieces.

use tonnage::optim::{Adagrad, Optimizer, Sgd};
use tonnage::{
    Bytes, DType, Elementwise, Gradient, GradientTape, Result, Tensor, Variable, function,
    random_normal, range, set_seed, tensor, zeros,
};

use crate::common::{call_checked, close, own_context};

/// Rows of the table that are looked up, and how often one is in all.
const USED: i64 = 500;
const LOOKUPS: i64 = 30_000;
const WIDTH: i64 = 64;

/// So many indices below a bound, in no order.
fn spread(count: i64, below: i64) -> Tensor {
    let indices: Vec<i64> = (0..count).map(|i| i * 7919 % below).collect();
    tensor(indices).unwrap()
}

/// The gradient of the rows that are looked up, each times its weights.
fn weighted(table: &Variable, indices: &Tensor, weights: &Tensor) -> Result<Gradient> {
    let mut tape = GradientTape::new();
    let sum = (table.read()?.gather(indices, 0)? * weights)?.sum_all()?;
    tape.gradient(&sum, table)
}

/// Every row occurs in every piece, and is stepped once, by the sum of all.
#[test]
fn rows_of_a_large_step_go_in_pieces_and_are_stepped_once() {
    let _context = own_context();
    set_seed(5);
    let rules: [fn() -> Optimizer; 3] = [
        || Optimizer::new(Sgd { momentum: 0.9, nesterov: false }, 0.1),
        || Optimizer::new(Adagrad::default(), 0.1),
        || Optimizer::adam(0.05),
    ];
    let indices = spread(LOOKUPS, USED);
    let start = random_normal([USED as usize + 100, WIDTH as usize], DType::F32).unwrap();
    for make in rules {
        let [pieces, planned, whole] =
            ["pieces", "planned", "whole"].map(|name| Variable::new(name, start.clone()).unwrap());
        let [one, two, three] = [make(), make(), make()];
        let step = function(|(indices, weights): (Tensor, Tensor)| {
            two.apply([&planned], &[weighted(&planned, &indices, &weights)?])
        });
        for _ in 0..3 {
            let weights = random_normal([LOOKUPS as usize, WIDTH as usize], DType::F32).unwrap();
            let weights = (weights + 0.0).unwrap();
            one.apply([&pieces], &[weighted(&pieces, &indices, &weights).unwrap()]).unwrap();
            step.call((indices.clone(), weights.clone())).unwrap();
            // The same with each row once, by what its weights add up to.
            let sums = zeros([USED as usize, WIDTH as usize]).unwrap();
            let sums = sums.scatter_add(&indices, &weights).unwrap();
            let once = range(0i64, USED, 1).unwrap();
            three.apply([&whole], &[weighted(&whole, &once, &sums).unwrap()]).unwrap();
        }
        let expected = whole.read().unwrap().to_vec::<f32>().unwrap();
        let expected: Vec<f64> = expected.into_iter().map(f64::from).collect();
        for table in [&pieces, &planned] {
            let got = table.read().unwrap().cast(DType::F64).unwrap();
            close(&got.reshape([-1]).unwrap(), &expected, 1e-5);
        }
    }
}

/// Besides the sums of the gradient a step holds pieces.
#[test]
fn a_large_step_holds_the_sums_and_pieces_of_what_it_changes() {
    let _context = own_context();
    let table = Variable::new("table", zeros([60_000, 64]).unwrap()).unwrap();
    let adagrad = Optimizer::new(Adagrad::default(), 0.1);
    let step = function(|indices: Tensor| {
        let mut tape = GradientTape::new();
        let loss = table.read()?.gather(&indices, 0)?.mean([1])?.square()?.sum_all()?;
        adagrad.apply([&table], &[tape.gradient(&loss, &table)?])
    });
    let indices = spread(81_920, 60_000).reshape([4096, 20]).unwrap();
    step.call(indices.clone()).unwrap(); // makes the state
    call_checked(&step, &indices);
    let plan = step.plan(&indices).unwrap();
    let rows = Bytes::new(81_920 * 64 * 4);
    let (table, least) = (Bytes::new(60_000 * 64 * 4), rows + Bytes::mib(15));
    assert!(plan.peak() > (table + table) + rows, "{plan}");
    assert!(plan.peak() < (table + table) + least + Bytes::mib(2), "{plan}");
}

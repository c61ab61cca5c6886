//! Programs that nobody wrote: random ops on random tensors, as a function and eagerly. The bits are the same,
//! and the memory is what was predicted.
//!
//! With `TONNAGE_SOAK` set there are many more of them.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use common::{alone, call_checked};
use tonnage::{DType, Elementwise, Part, Result, Tensor, full, function, tensor};

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n as u64) as usize
    }

    fn pick<'a, T>(&mut self, of: &'a [T]) -> &'a T {
        &of[self.below(of.len())]
    }
}

fn sizes(t: &Tensor) -> Vec<usize> {
    t.shape().sizes().unwrap().to_vec()
}

/// One op on tensors that there are; `None` where the dice ask for one that does not fit.
fn op(dice: &mut Dice, all: &[Tensor]) -> Result<Option<Tensor>> {
    let a = dice.pick(all).clone();
    let b = dice.pick(all).clone();
    let (shape, rank) = (sizes(&a), a.rank());
    let joins = a.shape().broadcast(&b.shape(), "test").is_ok() && a.dtype() == b.dtype();
    let numbers = [0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 3.0, 4.0];
    let number = *dice.pick(&numbers);
    let is_float = a.dtype().is_float();
    Ok(Some(match dice.below(24) {
        0 if joins => (&a + &b)?,
        1 if joins => (&a - &b)?,
        2 if joins => (&a * &b)?,
        3 if joins => a.maximum(&b)?,
        4 if joins => a.less(&b)?.where_(&a, &b)?,
        5 if is_float => (&a + number)?,
        6 if is_float => (number * &a)?,
        7 if is_float && number != 0.0 => (&a / number)?,
        8 => (-&a)?,
        9 if is_float => (&a).tanh()?,
        10 if is_float => ((&a).tanh()? * 0.5)?.exp()?,
        11 => (&a).square()?,
        12 => (&a).relu()?,
        13 if rank == 2 => a.t()?,
        14 if rank > 0 => {
            let axis = dice.below(rank);
            let some = Part::from(shape[axis] as i64 / 3..);
            let part = *dice.pick(&[some, some.by(2), Part::ALL.by(-1), Part::ALL.by(3)]);
            let parts: Vec<Part> =
                (0..rank).map(|i| if i == axis { part } else { Part::ALL }).collect();
            a.slice(&parts)?
        }
        15 => a.reshape([-1])?,
        16 if rank == 2 => a.reshape([shape[1] as i64, shape[0] as i64])?,
        17 if rank > 0 => a.sum_keep([dice.below(rank) as i64])?,
        18 if rank > 0 => a.max([dice.below(rank) as i64])?,
        19 if is_float && rank > 0 => a.softmax(-1)?,
        20 if rank < 3 => {
            let wide: Vec<usize> = [2].into_iter().chain(shape).collect();
            a.broadcast_to(wide)?
        }
        21 if rank == 2 && b.rank() == 2 && a.dtype() == b.dtype() && is_float => {
            let (m, n) = (shape, sizes(&b));
            let product = match (m[1] == n[0], m[1] == n[1]) {
                (true, _) => a.matmul(&b)?,
                (_, true) => a.matmul(&b.t()?)?,
                _ => return Ok(None),
            };
            product.tanh()?
        }
        22 => (&a * &full(2, a.dtype(), a.shape().clone())?)?,
        23 if is_float => (&a).cast(DType::F64)?.cast(a.dtype())?,
        _ => return Ok(None),
    }))
}

/// The program of a seed: the tensors that nobody used, and the last one.
fn program(seed: u64, arguments: Vec<Tensor>) -> Result<Vec<Tensor>> {
    let mut dice = Dice(seed);
    let mut all = arguments;
    let steps = 4 + dice.below(24);
    for _ in 0..steps {
        // Nothing grows without end.
        if let Some(made) = op(&mut dice, &all)?
            && made.shape().count().is_some_and(|n| n <= 4096)
        {
            all.push(made);
        }
    }
    let last = all.len();
    let keep = 1 + dice.below(3);
    Ok(all.split_off(last.saturating_sub(keep)))
}

fn arguments(seed: u64) -> Vec<Tensor> {
    let mut dice = Dice(!seed);
    let dtype =
        *dice.pick(&[DType::F32, DType::F32, DType::F32, DType::F64, DType::F16, DType::I32]);
    let (n, m) = (1 + dice.below(12), 1 + dice.below(12));
    let shapes = [vec![n, m], vec![m], vec![n, 1], vec![m, n], vec![]];
    (0..2 + dice.below(3))
        .map(|_| {
            let shape = dice.pick(&shapes).clone();
            let count: usize = shape.iter().product();
            let values: Vec<f64> =
                (0..count).map(|_| dice.below(2001) as f64 / 200.0 - 5.0).collect();
            let lengths: Vec<i64> = shape.iter().map(|n| *n as i64).collect();
            tensor(values).unwrap().reshape(&lengths).unwrap().cast(dtype).unwrap()
        })
        .collect()
}

/// As bits, with all NaNs one: of two of them either may come out.
fn bits(t: &Tensor) -> Vec<u64> {
    let wide = t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    wide.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

#[test]
fn random_programs_give_the_eager_bits_soak() {
    let _turn = alone();
    let count = if std::env::var_os("TONNAGE_SOAK").is_some() { 20_000 } else { 300 };
    for seed in 0..count {
        let given = arguments(seed);
        let expected = program(seed, given.clone()).unwrap();
        let f = function(move |x: Vec<Tensor>| program(seed, x));
        let got = call_checked(&f, &given);
        assert_eq!(got.len(), expected.len());
        for (i, (x, y)) in got.iter().zip(&expected).enumerate() {
            let graph = f.graph(&given).unwrap();
            assert_eq!(x.ty(), y.ty(), "seed {seed}, result {i}\n{graph}");
            assert_eq!(bits(x), bits(y), "seed {seed}, result {i}\n{graph}");
        }
    }
}

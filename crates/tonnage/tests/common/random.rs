//! Random ops on tensors that there are: what programs that nobody wrote consist of.

use tonnage::{DType, Elementwise, PadMode, Part, Result, Tensor, concat, full, stack, tensor};

use super::dice::Dice;

pub fn sizes(t: &Tensor) -> Vec<usize> {
    t.shape().sizes().unwrap().to_vec()
}

/// One op on tensors that there are; `None` where the dice ask for one that does not fit.
pub fn op(dice: &mut Dice, all: &[Tensor]) -> Result<Option<Tensor>> {
    let a = dice.pick(all).clone();
    let b = dice.pick(all).clone();
    let (shape, rank) = (sizes(&a), a.rank());
    let joins = a.shape().broadcast(&b.shape(), "test").is_ok() && a.dtype() == b.dtype();
    let numbers = [0.0, -0.0, 1.0, 2.0, 0.5, -1.0, 3.0, 4.0];
    let number = *dice.pick(&numbers);
    let is_float = a.dtype().is_float();
    let axis = if rank > 0 { dice.below(rank) as i64 } else { 0 };
    Ok(Some(match dice.below(31) {
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
        24 if rank > 0 => a.cumsum(axis)?,
        25 if rank > 0 => a.sort(axis, dice.below(2) == 0)?,
        26 if rank > 0 => concat(&[&a, &a.reverse([axis])?], axis)?,
        27 => stack(&[&a, &(-&a)?], 0)?,
        28 if rank > 0 => a.roll(1, axis)?,
        29 if rank > 0 && shape[0] > 0 => {
            let last = shape[0] as i64 - 1;
            a.gather(&tensor(vec![last, 0, last])?, 0)?
        }
        30 if !shape.contains(&0) => a.pad(&vec![[1, 0]; rank], PadMode::Symmetric)?,
        _ => return Ok(None),
    }))
}

/// Some tensors of one of these dtypes, whose shapes join now and then.
pub fn arguments(seed: u64, dtypes: &[DType]) -> Vec<Tensor> {
    let mut dice = Dice(!seed);
    let dtype = *dice.pick(dtypes);
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
pub fn bits(t: &Tensor) -> Vec<u64> {
    let wide = t.cast(DType::F64).unwrap().to_vec::<f64>().unwrap();
    wide.iter().map(|x| if x.is_nan() { u64::MAX } else { x.to_bits() }).collect()
}

//! Elementwise ops.

use tonnage_core::{Attrs, DType};

use super::{Asked, common, indices};
use crate::plain::{Answer, held};

/// Every element of all inputs, broadcast to one shape, with a dtype for the result.
pub(super) fn map(asked: &Asked, dtype: DType, f: impl Fn(&[f64]) -> f64) -> Vec<Answer> {
    let sizes = common(asked.inputs.iter().map(|x| &x.sizes));
    let value = |index: &Vec<usize>| {
        let args: Vec<f64> = asked.inputs.iter().map(|x| x.broadcast(index)).collect();
        f(&args)
    };
    let values = indices(&sizes).iter().map(value).collect();
    vec![Answer::new(dtype, sizes, values)]
}

pub(super) fn promoted(asked: &Asked, a: usize, b: usize) -> DType {
    asked.inputs[a].dtype.promote(asked.inputs[b].dtype).expect("dtypes that promote")
}

pub(super) fn one(asked: &Asked, f: impl Fn(f64) -> f64) -> Vec<Answer> {
    map(asked, asked.inputs[0].dtype, |x| f(x[0]))
}

pub(super) fn two(asked: &Asked, f: impl Fn(f64, f64) -> f64) -> Vec<Answer> {
    map(asked, promoted(asked, 0, 1), |x| f(x[0], x[1]))
}

pub fn add(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| a + b)
}

pub fn sub(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| a - b)
}

pub fn mul(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| a * b)
}

pub fn div(asked: &Asked) -> Vec<Answer> {
    let whole = !promoted(asked, 0, 1).is_float();
    two(asked, |a, b| match whole {
        true if b == 0.0 => 0.0,
        true => (a / b).trunc(),
        false => a / b,
    })
}

pub fn maximum(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| if a.is_nan() || a > b { a } else { b })
}

pub fn less(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] < x[1]))
}

pub fn equal(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] == x[1]))
}

pub fn neg(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| -x)
}

pub fn square(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x * x)
}

pub fn exp(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::exp)
}

pub fn log(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::ln)
}

pub fn tanh(asked: &Asked) -> Vec<Answer> {
    one(asked, f64::tanh)
}

pub fn relu(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| if x < 0.0 { 0.0 } else { x })
}

pub fn relu_grad(asked: &Asked) -> Vec<Answer> {
    let (g, bits) = (&asked.inputs[0], &asked.inputs[1]);
    let set = |i: usize| bits.values[i / 8] as u8 & 1 << (i % 8) != 0;
    let values = g.values.iter().enumerate().map(|(i, x)| if set(i) { *x } else { 0.0 }).collect();
    vec![Answer::new(g.dtype, g.sizes.clone(), values)]
}

pub fn cast(asked: &Asked) -> Vec<Answer> {
    let Attrs::DType(to) = asked.attrs else { panic!("no dtype") };
    let from = asked.inputs[0].dtype;
    map(asked, *to, |x| match (from.is_float(), *to) {
        (_, DType::Bool) => f64::from(x[0] != 0.0),
        (_, to) if to.is_float() => held(x[0], to),
        // Kept within the range; NaN becomes 0.
        (true, to) => {
            let bits = 8 * to.size() as i32;
            let (low, high) = match to.class() {
                tonnage_core::Class::Signed => (-2f64.powi(bits - 1), 2f64.powi(bits - 1) - 1.0),
                _ => (0.0, 2f64.powi(bits) - 1.0),
            };
            if x[0].is_nan() { 0.0 } else { x[0].trunc().clamp(low, high) }
        }
        (false, _) => x[0],
    })
}

pub fn choose(asked: &Asked) -> Vec<Answer> {
    map(asked, promoted(asked, 1, 2), |x| if x[0] != 0.0 { x[1] } else { x[2] })
}

pub fn same(asked: &Asked) -> Vec<Answer> {
    one(asked, |x| x)
}

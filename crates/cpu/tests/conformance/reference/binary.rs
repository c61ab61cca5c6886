//! Elementwise functions of two and three numbers.

use tonnage_core::DType;

use super::Asked;
use super::math::{map, promoted, two};
use crate::plain::Answer;

fn whole(asked: &Asked) -> bool {
    !promoted(asked, 0, 1).is_float()
}

pub fn minimum(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| if a.is_nan() || a < b { a } else { b })
}

/// Whole numbers by repeated multiplication, modulo 2^64, which is what wrapping around leaves of them.
pub fn pow(asked: &Asked) -> Vec<Answer> {
    let dtype = promoted(asked, 0, 1);
    if !whole(asked) {
        return two(asked, f64::powf);
    }
    two(asked, |a, b| {
        let mut power = 1u64;
        for _ in 0..b as u64 {
            power = power.wrapping_mul(a as i64 as u64);
        }
        match dtype.class() {
            tonnage_core::Class::Signed => power as i64 as f64,
            _ => power as f64,
        }
    })
}

pub fn floor_div(asked: &Asked) -> Vec<Answer> {
    let whole = whole(asked);
    two(asked, |a, b| if whole && b == 0.0 { 0.0 } else { (a / b).floor() })
}

pub fn modulo(asked: &Asked) -> Vec<Answer> {
    let whole = whole(asked);
    two(asked, |a, b| match whole && b == 0.0 {
        true => 0.0,
        false => {
            let rest = a % b;
            if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
        }
    })
}

pub fn atan2(asked: &Asked) -> Vec<Answer> {
    two(asked, f64::atan2)
}

pub fn hypot(asked: &Asked) -> Vec<Answer> {
    two(asked, f64::hypot)
}

pub fn squared_difference(asked: &Asked) -> Vec<Answer> {
    let whole = whole(asked);
    let mut made = two(asked, |a, b| (a - b) * (a - b));
    if !whole {
        // The difference may be small beside its operands.
        let scale = two(asked, |a, b| (a.abs() + b.abs()).powi(2));
        made[0].scale = scale[0].values.clone();
    }
    made
}

pub fn divide_no_nan(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| if b == 0.0 { 0.0 } else { a / b })
}

pub fn xlogy(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| if a == 0.0 { 0.0 } else { a * b.ln() })
}

pub fn not_equal(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] != x[1]))
}

pub fn less_equal(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] <= x[1]))
}

pub fn greater(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] > x[1]))
}

pub fn greater_equal(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] >= x[1]))
}

pub fn logical_and(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] != 0.0 && x[1] != 0.0))
}

pub fn logical_or(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from(x[0] != 0.0 || x[1] != 0.0))
}

pub fn logical_xor(asked: &Asked) -> Vec<Answer> {
    map(asked, DType::Bool, |x| f64::from((x[0] != 0.0) != (x[1] != 0.0)))
}

pub fn bitwise_and(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| {
        let (a, b) = (a as i128, b as i128);
        (a & b) as f64
    })
}

pub fn bitwise_or(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| {
        let (a, b) = (a as i128, b as i128);
        (a | b) as f64
    })
}

pub fn bitwise_xor(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| {
        let (a, b) = (a as i128, b as i128);
        (a ^ b) as f64
    })
}

/// From the width on nothing is left.
pub fn shift_left(asked: &Asked) -> Vec<Answer> {
    let bits = 8 * promoted(asked, 0, 1).size();
    two(asked, |a, b| if b as usize >= bits { 0.0 } else { a * 2f64.powf(b) })
}

pub fn shift_right(asked: &Asked) -> Vec<Answer> {
    two(asked, |a, b| (a / 2f64.powf(b)).floor())
}

fn of_three(asked: &Asked) -> DType {
    let two = promoted(asked, 0, 1);
    two.promote(asked.inputs[2].dtype).expect("dtypes that promote")
}

pub fn fma(asked: &Asked) -> Vec<Answer> {
    let dtype = of_three(asked);
    let mut made = map(asked, dtype, |x| x[0] * x[1] + x[2]);
    let scale = map(asked, DType::F64, |x| (x[0] * x[1]).abs() + x[2].abs());
    made[0].scale = scale[0].values.clone();
    made
}

pub fn clip(asked: &Asked) -> Vec<Answer> {
    map(asked, of_three(asked), |x| x[0].max(x[1]).min(x[2]))
}

//! The decimal digits of floats: the fewest that give the number back in its own dtype, or a given number of them,
//! rounded from the exact value, halves to even.

use tonnage_core::rounding::{to_bf16, to_f16};
use tonnage_core::{DType, bf16, f16};

/// A finite number without its sign: its first digit stands before the point.
#[derive(Debug, PartialEq)]
pub(super) struct Decimal {
    pub digits: String,
    /// Of ten.
    pub exponent: i32,
}

impl Decimal {
    /// From scientific text, with all its zeros.
    fn read(text: &str) -> Decimal {
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let before = digits.find('.').unwrap_or(digits.len()) as i32;
        let exponent = exponent.parse().unwrap_or(0) + before - 1;
        Decimal { digits: digits.replace('.', ""), exponent }
    }

    /// `x` with `places` digits behind the first.
    pub fn rounded(x: f64, places: usize) -> Decimal {
        Decimal::read(&format!("{:.places$e}", x.abs()))
    }

    /// The same number without the zeros at its end.
    pub fn trimmed(mut self) -> Decimal {
        self.digits.truncate(self.digits.trim_end_matches('0').len().max(1));
        self
    }

    /// What stands before the point and behind it, written without an exponent.
    pub fn positional(&self) -> (String, String) {
        let zeros = (-1 - self.exponent).max(0) as usize;
        let before = (self.exponent + 1).max(0) as usize;
        let (int, frac) = self.digits.split_at(before.min(self.digits.len()));
        match before {
            0 => ("0".to_string(), "0".repeat(zeros) + frac),
            _ => (format!("{int:0<before$}"), frac.to_string()),
        }
    }
}

/// The fewest digits that no other number of that dtype is nearer to.
pub(super) fn shortest(x: f64, dtype: DType) -> Decimal {
    let x = x.abs();
    match dtype {
        DType::F32 => {
            let few = Decimal::read(&format!("{:e}", x as f32));
            to_even(x, few, |text| text.parse() == Ok(x as f32))
        }
        DType::F16 => {
            let bits = to_f16(x).to_bits();
            shortest_of_half(x, bits, |bits| f16::from_bits(bits).into())
        }
        DType::BF16 => {
            let bits = to_bf16(x).to_bits();
            shortest_of_half(x, bits, |bits| bf16::from_bits(bits).into())
        }
        _ => to_even(x, Decimal::read(&format!("{x:e}")), |text| text.parse() == Ok(x)),
    }
}

/// As many digits, but the even one of two that are as near: Rust's own shortest digits take the
/// upper. Next to a power of two the rounded digits may not give the number back.
fn to_even(x: f64, few: Decimal, gives_back: impl Fn(&str) -> bool) -> Decimal {
    let text = format!("{x:.*e}", few.digits.len() - 1);
    if gives_back(&text) { Decimal::read(&text) } else { few }
}

/// Tries more and more digits. A number is given back by what lies between the middles to its
/// neighbours, which `f64` holds exactly, and by the middles themselves where its last bit is 0.
fn shortest_of_half(x: f64, bits: u16, value: impl Fn(u16) -> f64) -> Decimal {
    if x == 0.0 {
        return Decimal::read("0e0");
    }
    let below = value(bits - 1);
    let above = Some(value(bits + 1)).filter(|y| y.is_finite()).unwrap_or(x + (x - below));
    let (low, high) = ((below + x) / 2.0, (x + above) / 2.0);
    let gives_back = |text: &String| {
        text.parse::<f64>().is_ok_and(|y| match bits % 2 {
            0 => low <= y && y <= high,
            _ => low < y && y < high,
        })
    };
    // Five digits tell all numbers of 11 bits apart.
    let enough = (0..5).find_map(|places| {
        let near = format!("{x:.places$e}");
        // Above a power of two the middle is farther off than below it: where the nearest decimal
        // falls short, the next may do.
        let next = next_up(&near);
        [near, next].into_iter().find(gives_back)
    });
    Decimal::read(&enough.unwrap_or_else(|| format!("{x:e}"))).trimmed()
}

/// Scientific text with its last digit raised by one.
fn next_up(text: &str) -> String {
    let Decimal { digits, exponent } = Decimal::read(text);
    let raised = digits.parse::<u32>().unwrap_or(0) + 1;
    format!("{raised}e{}", exponent + 1 - digits.len() as i32)
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering;

    use super::*;

    /// The decimals of `digits` digits on both sides of `x`.
    fn around(x: f64, digits: usize) -> [f64; 2] {
        let near: f64 = format!("{x:.*e}", digits - 1).parse().unwrap();
        let step = 10f64.powi(x.log10().floor() as i32 + 1 - digits as i32);
        [if near <= x { near } else { near - step }, if near <= x { near + step } else { near }]
    }

    fn check_all(dtype: DType, value: impl Fn(u16) -> f64) {
        let mut all: Vec<f64> = (0..0x8000).map(value).take_while(|x| x.is_finite()).collect();
        let finite = all.len();
        // Infinity, as far as rounding goes.
        all.push(2.0 * all[finite - 1] - all[finite - 2]);
        // The nearest of all numbers; of two that are as near, the even one.
        let nearest = |y: f64| {
            let above = all.partition_point(|x| *x < y).clamp(1, all.len() - 1);
            match (y - all[above - 1]).total_cmp(&(all[above] - y)) {
                Ordering::Less => above - 1,
                Ordering::Equal => above - above % 2,
                Ordering::Greater => above,
            }
        };
        for (bits, x) in all.iter().enumerate().take(finite).skip(1) {
            let Decimal { digits, exponent } = shortest(*x, dtype);
            let text = format!("{digits}e{}", exponent + 1 - digits.len() as i32);
            assert_eq!(nearest(text.parse().unwrap()), bits, "{x:e} as {text}");
            if digits.len() > 1 {
                for y in around(*x, digits.len() - 1) {
                    assert_ne!(nearest(y), bits, "{x:e} as {text}, but {y:e} would do");
                }
            }
        }
    }

    #[test]
    fn every_half_float_is_given_back_by_its_digits_and_by_no_fewer() {
        check_all(DType::F16, |bits| f16::from_bits(bits).into());
        check_all(DType::BF16, |bits| bf16::from_bits(bits).into());
    }
}

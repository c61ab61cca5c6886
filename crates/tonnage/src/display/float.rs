//! Floats as words: the shortest digits that give the number back in its own dtype, up to a precision.
//!
//! Numbers that are printed together share one style. It is scientific where the largest has more
//! digits before the point than its dtype holds (and at 1e8), the least (but 0) is below 1e-4, or the
//! largest is over 1000 times the least; the comparisons are made in the dtype. Points line up: positional words are padded with blanks behind the last
//! digit, scientific ones filled up with zeros. Digits beyond the precision are rounded from the exact
//! value, halves to even, not from the shortest digits: that would round twice.

use tonnage_core::{DType, FromScalar, Scalar, bf16, f16};

/// A finite number without its sign: `digits[0].digits[1..] * 10^exponent`.
#[derive(Debug, PartialEq)]
struct Decimal {
    digits: String,
    exponent: i32,
}

/// What stands before and behind the point, and the exponent, in scientific style.
struct Parts {
    int: String,
    frac: String,
    exponent: Option<i32>,
}

/// The words of floats that are printed together.
pub(super) fn words(values: &[f64], dtype: DType, precision: usize) -> Vec<String> {
    let scientific = is_scientific(values, dtype);
    let parts = |x: f64| match scientific {
        true => shortest(x, dtype).scientific(x, precision),
        false => shortest(x, dtype).positional(x, precision),
    };
    let all: Vec<Option<Parts>> = values.iter().map(|x| x.is_finite().then(|| parts(*x))).collect();
    let widest = |len: &dyn Fn(&Parts) -> usize| all.iter().flatten().map(len).max().unwrap_or(0);
    let places = widest(&|p| p.frac.len());
    let exponents = widest(&|p| p.exponent.map_or(0, |e| exponent_digits(e).len()));
    let words: Vec<String> = (values.iter().zip(&all))
        .map(|(x, parts)| match parts {
            None => not_finite(*x).to_string(),
            Some(Parts { int, frac, exponent: None }) => format!("{int}.{frac:<places$}"),
            Some(Parts { int, frac, exponent: Some(e) }) => {
                let sign = if *e < 0 { '-' } else { '+' };
                format!("{int}.{frac:0<places$}e{sign}{:0>exponents$}", exponent_digits(*e))
            }
        })
        .collect();
    let width = words.iter().map(String::len).max().unwrap_or(0);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// The word of a float that is printed alone: scientific from 1e16 on and below 1e-4.
pub(super) fn single(x: f64, dtype: DType) -> String {
    if !x.is_finite() {
        return not_finite(x).to_string();
    }
    let digits = shortest(x, dtype);
    if x == 0.0 || (1e-4..1e16).contains(&x.abs()) {
        let Parts { int, frac, .. } = digits.positional(x, usize::MAX);
        return format!("{int}.{}", if frac.is_empty() { "0" } else { &frac });
    }
    let (sign, e) = (if digits.exponent < 0 { '-' } else { '+' }, exponent_digits(digits.exponent));
    let Parts { int, frac, .. } = digits.scientific(x, usize::MAX);
    let point = if frac.is_empty() { "" } else { "." };
    format!("{int}{point}{frac}e{sign}{e}")
}

fn not_finite(x: f64) -> &'static str {
    match (x.is_nan(), x < 0.0) {
        (true, _) => "nan",
        (false, true) => "-inf",
        (false, false) => "inf",
    }
}

/// At least two digits, as everywhere but in Rust.
fn exponent_digits(exponent: i32) -> String {
    format!("{:02}", exponent.unsigned_abs())
}

fn is_scientific(values: &[f64], dtype: DType) -> bool {
    // Powers of ten by the digits that a dtype's fraction surely holds.
    let most = match dtype {
        DType::BF16 => 1e2,
        DType::F16 => 1e3,
        DType::F32 => 1e6,
        _ => 1e8,
    };
    let sizes = || values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
    let (least, largest) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    largest > 0.0
        && (largest >= most
            || least < round(1e-4, dtype)
            || round(largest / least, dtype) > 1000.0)
}

/// The nearest number of that dtype.
fn round(x: f64, dtype: DType) -> f64 {
    let x = Scalar::Float(x);
    match dtype {
        DType::F32 => f32::from_scalar(x).into(),
        DType::F16 => f16::from_scalar(x).into(),
        DType::BF16 => bf16::from_scalar(x).into(),
        _ => x.to_f64(),
    }
}

/// The fewest digits that no other number of that dtype is nearer to.
fn shortest(x: f64, dtype: DType) -> Decimal {
    let x = x.abs();
    match dtype {
        DType::F32 => Decimal::parse(&format!("{:e}", x as f32)),
        DType::F16 => {
            let bits = f16::from_f64(x).to_bits();
            shortest_of_half(x, bits, |bits| f16::from_bits(bits).into())
        }
        DType::BF16 => {
            let bits = bf16::from_f64(x).to_bits();
            shortest_of_half(x, bits, |bits| bf16::from_bits(bits).into())
        }
        _ => Decimal::parse(&format!("{x:e}")),
    }
}

/// Tries more and more digits. A number is given back by what lies between the middles to its
/// neighbours, which `f64` holds exactly, and by the middles themselves where its last bit is 0.
fn shortest_of_half(x: f64, bits: u16, value: impl Fn(u16) -> f64) -> Decimal {
    if x == 0.0 {
        return Decimal::parse("0e0");
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
    Decimal::parse(&enough.unwrap_or_else(|| format!("{x:e}")))
}

/// Scientific text with its last digit raised by one.
fn next_up(text: &str) -> String {
    let Decimal { digits, exponent } = Decimal::read(text);
    let raised = digits.parse::<u32>().unwrap_or(0) + 1;
    format!("{raised}e{}", exponent + 1 - digits.len() as i32)
}

impl Decimal {
    /// From scientific text, with all its zeros.
    fn read(text: &str) -> Decimal {
        let (digits, exponent) = text.split_once('e').unwrap_or((text, "0"));
        let before = digits.find('.').unwrap_or(digits.len()) as i32;
        let exponent = exponent.parse().unwrap_or(0) + before - 1;
        Decimal { digits: digits.replace('.', ""), exponent }
    }

    /// From scientific text, without the zeros at its end.
    fn parse(text: &str) -> Decimal {
        let mut decimal = Decimal::read(text);
        decimal.digits.truncate(decimal.digits.trim_end_matches('0').len().max(1));
        decimal
    }

    /// These digits of `x`, or fewer where there are more than `precision` behind the point.
    fn positional(&self, x: f64, precision: usize) -> Parts {
        let before = (self.exponent + 1).max(0) as usize;
        let zeros = (-1 - self.exponent).max(0) as usize;
        let (int, frac) = self.digits.split_at(before.min(self.digits.len()));
        let (int, frac) = if zeros + frac.len() > precision {
            let text = format!("{:.precision$}", x.abs());
            let (int, frac) = text.split_once('.').unwrap_or((&text, ""));
            (int.to_string(), frac.trim_end_matches('0').to_string())
        } else if before == 0 {
            ("0".to_string(), "0".repeat(zeros) + frac)
        } else {
            (format!("{int:0<before$}"), frac.to_string())
        };
        Parts { int: signed(x, &int), frac, exponent: None }
    }

    /// These digits of `x`, or fewer where there are more than `precision` behind the point.
    fn scientific(self, x: f64, precision: usize) -> Parts {
        let fit = match self.digits.len() - 1 > precision {
            true => Decimal::parse(&format!("{:.precision$e}", x.abs())),
            false => self,
        };
        let (int, frac) = fit.digits.split_at(1);
        Parts { int: signed(x, int), frac: frac.to_string(), exponent: Some(fit.exponent) }
    }
}

fn signed(x: f64, digits: &str) -> String {
    let sign = if x.is_sign_negative() { "-" } else { "" };
    format!("{sign}{digits}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The decimals of so many digits on both sides of `x`.
    fn around(x: f64, digits: usize) -> [f64; 2] {
        let near: f64 = format!("{x:.*e}", digits - 1).parse().unwrap();
        let step = 10f64.powi(x.log10().floor() as i32 + 1 - digits as i32);
        [if near <= x { near } else { near - step }, if near <= x { near + step } else { near }]
    }

    fn check_all(dtype: DType, value: impl Fn(u16) -> f64, parse: impl Fn(f64) -> u16) {
        let finite = (1..0x8000).filter(|bits| value(*bits).is_finite());
        for bits in finite {
            let x = value(bits);
            let Decimal { digits, exponent } = shortest(x, dtype);
            let text = format!("{digits}e{}", exponent + 1 - digits.len() as i32);
            assert_eq!(parse(text.parse().unwrap()), bits, "{x:e} as {text}");
            if digits.len() > 1 {
                for y in around(x, digits.len() - 1) {
                    assert_ne!(parse(y), bits, "{x:e} as {text}, but {y:e} would do");
                }
            }
        }
    }

    #[test]
    fn every_half_float_is_given_back_by_its_digits_and_by_no_fewer() {
        check_all(DType::F16, |b| f16::from_bits(b).into(), |x| f16::from_f64(x).to_bits());
        check_all(DType::BF16, |b| bf16::from_bits(b).into(), |x| bf16::from_f64(x).to_bits());
    }

    #[test]
    fn digits_beyond_the_precision_are_rounded_from_the_exact_value() {
        // 0.125 lies in the middle and goes to even; 2.675 lies a little below it as an f64.
        assert_eq!(words(&[0.125, 0.375, 2.675], DType::F64, 2), ["0.12", "0.38", "2.67"]);
        assert_eq!(words(&[1.5, 2.5], DType::F64, 0), ["2.", "2."]);
    }
}

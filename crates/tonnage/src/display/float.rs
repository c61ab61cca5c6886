//! Floats as words: the shortest digits that give the number back in its own dtype, up to a precision.
//!
//! Numbers that are printed together share one style. It is scientific where the largest has more
//! digits before the point than its dtype surely holds, the least (but 0) is below 1e-4, or the largest
//! is over 1000 times the least. Points line up. Positional words are padded with blanks; scientific
//! ones all have as many digits as the longest needs, the further ones of a short word being those of
//! its exact value: 0.1 as an `f32` beside a number of nine digits is 1.00000001e-01.

use tonnage_core::{DType, bf16, f16};

use super::digits::{Decimal, shortest};

/// The words of floats that are printed together.
pub(super) fn words(values: &[f64], dtype: DType, precision: usize) -> Vec<String> {
    let words = match is_scientific(values, dtype) {
        true => scientific(values, dtype, precision),
        false => positional(values, dtype, precision),
    };
    let width = longest(&words, String::len);
    words.into_iter().map(|word| format!("{word:>width$}")).collect()
}

/// The word of a float that is printed alone: all its digits, scientific where it is below 1e-4 or
/// too large.
pub(super) fn single(x: f64, dtype: DType) -> String {
    if let Some(word) = not_finite(x) {
        return word.to_string();
    }
    let decimal = shortest(x, dtype);
    if x == 0.0 || (1e-4..most(dtype, 1e16)).contains(&x.abs()) {
        let (int, frac) = decimal.positional();
        return format!("{}{int}.{}", sign(x), if frac.is_empty() { "0" } else { &frac });
    }
    let (int, frac) = decimal.digits.split_at(1);
    let point = if frac.is_empty() { "" } else { "." };
    format!("{}{int}{point}{frac}e{}", sign(x), exponent(decimal.exponent, 2))
}

fn positional(values: &[f64], dtype: DType, precision: usize) -> Vec<String> {
    let parts = |x: f64| {
        let (int, frac) = shortest(x, dtype).positional();
        if frac.len() <= precision {
            return (int, frac);
        }
        // From the exact value: rounding the shortest digits would be rounding twice.
        let text = format!("{:.precision$}", x.abs());
        let (int, frac) = text.split_once('.').unwrap_or((&text, ""));
        (int.to_string(), frac.trim_end_matches('0').to_string())
    };
    let parts: Vec<_> = values.iter().map(|x| x.is_finite().then(|| parts(*x))).collect();
    let places = longest(parts.iter().flatten(), |(_, frac)| frac.len());
    let word = |x: f64, parts: &Option<(String, String)>| match parts {
        Some((int, frac)) => format!("{}{int}.{frac:<places$}", sign(x)),
        None => not_finite(x).unwrap_or_default().to_string(),
    };
    values.iter().zip(&parts).map(|(x, parts)| word(*x, parts)).collect()
}

fn scientific(values: &[f64], dtype: DType, precision: usize) -> Vec<String> {
    let finite = || values.iter().copied().filter(|x| x.is_finite());
    let places = longest(finite(), |x| {
        let places = shortest(x, dtype).digits.len() - 1;
        if places <= precision {
            return places;
        }
        Decimal::rounded(x, precision).trimmed().digits.len() - 1
    });
    let width = longest(finite(), |x| exponent(Decimal::rounded(x, places).exponent, 2).len() - 1);
    let word = |x: f64| {
        let decimal = Decimal::rounded(x, places);
        let (int, frac) = decimal.digits.split_at(1);
        format!("{}{int}.{frac}e{}", sign(x), exponent(decimal.exponent, width))
    };
    values.iter().map(|x| not_finite(*x).map_or_else(|| word(*x), str::to_string)).collect()
}

fn longest<T>(items: impl IntoIterator<Item = T>, len: impl FnMut(T) -> usize) -> usize {
    items.into_iter().map(len).max().unwrap_or(0)
}

fn not_finite(x: f64) -> Option<&'static str> {
    match (x.is_nan(), x.is_infinite(), x < 0.0) {
        (true, ..) => Some("nan"),
        (_, true, true) => Some("-inf"),
        (_, true, false) => Some("inf"),
        _ => None,
    }
}

fn sign(x: f64) -> &'static str {
    if x.is_sign_negative() { "-" } else { "" }
}

/// An exponent with its sign and at least `digits` digits.
fn exponent(exponent: i32, digits: usize) -> String {
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{sign}{:0>digits$}", exponent.unsigned_abs())
}

fn is_scientific(values: &[f64], dtype: DType) -> bool {
    let sizes = || values.iter().map(|x| x.abs()).filter(|x| x.is_finite() && *x > 0.0);
    let (least, largest) = (sizes().fold(f64::INFINITY, f64::min), sizes().fold(0.0, f64::max));
    largest > 0.0
        && (largest >= most(dtype, 1e8)
            || least < round(1e-4, dtype)
            || round(largest / least, dtype) > 1000.0)
}

/// What is as large as this is scientific: the power of ten by the digits that a dtype's fraction
/// surely holds. An `f64` has more of them than one wants to count.
fn most(dtype: DType, of_f64: f64) -> f64 {
    match dtype {
        DType::BF16 => 1e2,
        DType::F16 => 1e3,
        DType::F32 => 1e6,
        _ => of_f64,
    }
}

/// A quotient of two numbers of that dtype, as the dtype has it. Rounding to `f32` first does not
/// change it: that has over twice the bits of a 16-bit float.
fn round(x: f64, dtype: DType) -> f64 {
    match dtype {
        DType::F32 => (x as f32).into(),
        DType::F16 => f16::from_f32(x as f32).into(),
        DType::BF16 => bf16::from_f32(x as f32).into(),
        _ => x,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_beyond_the_precision_are_rounded_from_the_exact_value() {
        // 0.125 lies in the middle and goes to even; 2.675 lies a little below it as an f64.
        assert_eq!(words(&[0.125, 0.375, 2.675], DType::F64, 2), ["0.12", "0.38", "2.67"]);
        assert_eq!(words(&[1.5, 2.5], DType::F64, 0), ["2.", "2."]);
        assert_eq!(words(&[2.675e9, 1.0], DType::F64, 2), ["2.68e+09", "1.00e+00"]);
    }
}

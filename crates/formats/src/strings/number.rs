//! Numbers that strings say.

use tonnage::strings::{Strings, step};
use tonnage::{DType, Result, Tensor, TensorType};
use tonnage_core::error::bad_argument;

use super::parts::is_space;

/// The number that each string says, with white space around it or none: one of `f32`, `f64`, `i32`, `i64`, `u32`, `u64`. Of floats the nearest to what is said;
/// infinities, NaN and integers in base 16 are said too. Integers that the dtype does not have are refused.
///
/// ```
/// use tonnage::{DType, strings::Strings};
/// use tonnage_formats::strings::to_number;
/// let x = Strings::new(&["1", " -2.5e1 ", "inf"], [3])?;
/// assert_eq!(to_number(&x, DType::F32)?.to_vec::<f32>()?, [1.0, -25.0, f32::INFINITY]);
/// assert!(to_number(&x, DType::I32).is_err());
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a string says no number, or the dtype is another.
#[track_caller]
pub fn to_number(x: &Strings, dtype: DType) -> Result<Tensor> {
    let results = [TensorType::new(dtype, x.shape())];
    macro_rules! numbers {
        ($T:ty, $read:expr) => {
            step("to_number", &[x], &[], &results, |strings, _, out| {
                for (i, number) in (0..strings[0].len()).zip(out[0].slice::<$T>()) {
                    let text = strings[0].get(i)?;
                    let read: Option<$T> = std::str::from_utf8(trimmed(text)).ok().and_then($read);
                    *number = read.ok_or_else(|| {
                        let what = format!("{:?} is no {}", String::from_utf8_lossy(text), DTYPES);
                        bad_argument("to_number", what, "give strings that say such numbers")
                    })?;
                }
                Ok(())
            })
        };
    }
    let made = match dtype {
        DType::F32 => {
            numbers!(f32, |text| hexadecimal(text).map(|n| n as f32).or(text.parse().ok()))
        }
        DType::F64 => numbers!(f64, |text| hexadecimal(text).or(text.parse().ok())),
        DType::I32 => numbers!(i32, |text| text.parse().ok()),
        DType::I64 => numbers!(i64, |text| text.parse().ok()),
        DType::U32 => numbers!(u32, |text| text.parse().ok()),
        DType::U64 => numbers!(u64, |text| text.parse().ok()),
        other => {
            let what = format!("numbers of {other}");
            return Err(bad_argument("to_number", what, "read f32, f64, i32, i64, u32 or u64"));
        }
    }?;
    Ok(made[0].clone())
}

const DTYPES: &str = "number of that dtype";

fn trimmed(text: &[u8]) -> &[u8] {
    let start = text.iter().position(|byte| !is_space(*byte)).unwrap_or(text.len());
    let end = text.iter().rposition(|byte| !is_space(*byte)).map_or(start, |last| last + 1);
    &text[start..end]
}

/// An integer in base 16, as a float.
fn hexadecimal(text: &str) -> Option<f64> {
    let (sign, rest) = match text.as_bytes().first()? {
        b'-' => (-1.0, &text[1..]),
        b'+' => (1.0, &text[1..]),
        _ => (1.0, text),
    };
    let digits = rest.strip_prefix("0x").or_else(|| rest.strip_prefix("0X"))?;
    let is_all = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_all.then(|| u128::from_str_radix(digits, 16).ok().map(|n| sign * n as f64)).flatten()
}

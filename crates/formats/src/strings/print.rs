//! Numbers as strings, as C prints them.

use std::fmt::Write;

use tonnage::strings::{Sink, Strings};
use tonnage::{DType, Result, Scalar, Tensor};
use tonnage_core::dtype::Class;
use tonnage_core::error::bad_argument;

/// How floats are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notation {
    /// With as many digits behind the point.
    #[default]
    Fixed,
    /// With an exponent.
    Scientific,
    /// As the shorter of the two, without zeros at the end; the precision counts all digits.
    Shortest,
}

/// How numbers are written.
#[derive(Debug, Clone, Default)]
pub struct Print {
    /// How many digits floats have; 6 where it is not said.
    pub precision: Option<usize>,
    /// How floats are written.
    pub notation: Notation,
    /// How many characters at least; nothing is filled up where it is not said.
    pub width: Option<usize>,
    /// What fills up: a blank or nothing, `0`, or `-` for blanks behind the number; `+` writes the sign of what is not negative, and a blank one too.
    pub fill: String,
}

/// Numbers and truth values as strings.
///
/// ```
/// use tonnage::tensor;
/// use tonnage_formats::strings::{Notation, Print, as_string};
/// let x = tensor([1.5f32, 1e10])?;
/// assert_eq!(as_string(&x, &Print::default())?.to_vec()?, [&b"1.500000"[..], b"10000000000.000000"]);
/// let short = Print { notation: Notation::Shortest, ..Print::default() };
/// assert_eq!(as_string(&x, &short)?.to_vec()?, [&b"1.5"[..], b"1e+10"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where something is said of floats and the numbers are none, or the fill is another; and while a function is traced.
#[track_caller]
pub fn as_string(x: &Tensor, how: &Print) -> Result<Strings> {
    let dtype = x.dtype();
    let refuse = |what: &str| {
        let what = format!("{what} of {dtype}");
        Err(bad_argument("as_string", what, "say that of floats alone"))
    };
    if !dtype.is_float() && how.precision.is_some() {
        return refuse("a precision");
    }
    if !dtype.is_float() && how.notation != Notation::Fixed {
        return refuse("a notation");
    }
    how.check()?;
    Strings::written("as_string", x.shape(), &[], &[x], |_, numbers, i, sink| {
        let (negative, digits) = match numbers[0].nth(i) {
            Scalar::Bool(value) => {
                sink.push(if value { b"true" } else { b"false" });
                return Ok(());
            }
            Scalar::Int(value) => (value < 0, value.unsigned_abs().to_string()),
            Scalar::Float(value) => (value.is_sign_negative(), float(value.abs(), how)),
        };
        let is_number = digits.starts_with(|c: char| c.is_ascii_digit());
        print(sink, negative, &digits, how, is_number, dtype);
        Ok(())
    })
}

/// Strings with blanks in front of them, or behind them where the fill is `-`, up to a width.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Print, filled_up};
/// let wide = Print { width: Some(3), ..Print::default() };
/// assert_eq!(filled_up(&Strings::new(&["a"], [1])?, &wide)?.to_vec()?, [b"  a"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the fill is another; and while a function is traced, if there is a width.
#[track_caller]
pub fn filled_up(x: &Strings, how: &Print) -> Result<Strings> {
    how.check()?;
    let Some(width) = how.width else { return Ok(x.clone()) };
    Strings::written("as_string", x.shape(), &[x], &[], |strings, _, i, sink| {
        let text = strings[0].get(i)?;
        let blanks = |sink: &mut Sink| (text.len()..width).for_each(|_| sink.push(b" "));
        if how.fill != "-" {
            blanks(sink);
        }
        sink.push(text);
        if how.fill == "-" {
            blanks(sink);
        }
        Ok(())
    })
}

impl Print {
    fn check(&self) -> Result<()> {
        if matches!(self.fill.as_str(), "" | " " | "+" | "-" | "0") {
            return Ok(());
        }
        let what = format!("{:?} to fill up with", self.fill);
        Err(bad_argument("as_string", what, "use ` `, `+`, `-`, `0` or nothing"))
    }
}

fn print(
    sink: &mut Sink,
    negative: bool,
    digits: &str,
    how: &Print,
    is_number: bool,
    dtype: DType,
) {
    let has_plus = dtype.is_float() || dtype.class() == Class::Signed;
    let sign = match how.fill.as_str() {
        _ if negative => "-",
        "+" if has_plus => "+",
        " " if has_plus => " ",
        _ => "",
    };
    let room = how.width.unwrap_or(0).saturating_sub(sign.len() + digits.len());
    let fill = |sink: &mut Sink, byte: &[u8]| (0..room).for_each(|_| sink.push(byte));
    match how.fill.as_str() {
        "0" if is_number => {
            sink.push(sign.as_bytes());
            fill(sink, b"0");
            sink.push(digits.as_bytes());
        }
        "-" => {
            sink.push(sign.as_bytes());
            sink.push(digits.as_bytes());
            fill(sink, b" ");
        }
        _ => {
            fill(sink, b" ");
            sink.push(sign.as_bytes());
            sink.push(digits.as_bytes());
        }
    }
}

/// A float that is not negative.
fn float(value: f64, how: &Print) -> String {
    if value.is_nan() {
        return "nan".into();
    }
    if value.is_infinite() {
        return "inf".into();
    }
    let precision = how.precision.unwrap_or(6);
    match how.notation {
        Notation::Fixed => format!("{value:.precision$}"),
        Notation::Scientific => scientific(value, precision).0,
        Notation::Shortest => {
            let digits = precision.max(1);
            let (text, exponent) = scientific(value, digits - 1);
            let text = match exponent >= -4 && exponent < digits as i32 {
                true => format!("{value:.*}", (digits as i32 - 1 - exponent) as usize),
                false => text,
            };
            let (number, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
            let number = match number.contains('.') {
                true => number.trim_end_matches('0').trim_end_matches('.'),
                false => number,
            };
            format!("{number}{exponent}")
        }
    }
}

/// With an exponent of two digits or more, which is beside it.
fn scientific(value: f64, precision: usize) -> (String, i32) {
    let text = format!("{value:.precision$e}");
    let (number, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let mut made = number.to_string();
    let sign = if exponent < 0 { '-' } else { '+' };
    // Writing to a string cannot fail.
    let _ = write!(made, "e{sign}{:02}", exponent.abs());
    (made, exponent)
}

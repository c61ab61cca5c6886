//! Pieces of strings: other places in the same bytes. Functions plan them.

use tonnage::strings::{Strings, broadcast_source, step};
use tonnage::{DType, Elementwise, Result, Tensor, TensorType};
use tonnage_core::error::bad_argument;

/// What lengths and positions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes.
    Byte,
    /// Characters of UTF-8: bytes that do not continue one.
    Utf8,
}

/// Whether a byte begins a character of UTF-8, or is none of its bytes.
fn begins(byte: u8) -> bool {
    byte & 0xc0 != 0x80
}

/// How long strings are: `i32`, in the same shape.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Unit, length};
/// let x = Strings::new(&["abc", "é"], [2])?;
/// assert_eq!(length(&x, Unit::Byte)?.to_vec::<i32>()?, [3, 2]);
/// assert_eq!(length(&x, Unit::Utf8)?.to_vec::<i32>()?, [3, 1]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where there is no memory.
#[track_caller]
pub fn length(x: &Strings, unit: Unit) -> Result<Tensor> {
    if unit == Unit::Byte {
        return x.sizes().cast(DType::I32);
    }
    let results = [TensorType::new(DType::I32, x.shape())];
    let made = step("length", &[x], &[], &results, |strings, _, out| {
        for (i, length) in (0..strings[0].len()).zip(out[0].slice::<i32>()) {
            *length = strings[0].get(i)?.iter().filter(|byte| begins(**byte)).count() as i32;
        }
        Ok(())
    })?;
    Ok(made[0].clone())
}

/// Other places in the same bytes: for each element of a shape where it begins within a string of its own, and how long it is.
fn within(
    op: &'static str,
    x: &Strings,
    numbers: &[&Tensor],
    shape: tonnage::Shape,
    find: impl Fn(usize, &[u8], i64, i64) -> Result<(usize, usize)> + Send + Sync + 'static,
) -> Result<Strings> {
    let ty = TensorType::new(DType::I64, shape);
    let made = step(op, &[x], numbers, &[ty.clone(), ty], move |strings, numbers, out| {
        let [offsets, sizes] = out else { return Ok(()) };
        let (lengths, sizes) = sizes.parts::<i64>();
        let count = lengths.iter().product();
        for (i, (offset, size)) in
            (0..count).zip(offsets.slice::<i64>().iter_mut().zip(sizes.iter_mut()))
        {
            let from = broadcast_source(strings[0].sizes(), lengths, i);
            let text = strings[0].get(from)?;
            let number = |n: usize| {
                numbers.get(n).map_or(0, |numbers| {
                    numbers.nth(broadcast_source(numbers.sizes(), lengths, i)).to_i128() as i64
                })
            };
            let (start, length) = find(i, text, number(0), number(1))?;
            (*offset, *size) = (strings[0].offset(from) + start as i64, length as i64);
        }
        Ok(())
    })?;
    x.spans(made[0].clone(), made[1].clone())
}

/// Strings without the white space around them.
///
/// ```
/// use tonnage::strings::Strings;
/// let x = Strings::new(&[" a b\n"], [1])?;
/// assert_eq!(tonnage_formats::strings::strip(&x)?.to_vec()?, [b"a b"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where there is no memory.
#[track_caller]
pub fn strip(x: &Strings) -> Result<Strings> {
    within("strip", x, &[], x.shape(), |_, text, _, _| {
        let is_text = |byte: &u8| !is_space(*byte);
        let start = text.iter().position(is_text).unwrap_or(text.len());
        let end = text.iter().rposition(is_text).map_or(start, |last| last + 1);
        Ok((start, end - start))
    })
}

/// White space as C knows it.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

/// Of each string `len` bytes or characters from `pos` on, or as many as there are; a negative position counts from the end, a negative length is all bytes there are.
/// Strings on one side and positions and lengths on the other are broadcast to each other.
///
/// ```
/// use tonnage::{strings::Strings, tensor};
/// use tonnage_formats::strings::{Unit, substr};
/// let x = Strings::new(&["hello", "wörld"], [2])?;
/// let part = substr(&x, &tensor(1)?, &tensor(2)?, Unit::Utf8)?;
/// assert_eq!(part.to_vec()?, ["el".as_bytes(), "ör".as_bytes()]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where a position is not in its string, shapes do not fit, or positions and lengths are no integers of one shape.
#[track_caller]
pub fn substr(x: &Strings, pos: &Tensor, len: &Tensor, unit: Unit) -> Result<Strings> {
    if pos.shape() != len.shape() {
        let what = format!("positions of shape {} and lengths of {}", pos.shape(), len.shape());
        return Err(bad_argument("substr", what, "give both in one shape"));
    }
    if pos.dtype() != len.dtype() || !matches!(pos.dtype(), DType::I32 | DType::I64) {
        let what = format!("positions of {} and lengths of {}", pos.dtype(), len.dtype());
        return Err(bad_argument("substr", what, "give both as i32 or as i64"));
    }
    let shape = x.shape().broadcast(&pos.shape(), "substr")?;
    within("substr", x, &[pos, len], shape, move |i, text, pos, len| {
        let outside = || {
            let what = format!("position {pos} is out of range for string {i}");
            bad_argument("substr", what, "give one that the string has")
        };
        match unit {
            Unit::Byte => {
                let start = if pos < 0 { pos + text.len() as i64 } else { pos };
                let start = usize::try_from(start).ok().filter(|start| *start <= text.len());
                let start = start.ok_or_else(outside)?;
                let most = text.len() - start;
                Ok((start, usize::try_from(len).unwrap_or(most).min(most)))
            }
            Unit::Utf8 => {
                let starts = || (0..text.len()).filter(|at| begins(text[*at]));
                let start = if pos < 0 { pos + starts().count() as i64 } else { pos };
                // As in TensorFlow, a negative length is no character, and from the end on an error.
                if pos < 0 && len < 0 {
                    return Err(outside());
                }
                let start = usize::try_from(start).map_err(|_| outside())?;
                let mut from = starts().chain([text.len()]).skip(start);
                let start = from.next().ok_or_else(outside)?;
                let end = match usize::try_from(len) {
                    Ok(len @ 1..) => from.nth(len - 1).unwrap_or(text.len()),
                    _ => start,
                };
                Ok((start, end - start))
            }
        }
    })
}

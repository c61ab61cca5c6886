//! The bytes of strings as numbers.

use tonnage::strings::{LentStrings, Strings, look, step};
use tonnage::{DType, Dim, Result, Source, Tensor, TensorType};
use tonnage_core::error::bad_argument;

/// The numbers that strings of one length are the bytes of, with an axis of them behind the others.
///
/// ```
/// use tonnage::{DType, strings::Strings};
/// let x = Strings::new(&["abcd"], [1])?;
/// let made = tonnage_formats::strings::decode_raw(&x, DType::I16, true)?;
/// assert_eq!(made.to_vec2::<i16>()?, [[25185, 25699]]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where lengths differ or are no multiple of a number's, and while a function is traced: the data say how many numbers there are.
#[track_caller]
pub fn decode_raw(x: &Strings, dtype: DType, little_endian: bool) -> Result<Tensor> {
    let source = Source::here();
    let length = look(&[x], &[], |strings, _| {
        let length = if strings[0].is_empty() { 0 } else { strings[0].get(0)?.len() };
        for i in 0..strings[0].len() {
            let own = strings[0].get(i)?.len();
            if own != length {
                let what = format!("string {i} has {own} bytes and the first {length}");
                return Err(bad_argument("decode_raw", what, "give strings of one length"));
            }
        }
        Ok(length)
    });
    decode_raw_padded(x, dtype, little_endian, length.map_err(|e| e.at(source))?)
}

/// The same of `length` bytes of each: what a string has more is left out, and what it has not are zeros. Functions plan it.
///
/// # Errors
/// Where the length is no multiple of a number's.
#[track_caller]
pub fn decode_raw_padded(
    x: &Strings,
    dtype: DType,
    little_endian: bool,
    length: usize,
) -> Result<Tensor> {
    let size = dtype.size();
    if !length.is_multiple_of(size) {
        let what = format!("{length} bytes are no multiple of the {size} of {dtype}");
        return Err(bad_argument("decode_raw", what, "give a multiple"));
    }
    let shape: tonnage::Shape =
        x.shape().iter().cloned().chain([Dim::Known(length / size)]).collect();
    let swapped = little_endian != cfg!(target_endian = "little");
    let write = move |strings: &LentStrings, out: &mut [u8]| -> Result<()> {
        if length == 0 {
            return Ok(());
        }
        for (i, to) in (0..strings.len()).zip(out.chunks_exact_mut(length)) {
            let text = strings.get(i)?;
            let there = text.len().min(length);
            to[..there].copy_from_slice(&text[..there]);
            to[there..].fill(0);
            if swapped {
                to.chunks_exact_mut(size).for_each(<[u8]>::reverse);
            }
        }
        Ok(())
    };
    let results = [TensorType::new(dtype, shape)];
    let made = step("decode_raw", &[x], &[], &results, move |strings, _, out| {
        write(&strings[0], out[0].data)
    })?;
    Ok(made[0].clone())
}

//! Bytes as text of 64 characters that addresses of the web may have, and back.

use tonnage::Result;
use tonnage::strings::Strings;
use tonnage_core::error::bad_argument;

const CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// Strings in base 64, filled up to a multiple of four characters with `=` if `pad` is said.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{decode_base64, encode_base64};
/// let coded = encode_base64(&Strings::new(&["hello"], [1])?, true)?;
/// assert_eq!(coded.to_vec()?, [b"aGVsbG8="]);
/// assert_eq!(decode_base64(&coded)?.to_vec()?, [b"hello"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn encode_base64(x: &Strings, pad: bool) -> Result<Strings> {
    Strings::written("encode_base64", x.shape(), &[x], &[], |strings, _, i, sink| {
        for three in strings[0].get(i)?.chunks(3) {
            let bits = three.iter().fold(0u32, |bits, byte| bits << 8 | u32::from(*byte));
            let bits = bits << (8 * (3 - three.len()));
            let mut four = [b'='; 4];
            for (at, character) in four[..=three.len()].iter_mut().enumerate() {
                *character = CHARACTERS[(bits >> (18 - 6 * at) & 63) as usize];
            }
            sink.push(if pad { &four } else { &four[..=three.len()] });
        }
        Ok(())
    })
}

/// What strings in base 64 stand for.
///
/// # Errors
/// Where one is not in base 64, and while a function is traced.
#[track_caller]
pub fn decode_base64(x: &Strings) -> Result<Strings> {
    Strings::written("decode_base64", x.shape(), &[x], &[], |strings, _, i, sink| {
        let wrong = |what: &str| bad_argument("decode_base64", format!("string {i}: {what}"), HELP);
        let text = strings[0].get(i)?;
        let whole = text.iter().rposition(|byte| *byte != b'=').map_or(0, |last| last + 1);
        if whole % 4 == 1 || (whole < text.len() && text.len() % 4 != 0) || text.len() - whole > 2 {
            return Err(wrong("no text of such a length is in base 64"));
        }
        for four in text[..whole].chunks(4) {
            let mut bits = 0u32;
            for character in four {
                let value = value(*character).ok_or_else(|| wrong("an invalid character"))?;
                bits = bits << 6 | value;
            }
            let bytes = (bits << (6 * (4 - four.len()))).to_be_bytes();
            sink.push(&bytes[1..four.len()]);
        }
        Ok(())
    })
}

const HELP: &str = "give letters, digits, `-` and `_`";

fn value(character: u8) -> Option<u32> {
    Some(match character {
        b'A'..=b'Z' => u32::from(character - b'A'),
        b'a'..=b'z' => u32::from(character - b'a') + 26,
        b'0'..=b'9' => u32::from(character - b'0') + 52,
        b'-' => 62,
        b'_' => 63,
        _ => return None,
    })
}

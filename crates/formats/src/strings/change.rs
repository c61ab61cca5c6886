//! Strings in lower and upper case.

use tonnage::Result;
use tonnage::strings::Strings;

/// Which characters change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Case {
    /// Those of ASCII, byte by byte.
    Ascii,
    /// All of Unicode, of strings in UTF-8.
    Utf8,
}

/// Strings in lower case.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Case, lower};
/// let x = Strings::new(&["É A"], [1])?;
/// assert_eq!(lower(&x, Case::Ascii)?.to_vec()?, ["É a".as_bytes()]);
/// assert_eq!(lower(&x, Case::Utf8)?.to_vec()?, ["é a".as_bytes()]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn lower(x: &Strings, case: Case) -> Result<Strings> {
    changed("lower", x, case, u8::to_ascii_lowercase, str::to_lowercase)
}

/// Strings in upper case.
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn upper(x: &Strings, case: Case) -> Result<Strings> {
    changed("upper", x, case, u8::to_ascii_uppercase, str::to_uppercase)
}

#[track_caller]
fn changed(
    op: &'static str,
    x: &Strings,
    case: Case,
    byte: fn(&u8) -> u8,
    text: fn(&str) -> String,
) -> Result<Strings> {
    Strings::written(op, x.shape(), &[x], &[], |strings, _, i, sink| {
        let own = strings[0].get(i)?;
        match case {
            Case::Ascii => own.iter().for_each(|one| sink.push(&[byte(one)])),
            Case::Utf8 => sink.push(text(&String::from_utf8_lossy(own)).as_bytes()),
        }
        Ok(())
    })
}

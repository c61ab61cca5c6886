//! Strings as code points, and code points as strings.

use tonnage::strings::{Strings, look};
use tonnage::{Result, Tensor};
use tonnage_core::error::bad_argument;

use super::encoding::Encoding;
use super::join::integers;
use super::numbers;

/// What becomes of bytes that are no characters, and of control characters.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unicode {
    /// What stands for what is no character: another character, or nothing; where it is not said, that is an error.
    pub invalid: Option<Option<char>>,
    /// What stands for a control character, where it is replaced: another character, or nothing.
    pub controls: Option<Option<char>>,
}

impl Unicode {
    /// What a character becomes, where it becomes one.
    fn mend(&self, op: &'static str, i: usize, found: Option<char>) -> Result<Option<char>> {
        match (found, self.invalid) {
            (Some(character), _) if is_control(character) => Ok(self.controls.unwrap_or(found)),
            (Some(_), _) => Ok(found),
            (None, Some(instead)) => Ok(instead),
            (None, None) => {
                let what = format!("invalid formatting of string {i}");
                Err(bad_argument(op, what, "give valid text, or say what stands for what is not"))
            }
        }
    }
}

fn is_control(character: char) -> bool {
    matches!(character, '\0'..='\x1f')
}

/// The code points of strings, those of all in a row.
#[derive(Debug, Clone)]
pub struct Decoded {
    /// The code points, `i32`.
    pub characters: Tensor,
    /// Where each begins in its string, `i64`.
    pub offsets: Tensor,
    /// Where those of each string begin, `i64`.
    pub splits: Tensor,
}

/// The code points of strings in an encoding.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Unicode, unicode_decode};
/// let x = Strings::new(&["aé", "b"], [2])?;
/// let made = unicode_decode(&x, "UTF-8", Unicode::default())?;
/// assert_eq!(made.characters.to_vec::<i32>()?, [97, 233, 98]);
/// assert_eq!(made.splits.to_vec::<i64>()?, [0, 2, 3]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where the encoding is not known or bytes are no characters of it, and while a function is traced.
#[track_caller]
pub fn unicode_decode(x: &Strings, encoding: &str, how: Unicode) -> Result<Decoded> {
    const OP: &str = "unicode_decode";
    let encoding = Encoding::of(OP, encoding)?;
    look(&[x], &[], |strings, _| {
        let strings = &strings[0];
        let walk = |visit: &mut dyn FnMut(char, usize)| {
            (0..strings.len()).try_for_each(|i| {
                encoding.decode(strings.get(i)?, &mut |found, at| {
                    how.mend(OP, i, found).map(|found| found.into_iter().for_each(|c| visit(c, at)))
                })
            })
        };
        let mut total = 0;
        let splits = numbers::<i64>(strings.len() + 1, |splits| {
            splits[0] = 0;
            for (i, split) in splits[1..].iter_mut().enumerate() {
                encoding.decode(strings.get(i)?, &mut |found, _| {
                    total += how.mend(OP, i, found)?.iter().count();
                    Ok(())
                })?;
                *split = total as i64;
            }
            Ok(())
        })?;
        let characters = numbers::<i32>(total, |characters| {
            let mut places = characters.iter_mut();
            walk(&mut |character, _| {
                if let Some(place) = places.next() {
                    *place = u32::from(character) as i32;
                }
            })
        })?;
        let offsets = numbers::<i64>(total, |offsets| {
            let mut places = offsets.iter_mut();
            walk(&mut |_, at| {
                if let Some(place) = places.next() {
                    *place = at as i64;
                }
            })
        })?;
        Ok(Decoded { characters, offsets, splits })
    })
}

/// Rows of code points as strings in an encoding: UTF-8, UTF-16-BE or UTF-32-BE.
///
/// # Errors
/// Where the encoding is another, rows lie outside of the code points or one is none, and while a function is traced.
#[track_caller]
pub fn unicode_encode(
    characters: &Tensor,
    splits: &Tensor,
    encoding: &str,
    how: Unicode,
) -> Result<Strings> {
    const OP: &str = "unicode_encode";
    let encoding = Encoding::of_output(OP, encoding)?;
    let rows = integers(splits)?;
    let held = characters.shape().count().unwrap_or(0) as i64;
    let fits = rows.first() == Some(&0)
        && rows.last() == Some(&held)
        && rows.windows(2).all(|pair| pair[0] <= pair[1]);
    if !fits {
        let what = format!("rows {rows:?} of {held} code points");
        return Err(bad_argument(OP, what, "give rows in order"));
    }
    Strings::written(OP, [rows.len() - 1].into(), &[], &[characters], |_, numbers, i, sink| {
        for at in rows[i]..rows[i + 1] {
            let code = u32::try_from(numbers[0].nth(at as usize).to_i128()).ok();
            if let Some(character) = how.mend(OP, i, code.and_then(char::from_u32))? {
                encoding.encode(character, sink);
            }
        }
        Ok(())
    })
}

/// The characters of strings as strings of their own, in their encoding: those of all in a row, where each begins in its string, and where those of each begin.
///
/// # Errors
/// As [`unicode_decode`].
#[track_caller]
pub fn unicode_split(
    x: &Strings,
    encoding: &str,
    how: Unicode,
) -> Result<(Strings, Tensor, Tensor)> {
    let own = Encoding::of("unicode_split", encoding)?;
    let Decoded { characters, offsets, splits } = unicode_decode(x, encoding, how)?;
    let made = Strings::written(
        "unicode_split",
        characters.shape(),
        &[],
        &[&characters],
        |_, numbers, i, sink| {
            let code = numbers[0].nth(i).to_i128() as u32;
            own.encode(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER), sink);
            Ok(())
        },
    )?;
    Ok((made, offsets, splits))
}

/// Strings in another encoding: UTF-8, UTF-16-BE or UTF-32-BE.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Unicode, unicode_transcode};
/// let x = Strings::new(&[[0xe9u8]], [1])?;
/// let made = unicode_transcode(&x, "latin-1", "UTF-8", Unicode::default())?;
/// assert_eq!(made.to_vec()?, ["é".as_bytes()]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where an encoding is not known or bytes are no characters of it, and while a function is traced.
#[track_caller]
pub fn unicode_transcode(x: &Strings, from: &str, to: &str, how: Unicode) -> Result<Strings> {
    const OP: &str = "unicode_transcode";
    let (from, to) = (Encoding::of(OP, from)?, Encoding::of_output(OP, to)?);
    Strings::written(OP, x.shape(), &[x], &[], |strings, _, i, sink| {
        from.decode(strings[0].get(i)?, &mut |found, _| {
            if let Some(character) = how.mend(OP, i, found)? {
                to.encode(character, sink);
            }
            Ok(())
        })
    })
}

//! Strings cut into rows of pieces: other places in the same bytes, of which the data say how many there are.

use tonnage::strings::{Strings, look};
use tonnage::{Result, Tensor};

use super::numbers;
use super::parts::is_space;

/// The pieces of each string, between separators or, without one, between runs of white space; at most `most` cuts of each. The pieces of all strings in a row, and
/// where those of each begin.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::split;
/// let x = Strings::new(&["a,b,,c", ""], [2])?;
/// let (pieces, splits) = split(&x, Some(b","), Some(2))?;
/// assert_eq!(pieces.to_vec()?, [&b"a"[..], b"b", b",c", b""]);
/// assert_eq!(splits.to_vec::<i64>()?, [0, 3, 4]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn split(
    x: &Strings,
    separator: Option<&[u8]>,
    most: Option<usize>,
) -> Result<(Strings, Tensor)> {
    let most = most.unwrap_or(usize::MAX);
    match separator.filter(|separator| !separator.is_empty()) {
        Some(separator) => pieces(x, &|text, piece| at_separator(text, separator, most, piece)),
        None => pieces(x, &|text, piece| at_spaces(text, most, piece)),
    }
}

/// The bytes of each string: those of all in a row, and where those of each begin.
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn bytes_split(x: &Strings) -> Result<(Strings, Tensor)> {
    pieces(x, &|text, piece| (0..text.len()).for_each(|at| piece(at, 1)))
}

/// Takes a piece: where it begins in its string, and how long it is.
type Take<'a> = &'a mut dyn FnMut(usize, usize);

fn at_separator(text: &[u8], separator: &[u8], most: usize, piece: Take) {
    let (mut start, mut at, mut cuts) = (0, 0, 0);
    while cuts < most && at + separator.len() <= text.len() {
        match text[at..].starts_with(separator) {
            true => {
                piece(start, at - start);
                at += separator.len();
                start = at;
                cuts += 1;
            }
            false => at += 1,
        }
    }
    piece(start, text.len() - start);
}

fn at_spaces(text: &[u8], most: usize, piece: Take) {
    let (mut at, mut cuts) = (0, 0);
    if most == 0 {
        return piece(0, text.len());
    }
    let skip = |at: usize| text[at..].iter().take_while(|byte| is_space(**byte)).count();
    at += skip(at);
    while at < text.len() {
        let length = text[at..].iter().take_while(|byte| !is_space(**byte)).count();
        piece(at, length);
        at += length;
        at += skip(at);
        cuts += 1;
        if cuts == most {
            // What is left, though it be nothing.
            return piece(at, text.len() - at);
        }
    }
}

/// What a closure finds in each string: it is asked twice, once to count.
fn pieces(x: &Strings, find: &dyn Fn(&[u8], Take)) -> Result<(Strings, Tensor)> {
    look(&[x], &[], |strings, _| {
        let strings = &strings[0];
        let mut total = 0;
        let splits = numbers::<i64>(strings.len() + 1, |splits| {
            for (i, split) in splits[1..].iter_mut().enumerate() {
                find(strings.get(i)?, &mut |_, _| total += 1);
                *split = total;
            }
            splits[0] = 0;
            Ok(())
        })?;
        let mut offsets = None;
        let sizes = numbers::<i64>(total as usize, |sizes| {
            offsets = Some(numbers::<i64>(total as usize, |offsets| {
                let mut places = offsets.iter_mut().zip(sizes);
                for i in 0..strings.len() {
                    let begin = strings.offset(i);
                    find(strings.get(i)?, &mut |start, length| {
                        if let Some((offset, size)) = places.next() {
                            (*offset, *size) = (begin + start as i64, length as i64);
                        }
                    });
                }
                Ok(())
            })?);
            Ok(())
        })?;
        let offsets = offsets.unwrap_or_else(|| sizes.clone());
        Ok((x.spans(offsets, sizes)?, splits))
    })
}

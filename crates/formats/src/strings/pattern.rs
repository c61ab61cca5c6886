//! Regular expressions: which strings match, and what stands in place of a match.

use regex::bytes::{Captures, Regex};
use tonnage::strings::{Sink, Strings, step};
use tonnage::{Bool, DType, Result, Tensor, TensorType};

use super::syntax::{invalid, translated};

/// A regular expression in RE2's syntax, as TensorFlow's are.
#[derive(Debug, Clone)]
pub struct Pattern {
    anywhere: Regex,
    whole: Regex,
}

impl Pattern {
    /// The pattern that a text says.
    ///
    /// ```
    /// use tonnage_formats::strings::Pattern;
    /// assert!(Pattern::new("a+").is_ok());
    /// let error = Pattern::new("(a").unwrap_err().to_string();
    /// assert!(error.starts_with("regex: invalid pattern \"(a\""), "{error}");
    /// ```
    ///
    /// # Errors
    /// Where it says none.
    pub fn new(text: &str) -> Result<Pattern> {
        let inner = translated(OP, text)?;
        let compile = |translated: &str| {
            // The last line of the library's text says what is wrong.
            Regex::new(translated).map_err(|error| {
                let text_of = error.to_string();
                let last = text_of.lines().last().unwrap_or_default();
                invalid(OP, text, last.trim_start_matches("error: "))
            })
        };
        Ok(Pattern { anywhere: compile(&inner)?, whole: compile(&format!("\\A(?:{inner})\\z"))? })
    }
}

const OP: &str = "regex";

/// Which strings match a pattern as a whole.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Pattern, regex_full_match};
/// let x = Strings::new(&["abc", "abcd"], [2])?;
/// assert_eq!(regex_full_match(&x, &Pattern::new("ab.")?)?.to_vec::<bool>()?, [true, false]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where there is no memory.
#[track_caller]
pub fn regex_full_match(x: &Strings, pattern: &Pattern) -> Result<Tensor> {
    let (results, whole) = ([TensorType::new(DType::Bool, x.shape())], pattern.whole.clone());
    let made = step("regex_full_match", &[x], &[], &results, move |strings, _, out| {
        for (i, matches) in (0..strings[0].len()).zip(out[0].slice::<Bool>()) {
            *matches = Bool::from(whole.is_match(strings[0].get(i)?));
        }
        Ok(())
    })?;
    Ok(made[0].clone())
}

/// Strings with another text in place of what matches a pattern: of the first match, or of all. In the text `\0` is the match, `\1` to `\9` are its groups, and `\\` is a
/// backslash. Where the pattern has fewer groups nothing is replaced.
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::{Pattern, regex_replace};
/// let x = Strings::new(&["hello world"], [1])?;
/// let made = regex_replace(&x, &Pattern::new("(l+)o")?, br"<\1>", true)?;
/// assert_eq!(made.to_vec()?, [b"he<ll> world"]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// While a function is traced.
#[track_caller]
pub fn regex_replace(x: &Strings, pattern: &Pattern, rewrite: &[u8], all: bool) -> Result<Strings> {
    let regex = &pattern.anywhere;
    let rewrite = Rewrite::new(rewrite);
    let is_one = rewrite.most < regex.captures_len() && (all || rewrite.is_whole);
    Strings::written("regex_replace", x.shape(), &[x], &[], |strings, _, i, sink| {
        let text = strings[0].get(i)?;
        let mut at = 0;
        if is_one {
            for found in regex.captures_iter(text).take(if all { usize::MAX } else { 1 }) {
                let Some(place) = found.get(0) else { continue };
                sink.push(&text[at..place.start()]);
                rewrite.write(&found, sink);
                at = place.end();
            }
        }
        sink.push(&text[at..]);
        Ok(())
    })
}

/// What stands in place of a match.
struct Rewrite {
    pieces: Vec<Piece>,
    /// The largest group that is named.
    most: usize,
    /// Whether all of it could be read; otherwise it ends where it could not.
    is_whole: bool,
}

enum Piece {
    Text(Vec<u8>),
    Group(usize),
}

impl Rewrite {
    fn new(text: &[u8]) -> Rewrite {
        let (mut pieces, mut is_whole) = (Vec::new(), true);
        let mut rest = text.iter();
        while let Some(byte) = rest.next() {
            if *byte != b'\\' {
                pieces.push(Piece::Text(vec![*byte]));
                continue;
            }
            match rest.next() {
                Some(digit @ b'0'..=b'9') => pieces.push(Piece::Group(usize::from(digit - b'0'))),
                Some(b'\\') => pieces.push(Piece::Text(vec![b'\\'])),
                _ => {
                    is_whole = false;
                    break;
                }
            }
        }
        // RE2 asks for the groups of what it cannot read too.
        let digits = text.windows(2).filter(|two| two[0] == b'\\' && two[1].is_ascii_digit());
        let most = digits.map(|two| usize::from(two[1] - b'0')).max().unwrap_or(0);
        Rewrite { pieces, most, is_whole }
    }

    fn write(&self, found: &Captures, sink: &mut Sink) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => sink.push(text),
                Piece::Group(number) => {
                    sink.push(found.get(*number).map_or(&[][..], |group| group.as_bytes()));
                }
            }
        }
    }
}

//! Patterns in the syntax of RE2, which TensorFlow's are in, as patterns of the crate `regex` that mean the same.
//!
//! What differs: RE2's classes `\d`, `\s`, `\w` and word boundaries are those of ASCII, it has `\Q...\E`, `\C`, octal escapes and `\p{^...}`, and in brackets it knows no
//! operations on sets. What RE2 refuses and `regex` takes is refused.

use tonnage::Result;
use tonnage_core::error::bad_argument;

/// How often RE2 repeats at most.
const MOST: u32 = 1000;

/// The same pattern for `regex`.
pub fn translated(op: &'static str, pattern: &str) -> Result<String> {
    let mut walk =
        Walk { op, pattern, rest: pattern.chars().collect(), at: 0, made: String::new() };
    walk.outside()?;
    Ok(walk.made)
}

/// An error about a pattern.
pub fn invalid(op: &'static str, pattern: &str, why: impl std::fmt::Display) -> tonnage::Error {
    let what = format!("invalid pattern {pattern:?}: {why}");
    bad_argument(op, what, "give a regular expression in the syntax of RE2")
}

struct Walk<'a> {
    op: &'static str,
    pattern: &'a str,
    rest: Vec<char>,
    at: usize,
    made: String,
}

impl Walk<'_> {
    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += 1;
        next
    }

    fn peek(&self) -> Option<char> {
        self.rest.get(self.at).copied()
    }

    fn follows(&self, text: &str) -> bool {
        text.chars().enumerate().all(|(i, c)| self.rest.get(self.at + i) == Some(&c))
    }

    fn wrong(&self, why: impl std::fmt::Display) -> tonnage::Error {
        invalid(self.op, self.pattern, why)
    }

    /// A character that stands for itself.
    fn literal(&mut self, character: char) {
        self.made.push_str(&format!("\\x{{{:X}}}", u32::from(character)));
    }

    fn outside(&mut self) -> Result<()> {
        let mut repeated = false;
        while let Some(character) = self.next() {
            let was_repeated = std::mem::take(&mut repeated);
            match character {
                '\\' if self.follows("Q") => self.quoted(),
                '\\' => self.escape(false)?,
                '[' => self.bracket()?,
                '(' if self.follows("?") => self.group()?,
                '*' | '+' | '?' => {
                    if was_repeated {
                        return Err(self.wrong(format!("bad repetition operator: {character}")));
                    }
                    self.made.push(character);
                    self.lazy();
                    repeated = true;
                }
                '{' => repeated = self.counted(was_repeated)?,
                // Neither has a meaning of its own in RE2.
                ' ' | '#' | '&' | '~' | '-' | ']' | '}' => self.literal(character),
                other => self.made.push(other),
            }
        }
        Ok(())
    }

    /// The `?` behind a repetition.
    fn lazy(&mut self) {
        if self.peek() == Some('?') {
            self.at += 1;
            self.made.push('?');
        }
    }

    /// `{n}`, `{n,}` or `{n,m}`; what is neither stands for itself.
    fn counted(&mut self, was_repeated: bool) -> Result<bool> {
        let end = self.rest[self.at..].iter().position(|c| *c == '}');
        let inner: Option<String> =
            end.map(|end| self.rest[self.at..self.at + end].iter().collect());
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        let counts = inner.as_deref().and_then(|inner| match inner.split_once(',') {
            None => is_number(inner).then_some((inner, inner)),
            Some((least, most)) => {
                (is_number(least) && (most.is_empty() || is_number(most))).then_some((least, most))
            }
        });
        let (Some((least, most)), Some(inner)) = (counts, inner.as_deref()) else {
            self.literal('{');
            return Ok(false);
        };
        let too_large = |n: &str| !n.is_empty() && n.parse::<u32>().map_or(true, |n| n > MOST);
        let disordered =
            matches!((least.parse::<u32>(), most.parse::<u32>()), (Ok(a), Ok(b)) if a > b);
        if was_repeated || too_large(least) || too_large(most) || disordered {
            return Err(self.wrong(format!("invalid repetition: {{{inner}}}")));
        }
        self.made.push_str(&format!("{{{inner}}}"));
        self.at += inner.chars().count() + 1;
        self.lazy();
        Ok(true)
    }

    /// What stands behind `(`: a name or flags.
    fn group(&mut self) -> Result<()> {
        let start = self.at;
        let name = if self.follows("?P<") { Some(3) } else { self.follows("?<").then_some(2) };
        if let Some(skip) = name {
            let first = self.rest.get(start + skip);
            if !matches!(first, Some('=' | '!')) {
                self.made.push_str("(?P<");
                self.at += skip;
                return Ok(());
            }
        }
        self.at += 1;
        while let Some(flag) = self.peek().filter(|c| matches!(c, 'i' | 'm' | 's' | 'U' | '-')) {
            let _ = flag;
            self.at += 1;
        }
        if !matches!(self.peek(), Some(')' | ':')) {
            let shown: String = self.rest[start..].iter().take(self.at - start + 1).collect();
            return Err(self.wrong(format!("invalid perl operator: ({shown}")));
        }
        self.at += 1;
        self.made.push('(');
        self.made.extend(&self.rest[start..self.at]);
        Ok(())
    }

    fn quoted(&mut self) {
        self.at += 1;
        while self.at < self.rest.len() && !self.follows("\\E") {
            let character = self.rest[self.at];
            self.literal(character);
            self.at += 1;
        }
        self.at += 2;
    }

    fn bracket(&mut self) -> Result<()> {
        self.made.push('[');
        if self.peek() == Some('^') {
            self.at += 1;
            self.made.push('^');
        }
        let mut is_first = true;
        loop {
            let Some(character) = self.next() else { return Err(self.wrong("missing closing ]")) };
            match character {
                ']' if !is_first => {
                    self.made.push(']');
                    return Ok(());
                }
                '[' if self.peek() == Some(':') => {
                    let end = self.rest[self.at..].windows(2).position(|two| two == [':', ']']);
                    let Some(end) = end else {
                        self.literal('[');
                        is_first = false;
                        continue;
                    };
                    self.made.push('[');
                    self.made.extend(&self.rest[self.at..self.at + end + 2]);
                    self.at += end + 2;
                }
                '\\' if self.follows("Q") => self.quoted(),
                '\\' => self.escape(true)?,
                '-' => {
                    // A range, or itself at either end.
                    let is_range = !is_first && self.peek().is_some_and(|next| next != ']');
                    if is_range { self.made.push('-') } else { self.literal('-') }
                }
                other => self.literal(other),
            }
            is_first = false;
        }
    }

    /// What stands behind a backslash, inside of brackets or not.
    fn escape(&mut self, inside: bool) -> Result<()> {
        let Some(character) = self.next() else { return Err(self.wrong("trailing \\")) };
        let class = |inner: &str| match inside {
            true => inner.to_string(),
            false => format!("[{inner}]"),
        };
        match character {
            'd' => self.made.push_str(&class("0-9")),
            's' => self.made.push_str(&class("\\t\\n\\f\\r\\x20")),
            'w' => self.made.push_str(&class("0-9A-Za-z_")),
            'D' => self.made.push_str("[^0-9]"),
            'S' => self.made.push_str("[^\\t\\n\\f\\r\\x20]"),
            'W' => self.made.push_str("[^0-9A-Za-z_]"),
            'b' | 'B' if !inside => self.made.push_str(&format!("(?-u:\\{character})")),
            'A' | 'z' if !inside => self.made.extend(['\\', character]),
            'C' if !inside => self.made.push_str("(?s-u:.)"),
            'a' | 'f' | 'n' | 'r' | 't' | 'v' => self.made.extend(['\\', character]),
            'p' | 'P' => self.property(character)?,
            'x' => {
                let digits: String = match self.peek() {
                    Some('{') => {
                        let inner = self.rest[self.at + 1..].iter().take_while(|c| **c != '}');
                        let inner: String = inner.collect();
                        self.at += inner.chars().count() + 2;
                        inner
                    }
                    _ => {
                        let two: String = self.rest[self.at..].iter().take(2).collect();
                        self.at += 2;
                        two
                    }
                };
                let code = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                let code =
                    code.filter(|_| digits.len() > 1 || self.rest.get(self.at - 1) == Some(&'}'));
                self.literal(code.ok_or_else(|| self.wrong("invalid escape sequence: \\x"))?);
            }
            '0'..='7' => {
                // Octal: any number after a 0, three digits otherwise.
                let digits: String = std::iter::once(&character)
                    .chain(self.rest[self.at..].iter())
                    .take(3)
                    .take_while(|c| ('0'..='7').contains(*c))
                    .collect();
                if character != '0' && digits.len() < 2 {
                    return Err(self.wrong(format!("invalid escape sequence: \\{character}")));
                }
                self.at += digits.len() - 1;
                let code = u32::from_str_radix(&digits, 8).ok().and_then(char::from_u32);
                self.literal(code.ok_or_else(|| self.wrong("invalid escape sequence"))?);
            }
            other if other.is_ascii() && !other.is_ascii_alphanumeric() && other != '_' => {
                self.literal(other);
            }
            '_' => self.literal('_'),
            other => return Err(self.wrong(format!("invalid escape sequence: \\{other}"))),
        }
        Ok(())
    }

    /// `\pL`, `\p{Greek}`, `\p{^Greek}`.
    fn property(&mut self, kind: char) -> Result<()> {
        let Some(next) = self.next() else {
            return Err(self.wrong("invalid character class range"));
        };
        if next != '{' {
            self.made.push_str(&format!("\\{kind}{next}"));
            return Ok(());
        }
        let inner: String = self.rest[self.at..].iter().take_while(|c| **c != '}').collect();
        self.at += inner.chars().count() + 1;
        let (negative, name) = match inner.strip_prefix('^') {
            Some(name) => (true, name),
            None => (false, inner.as_str()),
        };
        let kind = if (kind == 'P') != negative { 'P' } else { 'p' };
        self.made.push_str(&format!("\\{kind}{{{name}}}"));
        Ok(())
    }
}

//! Rust text, taken apart just far enough: code, comments, attributes, words.
//!
//! A check for `unsafe` must not trip over the word in a comment or a string, so searching raw text
//! won't do; a full parser would be the only dependency of this crate, and would lose the comments.

/// One line of a file.
#[derive(Default)]
pub struct Line {
    /// The code, with nothing between the quotes of strings and characters.
    pub code: String,
    /// The text of comments, with their slashes.
    pub comment: String,
    /// Whether the line is part of an attribute or touches one.
    pub attribute: bool,
}

/// The lines of a Rust file.
pub fn lines(text: &str) -> Vec<Line> {
    let mut lines = vec![Line::default()];
    let mut rest = text;
    let mut previous = ' ';
    while let Some(first) = rest.chars().next() {
        let (length, is_comment) = token(rest, previous);
        let (piece, after) = rest.split_at(length);
        // Only comments and literals are longer than one character.
        let is_literal = !is_comment && length > first.len_utf8();
        for c in piece.chars() {
            match (c, lines.last_mut()) {
                ('\n', _) => lines.push(Line::default()),
                (c, Some(line)) if is_comment => line.comment.push(c),
                (c, Some(line)) if !is_literal => line.code.push(c),
                _ => {}
            }
        }
        if let (true, Some(line)) = (is_literal, lines.last_mut()) {
            line.code.push_str("\"\"");
        }
        previous = piece.chars().next_back().unwrap_or(' ');
        rest = after;
    }
    mark_attributes(&mut lines);
    lines
}

/// The length of the comment, literal or single character at the start; whether it is a comment.
fn token(rest: &str, previous: char) -> (usize, bool) {
    let one = rest.chars().next().map_or(0, char::len_utf8);
    if rest.starts_with("//") {
        return (rest.find('\n').unwrap_or(rest.len()), true);
    }
    if rest.starts_with("/*") {
        return (block_comment(rest), true);
    }
    let length = match rest.as_bytes()[0] {
        b'"' => quoted(rest, '"'),
        b'\'' => character(rest),
        b'r' if !is_word(previous) || previous == 'b' || previous == 'c' => raw_string(rest),
        _ => None,
    };
    (length.unwrap_or(one), false)
}

/// Block comments nest.
fn block_comment(rest: &str) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        let tail = &rest.as_bytes()[at..];
        (depth, at) = match tail {
            [b'/', b'*', ..] => (depth + 1, at + 2),
            [b'*', b'/', ..] => (depth - 1, at + 2),
            _ => (depth, at + 1),
        };
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// A literal up to the next quote that no backslash escapes.
fn quoted(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// `'x'` and `'\n'`, but not the lifetime `'x`.
fn character(rest: &str) -> Option<usize> {
    let mut chars = rest.chars().skip(1);
    match (chars.next(), chars.next()) {
        (Some('\\'), _) | (Some(_), Some('\'')) => quoted(rest, '\''),
        _ => None,
    }
}

/// `r"..."` and `r#"..."#`, but not the name `r#fn`.
fn raw_string(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|&b| b == b'#').count();
    let body = 1 + hashes + 1;
    if rest.as_bytes().get(1 + hashes) != Some(&b'"') {
        return None;
    }
    let end = format!("\"{}", "#".repeat(hashes));
    rest[body..].find(&end).map(|at| body + at + end.len())
}

fn mark_attributes(lines: &mut [Line]) {
    let mut depth = 0usize;
    for line in lines {
        line.attribute = depth > 0;
        let mut previous = ' ';
        for c in line.code.chars() {
            match c {
                '[' if depth > 0 || previous == '#' => {
                    depth += 1;
                    line.attribute = true;
                }
                ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            // `#![` opens an attribute as `#[` does.
            if !(c == '!' && previous == '#') {
                previous = c;
            }
        }
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The words of a piece of text, each with what follows it.
pub fn words(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        let start = rest.find(is_word)?;
        let tail = &rest[start..];
        let (word, after) = tail.split_at(tail.find(|c| !is_word(c)).unwrap_or(tail.len()));
        rest = after;
        Some((word, after))
    })
}

#[cfg(test)]
fn code(text: &str) -> Vec<String> {
    lines(text).into_iter().map(|line| line.code).collect()
}

#[test]
fn strings_and_comments_are_not_code() {
    assert_eq!(code("a(\"x \\\" y\"); // z"), ["a(\"\"); "]);
    assert_eq!(code("b'\"' + '\\'' + r#\"q\" u\"# + br\"\\\""), ["b\"\" + \"\" + \"\" + b\"\""]);
    assert_eq!(code("fn f<'a>(x: &'a u8) /* p /* q */ r */ {}"), ["fn f<'a>(x: &'a u8)  {}"]);
    assert_eq!(code("a = \"x\ny\";\nr#fn + r"), ["a = ", "\"\";", "r#fn + r"]);
    assert_eq!(lines("x // é y\n").first().unwrap().comment, "// é y");
}

#[test]
fn attributes_are_known_over_several_lines() {
    let marks = |text| lines(text).iter().map(|line| line.attribute).collect::<Vec<_>>();
    assert_eq!(marks("#[a(\n b[0],\n)]\nfn f() {}"), [true, true, true, false]);
    assert_eq!(marks("#![a]\nlet x = [1];"), [true, false]);
}

#[test]
fn words_come_with_what_follows() {
    let found: Vec<_> = words("let x_1 = f!(y);").collect();
    assert_eq!(found[2], ("f", "!(y);"));
    assert_eq!(found.iter().map(|w| w.0).collect::<Vec<_>>(), ["let", "x_1", "f", "y"]);
}

//! The field's words: names that were this project's own, and what the field calls the same. They are not to come back, in
//! code, comments or documents.

use std::io;

use crate::none;
use crate::tree::{File, files};

/// Words that are not used, each with the usual ones. A space stands for any break between words: `way_back` and `WayBack`
/// are `way back` too.
const OURS: &[(&str, &str)] = &[
    ("way back", "backward pass"),
    ("on the way there", "in the forward pass"),
    ("dear", "expensive"),
    ("dearer", "more expensive"),
    ("dearest", "most expensive"),
    ("stretched", "broadcast"),
    ("insides", "residuals"),
    ("ladder", "frontier"),
    ("rung", "point of the frontier"),
    ("rungs", "points of the frontier"),
    ("fate", "remat decision"),
    ("fates", "remat decisions"),
    ("vanish into", "fuse into consumers"),
    ("vanishes into", "is fused into consumers"),
    ("rounds again", "recomputed iterations"),
    ("lines of the cache", "cache lines"),
];

/// The changelog speaks of what was; this file of what is not to be.
const EXEMPT: &[&str] = &["CHANGELOG.md", "xtask/tests/tidy/vocabulary.rs"];

/// The words of a line in lower case, with names taken apart.
fn parts(line: &str) -> Vec<String> {
    let mut parts: Vec<String> = Vec::new();
    let mut before = ' ';
    for c in line.chars() {
        let starts = !before.is_alphanumeric() || (before.is_lowercase() && c.is_uppercase());
        if c.is_alphanumeric() {
            match parts.last_mut().filter(|_| !starts) {
                Some(part) => part.extend(c.to_lowercase()),
                None => parts.push(c.to_lowercase().collect()),
            }
        }
        before = c;
    }
    parts
}

fn ours(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let parts = parts(line);
        for (own, usual) in OURS {
            let own: Vec<&str> = own.split(' ').collect();
            if parts.windows(own.len()).any(|some| some.iter().eq(own.iter())) {
                found.push(file.at(at + 1, &format!("`{}`: say {usual}", own.join(" "))));
            }
        }
    }
    found
}

#[test]
fn words_of_our_own_do_not_come_back() -> io::Result<()> {
    let all = files()?;
    let is_read = |file: &&File| {
        let ends = [".rs", ".py", ".pyi", ".md"];
        let is_ours = ends.iter().any(|end| file.path.ends_with(end));
        is_ours && !EXEMPT.contains(&file.path.as_str())
    };
    let read = all.iter().filter(is_read);
    none(read.flat_map(ours).collect());
    Ok(())
}

#[test]
fn words_are_found_in_names_and_prose() {
    let found = |text: &str| ours(&File::sample("a.rs", text)).len();
    for text in ["// the Way back", "fn way_back() {}", "struct WayBack;", "let rungs = 1;"] {
        assert_eq!(found(text), 1, "{text}");
    }
    for text in ["wrung", "a ladderless frontier", "always back", "`dearth`"] {
        assert_eq!(found(text), 0, "{text}");
    }
}

//! The look of a file: module docs, length, whitespace, nothing left undone.

use crate::none;
use crate::rust::{lines, words};
use crate::tree::{File, files, rust_files};

/// A file longer than this holds more than one thing.
const LONGEST: usize = 500;

/// Macros that stand for work not done, or that were meant for one debugging session. Clippy denies
/// them in code that it compiles; this also sees other targets and features.
const UNFINISHED: [&str; 3] = ["todo", "unimplemented", "dbg"];

/// Notes of work not done, put together so that this file does not hold them.
const NOTES: [&str; 2] = [concat!("TO", "DO"), concat!("FIX", "ME")];

/// Kinds of files that people write. Recorded output may hold any whitespace.
const WRITTEN: [&str; 5] = ["rs", "toml", "md", "py", "sh"];

fn is_written(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    match name.rsplit_once('.') {
        None => true,
        Some((stem, extension)) => stem.is_empty() || WRITTEN.contains(&extension),
    }
}

fn without_module_doc(file: &File) -> Option<String> {
    (!file.text.starts_with("//! "))
        .then(|| file.at(1, "no `//!` module doc on the first line (attributes go below it)"))
}

fn too_long(file: &File) -> Option<String> {
    let count = file.text.lines().count();
    (count > LONGEST).then(|| file.at(count, &format!("{count} lines, at most {LONGEST}")))
}

fn stray_whitespace(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        if line.contains('\t') {
            found.push(file.at(number, "a tab"));
        }
        if line.ends_with([' ', '\t', '\r']) {
            found.push(file.at(number, "whitespace at the end"));
        }
    }
    found
}

fn unfinished_macros(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(lines(&file.text)) {
        for (word, after) in words(&line.code) {
            if UNFINISHED.contains(&word) && after.trim_start().starts_with('!') {
                found.push(file.at(number, &format!("`{word}!`")));
            }
        }
    }
    found
}

fn notes(file: &File) -> Vec<String> {
    let mut found = Vec::new();
    for (number, line) in (1..).zip(file.text.lines()) {
        let notes = words(line).filter(|(word, _)| NOTES.contains(word));
        found.extend(
            notes.map(|(word, _)| file.at(number, &format!("a {word}: do it, or drop it"))),
        );
    }
    found
}

/// Libraries whose manifests say `test = false`: a test inside of them would never run.
const WITHOUT_TESTS: [&str; 2] = ["crates/cpu/src/", "crates/simd/src/"];

/// A long test chooses its length at run time; one that is switched off proves nothing and rots.
fn switched_off_tests(file: &File) -> Vec<String> {
    let has = |code: &str, wanted: &str| words(code).any(|(word, _)| word == wanted);
    let never_runs = WITHOUT_TESTS.iter().any(|library| file.path.starts_with(library));
    let off = |code: &str| has(code, "ignore") || never_runs && has(code, "test");
    let lines = (1..).zip(lines(&file.text));
    let lines = lines.filter(|(_, line)| line.attribute && off(&line.code));
    lines.map(|(number, _)| file.at(number, "a test that is switched off")).collect()
}

#[test]
fn every_rust_file_opens_with_its_module_doc() {
    none(rust_files().unwrap().iter().filter_map(without_module_doc).collect());
}

#[test]
fn a_file_without_module_doc_is_found() {
    let missing = |text| without_module_doc(&File::sample("a.rs", text)).is_some();
    assert!(missing("use std::fmt;\n"));
    assert!(missing(""));
    assert!(!missing("//! What it is.\n"));
}

#[test]
fn no_rust_file_is_too_long() {
    none(rust_files().unwrap().iter().filter_map(too_long).collect());
}

#[test]
fn a_file_over_the_limit_is_found() {
    let long = |count| too_long(&File::sample("a.rs", &"x\n".repeat(count))).is_some();
    assert!(long(LONGEST + 1));
    assert!(!long(LONGEST));
}

#[test]
fn no_written_file_has_tabs_or_trailing_whitespace() {
    let files = files().unwrap();
    none(files.iter().filter(|f| is_written(&f.path)).flat_map(stray_whitespace).collect());
}

#[test]
fn stray_whitespace_is_found_in_files_that_people_write() {
    let found = stray_whitespace(&File::sample("a.rs", "ok\n\tx\ny \n"));
    assert_eq!(found, ["a.rs:2: a tab", "a.rs:3: whitespace at the end"]);
    assert!([".ci/run", ".gitignore", "a/b.rs"].iter().all(|path| is_written(path)));
    assert!(!is_written("a/recorded.snap"));
}

#[test]
fn no_macro_stands_for_missing_work() {
    none(rust_files().unwrap().iter().flat_map(unfinished_macros).collect());
}

#[test]
fn macros_that_stand_for_missing_work_are_found() {
    for name in UNFINISHED {
        let text = format!("{name}();\n// {name}!()\n{name}!();\n");
        let found = unfinished_macros(&File::sample("a.rs", &text));
        assert_eq!(found, [format!("a.rs:3: `{name}!`")]);
    }
}

#[test]
fn no_written_file_holds_a_note_of_missing_work() {
    none(files().unwrap().iter().filter(|f| is_written(&f.path)).flat_map(notes).collect());
}

#[test]
fn notes_of_missing_work_are_found() {
    for note in NOTES {
        let text = format!("// {}\n// {note}: later\n// {note}S\n", note.to_lowercase());
        assert_eq!(notes(&File::sample("a.rs", &text)).len(), 1);
    }
}

#[test]
fn no_test_is_switched_off() {
    none(rust_files().unwrap().iter().flat_map(switched_off_tests).collect());
}

#[test]
fn a_test_that_is_switched_off_is_found() {
    let off = concat!("#[ign", "ore = \"slow\"]");
    let text = format!("#[test]\n{off}\nfn f() {{ ignore() }}\n");
    assert_eq!(
        switched_off_tests(&File::sample("a.rs", &text)),
        ["a.rs:2: a test that is switched off"]
    );
    let inside = File::sample("crates/cpu/src/a.rs", "#[cfg(test)]\nmod tests {}\n");
    assert_eq!(switched_off_tests(&inside).len(), 1);
}

//! The documents: every invariant of ARCHITECTURE.md names a test that exists, CHANGELOG.md has
//! a place for what comes next, and every page of the guide is run.
//!
//! An invariant is a row of a table: `| I7 | what always holds | its tests in backticks |`.

use std::collections::BTreeSet;

use crate::none;
use crate::rust::{lines, words};
use crate::tree::{File, files};

/// The names of the functions marked as tests in a Rust file.
fn tests_of(file: &File) -> Vec<String> {
    let mut names = Vec::new();
    let mut marked = false;
    for line in lines(&file.text) {
        marked |= line.code.contains("#[test]");
        let mut words = words(&line.code).map(|(word, _)| word);
        if words.any(|word| word == "fn") {
            names.extend(words.next().filter(|_| marked).map(String::from));
            marked = false;
        }
    }
    names
}

/// A row `| I7 | ... | ... |`: the 7, and the names in backticks in its last cell, without their module paths.
fn invariant(line: &str) -> Option<(u32, Vec<&str>)> {
    let (number, rest) = line.strip_prefix("| I")?.split_once(" |")?;
    let last = rest.trim_end().strip_suffix('|')?.rsplit(" |").next()?;
    let quoted = last.split('`').skip(1).step_by(2);
    let names = quoted.map(|name| name.rsplit("::").next().unwrap_or(name)).collect();
    Some((number.parse().ok()?, names))
}

fn broken_promises(file: &File, tests: &BTreeSet<String>) -> Vec<String> {
    let mut seen = BTreeSet::new();
    let mut found = Vec::new();
    for (at, line) in file.text.lines().enumerate() {
        let Some((number, names)) = invariant(line) else { continue };
        if !seen.insert(number) {
            found.push(file.at(at + 1, &format!("I{number} is there twice")));
        }
        if names.is_empty() {
            found.push(file.at(at + 1, &format!("I{number} names no test")));
        }
        for name in names.into_iter().filter(|name| !tests.contains(*name)) {
            found.push(file.at(at + 1, &format!("I{number}: there is no test `{name}`")));
        }
    }
    if seen.is_empty() {
        found.push(file.at(1, "no invariant was found: they start with `| I1 |`"));
    }
    found
}

fn has_unreleased(changelog: &str) -> bool {
    changelog.lines().any(|line| line.trim_end() == "## [Unreleased]")
}

#[test]
fn every_invariant_names_a_test_that_exists() {
    let files = files().unwrap();
    let tests = files.iter().filter(|file| file.is_rust()).flat_map(tests_of).collect();
    let page = files.iter().find(|file| file.path == "ARCHITECTURE.md");
    none(broken_promises(page.expect("ARCHITECTURE.md is missing"), &tests));
}

#[test]
fn an_invariant_without_its_test_is_found() {
    let check = |text| broken_promises(&File::sample("A.md", text), &BTreeSet::from(["a".into()]));
    assert!(check("| I1 | So `b`. | `a` |\n| I2 | Too. | `m::a`, `a` |").is_empty());
    assert_eq!(check("| I1 | So. | `b` |"), ["A.md:1: I1: there is no test `b`"]);
    assert_eq!(check("| I1 | So `a`. | |\n| I2 | | `a` |"), ["A.md:1: I1 names no test"]);
    assert_eq!(check("| I1 | | `a` |\n| I1 | | `a` |"), ["A.md:2: I1 is there twice"]);
    assert_eq!(check("Nothing.").len(), 1);
}

#[test]
fn only_functions_marked_as_tests_count() {
    let text =
        "#[test]\n#[cfg(unix)]\nfn a() {}\nfn b() {}\n// #[test]\nfn c() {}\n#[test] fn d() {}";
    assert_eq!(tests_of(&File::sample("a.rs", text)), ["a", "d"]);
}

#[test]
fn the_changelog_has_an_unreleased_section() {
    let files = files().unwrap();
    let changelog = files.iter().find(|file| file.path == "CHANGELOG.md");
    let text = &changelog.expect("CHANGELOG.md is missing").text;
    assert!(has_unreleased(text), "CHANGELOG.md: no `## [Unreleased]` section");
    assert!(!has_unreleased("## [1.0.0]\n"));
}

/// The file that lists the pages whose Rust programs run.
const PAGES: &str = "crates/tonnage/src/guide.rs";

fn pages_that_are_not_run(files: &[File]) -> Vec<String> {
    let list = files.iter().find(|file| file.path == PAGES).map_or("", |file| &file.text);
    let is_page = |file: &&File| {
        let name = file.path.strip_prefix("docs/").and_then(|name| name.strip_suffix(".md"));
        // Folders below hold pages without programs.
        name.is_some_and(|name| !name.contains('/'))
    };
    let missing = files.iter().filter(is_page).filter(|file| !list.contains(&file.path));
    missing.map(|file| file.at(1, &format!("not listed in {PAGES}"))).collect()
}

#[test]
fn every_page_of_the_guide_is_run() {
    none(pages_that_are_not_run(&files().unwrap()));
    let page = |path| File::sample(path, "");
    let list = File::sample(PAGES, "\"docs/a.md\"");
    let found = pages_that_are_not_run(&[page("docs/a.md"), page("docs/b.md"), list]);
    assert_eq!(found, [format!("docs/b.md:1: not listed in {PAGES}")]);
}

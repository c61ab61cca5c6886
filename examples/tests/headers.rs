//! Every example runs, and prints what its header says: the indented lines at its end. `...` in them stands for anything, such as a time
//! or what depends on the machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests fail by panicking")]

use std::path::{Path, PathBuf};
use std::process::Command;

fn programs() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let is_program = |path: &PathBuf| {
        path.extension().is_some_and(|end| end == "rs")
            && path.file_stem().is_some_and(|stem| stem != "main")
    };
    files.filter(is_program).collect()
}

/// What a header says that its program prints.
fn told(source: &str) -> Vec<String> {
    let header = source.lines().map_while(|line| line.strip_prefix("//!"));
    header
        .filter_map(|line| line.strip_prefix("     "))
        .map(|line| line.trim_end().to_string())
        .collect()
}

/// Whether a text begins and ends as the parts between dots say, with the others in their order between.
fn fits(told: &str, printed: &str) -> bool {
    // Of four dots the last three: the first is printed.
    let marked = told.replace("....", ".\0").replace("...", "\0");
    let mut parts = marked.split('\0');
    let Some(mut rest) = printed.strip_prefix(parts.next().unwrap_or("")) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

#[test]
fn every_example_prints_what_its_header_says() {
    let found = programs();
    assert!(found.len() >= 12, "{found:?}");
    for path in found {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let told = told(&std::fs::read_to_string(&path).unwrap()).join("\n");
        assert!(!told.is_empty(), "{name}: the header ends with what it prints, indented");
        let made = Command::new(env!("CARGO_BIN_EXE_tonnage-examples"))
            .arg(&name)
            .env("TONNAGE_THREADS", "2")
            .current_dir(env!("CARGO_TARGET_TMPDIR"))
            .output()
            .unwrap();
        assert!(made.status.success(), "{name}: {}", String::from_utf8_lossy(&made.stderr));
        let printed = String::from_utf8_lossy(&made.stdout);
        let printed: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
        let printed = printed.join("\n");
        assert!(fits(&told, &printed), "{name} prints\n{printed}\n\nbut its header says\n{told}");
    }
}

#[test]
fn what_a_header_says_is_compared() {
    assert!(fits("a\nb", "a\nb") && !fits("a", "a\nb") && !fits("a\nb", "a"));
    assert!(fits("a 0.... b", "a 0.5 b") && !fits("a 0.... b", "a 05 b"));
    assert!(fits("a ... b ... c", "a 1 b 2 c") && !fits("a ... b ... c", "a 1 c 2 b"));
    assert_eq!(told("//! x\n//!\n//!     y  \n\nfn main() {}\n//!     z"), ["y"]);
}

#[test]
fn a_name_that_is_none_is_told_the_others() {
    let made =
        Command::new(env!("CARGO_BIN_EXE_tonnage-examples")).arg("no_such").output().unwrap();
    assert_eq!(made.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&made.stderr).contains("image_classifier"));
}

//! Tests that look at the ledger take turns: it is one for the process, and a test that does not wait
//! would be counted into another's figures, once in a hundred runs.

use std::collections::HashSet;

use crate::none;
use crate::rust::{lines, words};
use crate::tree::{File, rust_files};

/// The call that waits for one's turn.
const TURN: &str = "alone";

/// A function that begins at the left edge.
struct Function {
    line: usize,
    name: String,
    is_test: bool,
    /// Every word that it calls.
    calls: HashSet<String>,
}

fn functions(text: &str) -> Vec<Function> {
    let mut found: Vec<Function> = Vec::new();
    let mut is_test = false;
    for (number, line) in (1..).zip(lines(text)) {
        is_test |= line.code.trim() == "#[test]";
        let all: Vec<_> = words(&line.code).collect();
        let name = all.iter().skip_while(|(word, _)| *word != "fn").nth(1);
        if let (Some((name, _)), false) = (name, line.code.starts_with(' ')) {
            let name = (*name).to_owned();
            found.push(Function { line: number, name, is_test, calls: HashSet::new() });
            is_test = false;
        } else if let Some(function) = found.last_mut() {
            // The turn itself takes nothing; another function of that name may.
            let called = all
                .iter()
                .filter(|(w, after)| after.starts_with(if *w == TURN { "()" } else { "(" }));
            function.calls.extend(called.map(|(word, _)| (*word).to_owned()));
        }
    }
    found
}

/// In a file where some test takes its turn: the tests that do not, by themselves or by what they call.
fn out_of_turn(file: &File) -> Vec<String> {
    let functions = functions(&file.text);
    let mut waits = HashSet::from([TURN.to_owned()]);
    let mut before = 0;
    while waits.len() > before {
        before = waits.len();
        for function in &functions {
            if !function.calls.is_disjoint(&waits) {
                waits.insert(function.name.clone());
            }
        }
    }
    let tests = functions.iter().filter(|f| f.is_test && !waits.contains(&f.name));
    match waits.len() {
        1 => Vec::new(),
        _ => tests.map(|f| file.at(f.line, &format!("no `{TURN}()` in {}", f.name))).collect(),
    }
}

#[test]
fn tests_of_a_file_that_looks_at_the_ledger_take_turns() {
    none(rust_files().unwrap().iter().flat_map(out_of_turn).collect());
}

#[test]
fn a_test_out_of_turn_is_found() {
    let text = "#[test]\nfn first() {\n    let _turn = alone();\n}\n\n\
                fn helper() {\n    let _turn = alone();\n}\n\n\
                #[test]\nfn second() {\n    helper();\n}\n\n\
                #[test]\n#[should_panic]\nfn third() {\n    other(alone);\n}\n";
    assert_eq!(out_of_turn(&File::sample("a.rs", text)), ["a.rs:17: no `alone()` in third"]);
    let without = text.replace("alone()", "nothing()");
    assert!(out_of_turn(&File::sample("a.rs", &without)).is_empty());
}

//! Habits as tests: the house style and the written promises, checked over the whole tree.
//!
//! A check is a plain function from text to offenders, each `file:line: what`. Every check has two
//! tests: one runs it over the tree and lists every offender at once, one shows on samples that it
//! can fail.

mod arrows;
mod decisions;
mod definitions;
mod documents;
mod paths;
mod process_state;
mod rust;
mod selections;
mod style;
mod tree;
mod unsafe_code;
mod vocabulary;

/// Fails with the whole list, so that one run shows all there is to mend.
#[track_caller]
fn none(offenders: Vec<String>) {
    assert!(offenders.is_empty(), "{} to mend:\n{}", offenders.len(), offenders.join("\n"));
}

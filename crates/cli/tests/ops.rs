//! `tonnage ops`: every op is on the page, with its dtypes.

#![allow(clippy::expect_used, clippy::panic, reason = "helpers of tests fail by panicking")]

use std::process::{Command, Output};

fn ops(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tonnage")).arg("ops").args(args).output().expect("it runs")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("text")
}

#[test]
fn every_op_is_on_the_page_with_its_dtypes() {
    let page = text(&ops(&[]).stdout);
    for op in tonnage_ops::TABLE {
        let line = page.lines().find(|line| line.starts_with(&format!("{}(", op.name)));
        let line = line.unwrap_or_else(|| panic!("{} is missing", op.name));
        assert!(line.contains(op.doc), "{line}");
    }
    let line = |name: &str| page.lines().find(|line| line.starts_with(name)).expect("a line");
    assert!(line("matmul(").starts_with("matmul(number, number) -> number"), "{}", line("matmul("));
    assert!(line("svd(").starts_with("svd(f64 or f32) -> f64 or f32"), "{}", line("svd("));
    assert!(line("is_nan(").starts_with("is_nan(float) -> bool"), "{}", line("is_nan("));
    assert!(line("matmul(").contains("  fresh  "), "{}", line("matmul("));
    assert!(line("relu(").contains("  fresh, or in place  "), "{}", line("relu("));
    assert!(line("transpose(").contains("  none: a view  "), "{}", line("transpose("));
    assert!(line("argmax(").contains("integer") || line("argmax(").contains("number"));
}

#[test]
fn one_op_is_told_in_full_and_an_unknown_one_is_refused() {
    let one = text(&ops(&["argsort"]).stdout);
    assert!(one.contains("gradient: none; "), "{one}");
    let unknown = ops(&["sof"]);
    assert_eq!(unknown.status.code(), Some(2));
    assert!(text(&unknown.stderr).contains("softmax"), "{}", text(&unknown.stderr));
}

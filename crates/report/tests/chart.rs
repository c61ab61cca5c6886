//! The chart fits its columns, shows every step's bytes, and marks the peak and the budget.

#![allow(clippy::unwrap_used, reason = "helpers of tests stand outside of test functions")]

mod common;

use tonnage_core::Bytes;
use tonnage_report::{Along, Picture, Point};

fn picture(curve: &[u64]) -> Picture {
    let points = curve.iter().enumerate().map(|(at, bytes)| Point { at: at as u64, bytes: *bytes });
    let (at, most) = curve.iter().enumerate().rev().max_by_key(|(_, bytes)| **bytes).unwrap();
    Picture {
        title: "test".into(),
        along: Along::Steps,
        length: curve.len() as u64,
        peak: Point { at: at as u64, bytes: *most },
        owners: Vec::new(),
        bars: Vec::new(),
        curve: points.collect(),
        ticks: Vec::new(),
        lost: 0,
    }
}

#[test]
fn each_step_is_a_column_as_high_as_it_holds() {
    let text = picture(&[0, 1024, 2048, 4096, 4096, 2048, 512, 0]).chart(20, 4, None, false);
    let expected = [
        "  4.00 KiB ┤   ██",
        "           ┤   ██",
        "  2.00 KiB ┤  ████",
        "           ┤ █████▄",
        "           └────────",
        "               ▲",
        "peak 4.00 KiB at step 3 of 8",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_budget_is_a_line_of_its_own_above_or_below_the_peak() {
    let above = picture(&[1024; 8]).chart(20, 4, Some(Bytes::new(4096)), false);
    assert!(above.starts_with("  4.00 KiB ┤┄┄┄┄┄┄┄┄\n"), "{above}");
    assert!(above.contains("           ┤████████\n"), "{above}");
    let below =
        picture(&[4096, 1024, 0, 0, 0, 0, 0, 0]).chart(20, 4, Some(Bytes::new(2048)), false);
    assert!(below.contains("  2.00 KiB ┤█┄┄┄┄┄┄┄\n"), "{below}");
    assert!(below.ends_with("at step 0 of 8, budget 2.00 KiB\n"), "{below}");
}

#[test]
fn no_peak_is_lost_between_columns_and_no_line_is_too_long() {
    // One step of ten thousand holds something.
    for at in [0, 1, 4_999, 7_777, 9_999] {
        let mut curve = vec![0; 10_000];
        curve[at] = 1 << 30;
        for columns in [60, 80, 120] {
            let text = picture(&curve).chart(columns, 10, Some(Bytes::mib(1500)), false);
            assert!(text.contains('█'), "step {at} in {columns} columns\n{text}");
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
        }
    }
}

#[test]
fn colours_are_added_and_nothing_else_changes() {
    let picture = picture(&[1, 5, 3]);
    let (plain, coloured) = (picture.chart(40, 5, None, false), picture.chart(40, 5, None, true));
    assert!(coloured.contains("\x1b[31m"));
    let mut stripped = coloured;
    for code in ["\x1b[31m", "\x1b[36m", "\x1b[33m", "\x1b[0m"] {
        stripped = stripped.replace(code, "");
    }
    assert_eq!(stripped, plain);
}

#[test]
fn a_plan_s_chart_tells_the_plan_s_peak() {
    let plan = common::planned();
    let text = Picture::of_plan("plan", &plan).chart(80, 10, None, false);
    let told = format!("peak {} at step {} of {}", plan.peak(), plan.peak_step(), plan.steps.len());
    assert!(text.contains(&told), "{text}");
}

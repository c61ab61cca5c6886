//! A list of steps, run in order up to the first failure.
//!
//! The last line always counts them, so that a reader of a long log needs that line alone. A step
//! that can't run here is skipped aloud: it is neither passed nor failed, and its reason is printed
//! again above the last line.

use std::io::{self, Write};
use std::time::Instant;

/// One thing to check.
pub struct CheckStep {
    /// What the header calls it.
    pub name: &'static str,
    /// Checks it.
    pub run: fn() -> StepOutcome,
}

/// How a step ended.
pub enum StepOutcome {
    /// It holds.
    Passed,
    /// It could not be checked here, and why.
    Skipped(String),
    /// It does not hold, and what said so.
    Failed(String),
}

/// Runs the steps and writes headers, durations and the count; `true` where none failed.
pub fn run(steps: &[CheckStep], out: &mut dyn Write) -> io::Result<bool> {
    let mut passed = 0;
    let mut skipped = Vec::new();
    for (number, step) in (1..).zip(steps) {
        writeln!(out, "== {number}/{}: {}", steps.len(), step.name)?;
        let start = Instant::now();
        let outcome = (step.run)();
        let seconds = start.elapsed().as_secs_f64();
        match outcome {
            StepOutcome::Passed => {
                passed += 1;
                writeln!(out, "-- {} passed in {seconds:.1} s", step.name)?;
            }
            StepOutcome::Skipped(reason) => {
                let line = format!("SKIPPED: {}: {reason}", step.name);
                writeln!(out, "{line} ({seconds:.1} s)")?;
                skipped.push(line);
            }
            StepOutcome::Failed(reason) => {
                writeln!(out, "-- {} FAILED in {seconds:.1} s", step.name)?;
                writeln!(out, "steps: {passed} passed, 1 failed: {}: {reason}", step.name)?;
                return Ok(false);
            }
        }
    }
    for line in skipped {
        writeln!(out, "{line}")?;
    }
    writeln!(out, "steps: {passed} passed, 0 failed")?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSES: CheckStep = CheckStep { name: "good", run: || StepOutcome::Passed };
    const SKIPS: CheckStep =
        CheckStep { name: "absent", run: || StepOutcome::Skipped("no tool".into()) };
    const FAILS: CheckStep =
        CheckStep { name: "bad", run: || StepOutcome::Failed("exit status: 101".into()) };

    /// Whether all went well, and the lines without the ones that hold a duration.
    fn check(steps: &[CheckStep]) -> (bool, Vec<String>) {
        let mut out = Vec::new();
        let good = run(steps, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        let timed = |line: &&str| line.starts_with("-- ") || line.ends_with(" s)");
        (good, text.lines().filter(|line| !timed(line)).map(String::from).collect())
    }

    #[test]
    fn the_last_line_counts_the_steps_that_passed() {
        let (good, lines) = check(&[PASSES, PASSES]);
        assert!(good);
        assert_eq!(lines, ["== 1/2: good", "== 2/2: good", "steps: 2 passed, 0 failed"]);
    }

    #[test]
    fn a_skipped_step_is_named_again_and_not_counted() {
        let (good, lines) = check(&[SKIPS, PASSES]);
        assert!(good);
        assert_eq!(
            lines[2..],
            ["SKIPPED: absent: no tool", "steps: 1 passed, 0 failed"].map(String::from)
        );
    }

    #[test]
    fn nothing_runs_after_the_first_failure() {
        let (good, lines) = check(&[PASSES, FAILS, PASSES]);
        assert!(!good);
        assert_eq!(
            lines[1..],
            ["== 2/3: bad", "steps: 1 passed, 1 failed: bad: exit status: 101"].map(String::from)
        );
    }
}

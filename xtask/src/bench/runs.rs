//! Processes, and the lines of a name and a number that they print.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

/// What one process measured: seconds and bytes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProcessFigures {
    pub first: f64,
    pub step: f64,
    /// What all threads ran in a step, added up; none where the system does not say.
    pub cpu: f64,
    pub peak: u64,
    /// Parameters, optimizer state and inputs; ours alone say it.
    pub state: u64,
    pub flops: f64,
    pub bytes: f64,
}

/// A peer's figures.
pub struct PeerFigures {
    pub peer: &'static str,
    pub mode: String,
    pub figures: ProcessFigures,
}

/// What a program printed.
pub fn lines(program: &Path, words: &[&str]) -> Result<String, String> {
    let output = Command::new(program).args(words).output();
    let output = output.map_err(|error| format!("{}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    // The last line of a traceback is what went wrong.
    let last = said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
    Err(format!("{}: {last}", output.status))
}

/// Numbers by name.
pub fn named(text: &str) -> HashMap<String, f64> {
    let line = |line: &str| {
        let (name, value) = line.split_once(' ')?;
        Some((name.to_string(), value.trim().parse().ok()?))
    };
    text.lines().filter_map(line).collect()
}

/// The figures of one process.
pub fn figures(text: &str) -> Result<ProcessFigures, String> {
    let of = named(text);
    let get = |name: &str| of.get(name).copied();
    let (Some(first), Some(step), Some(peak)) = (get("first"), get("step"), get("peak")) else {
        return Err(format!("no figures in what was printed:\n{text}"));
    };
    let or_none = |name: &str| get(name).unwrap_or(0.0);
    Ok(ProcessFigures {
        first,
        step,
        cpu: or_none("cpu"),
        peak: peak as u64,
        state: or_none("state") as u64,
        flops: or_none("flops"),
        bytes: or_none("bytes"),
    })
}

/// The least of several processes, each figure by itself: what disturbs only ever adds.
pub fn best(all: &[ProcessFigures]) -> Option<ProcessFigures> {
    let least = |a: ProcessFigures, b: ProcessFigures| ProcessFigures {
        first: a.first.min(b.first),
        step: a.step.min(b.step),
        cpu: a.cpu.min(b.cpu),
        peak: a.peak.min(b.peak),
        ..a
    };
    all.iter().copied().reduce(least)
}

#[cfg(test)]
mod tests {
    use super::{best, figures};

    #[test]
    fn figures_are_read_and_the_least_of_each_counts() {
        let a = figures("first 2e-1\nstep 1e-3\npeak 100\nstate 7\nsaid aside\n").unwrap();
        let b = figures("first 1e-1\nstep 2e-3\npeak 90\n").unwrap();
        let least = best(&[a, b]).unwrap();
        assert_eq!((least.first, least.step, least.peak, least.state), (0.1, 1e-3, 90, 7));
        assert!(figures("first 1\n").is_err());
        assert!(best(&[]).is_none());
    }
}

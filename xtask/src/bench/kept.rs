//! Results that are kept: a file of JSON for each commit, in the folder for what is built.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::json::Json;
use super::machine::Machine;
use super::runs::ProcessFigures;
use crate::cargo::{root, target};

/// One program's figures of one workload, and the machine as it was then.
#[derive(Debug, Clone, PartialEq)]
pub struct KeptRow {
    pub workload: String,
    /// `Tonnage`, or a peer and its mode.
    pub program: String,
    pub figures: ProcessFigures,
    pub machine: Machine,
}

impl KeptRow {
    fn json(&self) -> Json {
        let (figures, machine) = (&self.figures, &self.machine);
        let text = |name: &str, value: &str| (name.to_string(), Json::Text(value.to_string()));
        let number = |name: &str, value: f64| (name.to_string(), Json::Number(value));
        Json::Object(vec![
            text("workload", &self.workload),
            text("program", &self.program),
            number("step", figures.step),
            number("cpu", figures.cpu),
            number("first", figures.first),
            number("peak", figures.peak as f64),
            number("state", figures.state as f64),
            number("flops", figures.flops),
            number("bytes", figures.bytes),
            text("processor", &machine.processor),
            number("cores", machine.cores),
            number("load", machine.load),
            number("flops_at_best", machine.flops),
            number("bytes_at_best", machine.bytes),
        ])
    }

    fn of(json: &Json) -> Option<KeptRow> {
        let (text, number) = (|name| Some(json.text(name)?.to_string()), |name| json.number(name));
        Some(KeptRow {
            workload: text("workload")?,
            program: text("program")?,
            figures: ProcessFigures {
                first: number("first")?,
                step: number("step")?,
                cpu: number("cpu")?,
                peak: number("peak")? as u64,
                state: number("state")? as u64,
                flops: number("flops")?,
                bytes: number("bytes")?,
            },
            machine: Machine {
                processor: text("processor")?,
                cores: number("cores")?,
                load: number("load")?,
                flops: number("flops_at_best")?,
                bytes: number("bytes_at_best")?,
            },
        })
    }
}

/// The rows of a file.
pub fn read(path: &Path) -> Result<Vec<KeptRow>, String> {
    let wrong = |why: String| format!("{}: {why}", path.display());
    let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
    let all = Json::parse(&text).map_err(wrong)?;
    let Json::List(all) = all else { return Err(wrong("not a list of results".into())) };
    let rows = all.iter().map(KeptRow::of).collect::<Option<Vec<_>>>();
    rows.ok_or_else(|| wrong("a result lacks a figure".into()))
}

/// Puts rows into a file, in the place of those of the same workload and program.
pub fn keep(path: &Path, rows: &[KeptRow]) -> Result<(), String> {
    let mut all = if path.exists() { read(path)? } else { Vec::new() };
    let is_new = |old: &KeptRow| {
        rows.iter().any(|row| (&row.workload, &row.program) == (&old.workload, &old.program))
    };
    all.retain(|old| !is_new(old));
    all.extend_from_slice(rows);
    let text = format!("{}\n", Json::List(all.iter().map(KeptRow::json).collect()));
    let written = path.parent().map_or(Ok(()), fs::create_dir_all);
    let written = written.and_then(|()| fs::write(path, text));
    written.map_err(|error| format!("{}: {error}", path.display()))
}

/// The file of the commit that is checked out; of one that was changed since, another.
pub fn path_of_now() -> Result<PathBuf, String> {
    let commit = git(&["rev-parse", "--short=10", "HEAD"])?;
    let changed = if git(&["status", "--porcelain"])?.is_empty() { "" } else { "-changed" };
    Ok(path_of(&format!("{commit}{changed}")))
}

/// The file of a commit by any name that git knows, of `COMMIT-changed`, or a file itself.
pub fn find(name: &str) -> Result<PathBuf, String> {
    let file = PathBuf::from(name);
    if file.is_file() {
        return Ok(file);
    }
    let (commit, changed) = match name.strip_suffix("-changed") {
        Some(commit) => (commit, "-changed"),
        None => (name, ""),
    };
    let commit = git(&["rev-parse", "--short=10", "--verify", &format!("{commit}^{{commit}}")])
        .map_err(|_| format!("`{name}` is neither a commit nor a file"))?;
    let path = path_of(&format!("{commit}{changed}"));
    match path.is_file() {
        true => Ok(path),
        false => Err(format!(
            "nothing is kept of `{name}`: check it out and run `cargo xtask bench`, which writes {}",
            path.display()
        )),
    }
}

fn path_of(name: &str) -> PathBuf {
    target().join("bench").join(format!("{name}.json"))
}

fn git(words: &[&str]) -> Result<String, String> {
    let output = Command::new("git").args(words).current_dir(root()).output();
    let output = output.map_err(|error| format!("git: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim().to_string()),
        false => Err(format!("git: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(workload: &str, step: f64) -> KeptRow {
        KeptRow {
            workload: workload.into(),
            program: "Tonnage".into(),
            figures: ProcessFigures {
                first: 1.0,
                step,
                cpu: 2e-7,
                peak: 1 << 40,
                state: 3,
                flops: 4e12,
                bytes: 0.0,
            },
            machine: Machine {
                processor: "a \"fast\" one".into(),
                cores: 2.0,
                load: 0.5,
                flops: 1e11,
                bytes: 2e10,
            },
        }
    }

    #[test]
    fn rows_are_read_as_they_were_kept_and_replace_those_of_the_same_workload() {
        let path = std::env::temp_dir().join(format!("tonnage-kept-{}.json", std::process::id()));
        keep(&path, &[row("mlp", 1.0), row("cnn", 2.0)]).unwrap();
        keep(&path, &[row("mlp", 3.0)]).unwrap();
        let kept = read(&path);
        fs::remove_file(&path).unwrap();
        assert_eq!(kept.unwrap(), [row("cnn", 2.0), row("mlp", 3.0)]);
    }
}

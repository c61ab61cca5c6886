//! One workload of `cargo xtask bench` in a process of its own, printed as lines of a name and a number.
//!
//!     tonnage-bench list
//!     tonnage-bench limits
//!     tonnage-bench bytes
//!     mpirun -n 2 tonnage-bench ranks sharding|sums|steps
//!     tonnage-bench run mlp [batch=2048 ...] [budget=64MiB] [seconds=2] [device=cuda:0]
//!     tonnage-bench plan mlp [batch=2048 ...] [budget=64MiB] [device=cuda:0]
//!     tonnage-bench steps mlp [batch=2048 ...] [budget=64MiB] [device=cuda:0]
//!
//! `peers/` has the same workloads for the peers, with the same arguments and the same lines.

mod bytes;
mod limits;
mod measure;
mod ranks;
mod sizes;
mod steps;
mod workloads;

use std::process::ExitCode;

use measure::{PreparedWorkload, Settings};
use sizes::WorkloadSizes;
use tonnage::{Result, device};
use workloads::{ALL, Workload};

/// Parts of a step that `steps` shows.
const SHOWN: usize = 60;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        ["list"] => {
            ALL.iter().for_each(|workload| println!("{}", described(workload)));
            Ok(())
        }
        ["limits"] => limits::print(),
        ["bytes"] => bytes::print(),
        ["ranks", what] => match ranks::ALL.iter().find(|(name, _)| name == what) {
            Some((_, of)) => ranks::print(*of),
            None => return misuse("say ranks sharding, ranks sums or ranks steps"),
        },
        [what @ ("run" | "plan" | "steps"), name, rest @ ..] => {
            match ALL.iter().find(|workload| workload.name == *name) {
                Some(workload) => match settings(workload, rest) {
                    Ok((sizes, settings)) if *what == "run" => run(workload, &sizes, &settings),
                    Ok((sizes, settings)) => {
                        let _scope = match device::scope(&settings.device) {
                            Ok(scope) => scope,
                            Err(error) => return misuse(&error.to_string()),
                        };
                        let job = (workload.make)(&sizes, settings.budget.as_deref());
                        job.and_then(|mut job| match *what {
                            "plan" => plan(workload, &job),
                            _ => steps::print(&mut job, &settings.device, SHOWN),
                        })
                    }
                    Err(mistake) => return misuse(&mistake),
                },
                None => return misuse(&format!("there is no workload `{name}`")),
            }
        }
        _ => return misuse("say list, limits, bytes, ranks, or run, plan or steps and a workload"),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn misuse(what: &str) -> ExitCode {
    eprintln!("error: {what}");
    ExitCode::from(2)
}

/// Its name, and its dimensions with their lengths.
fn described(workload: &Workload) -> String {
    let sizes = workload.sizes.iter().map(|(name, length)| format!(" {name}={length}"));
    sizes.fold(workload.name.to_string(), |text, size| text + &size)
}

/// Lengths and settings as the command line has them.
fn settings(
    workload: &Workload,
    words: &[&str],
) -> std::result::Result<(WorkloadSizes, Settings), String> {
    let mut sizes = WorkloadSizes::of(workload.sizes);
    let mut settings = Settings { budget: None, seconds: 2.0, device: "cpu:0".to_string() };
    for word in words {
        let wrong = || {
            format!("`{word}` is not a dimension, `budget`, `seconds` or `device` with its value")
        };
        match word.split_once('=').ok_or_else(wrong)? {
            ("device", name) => settings.device = name.to_string(),
            ("budget", bytes) => settings.budget = Some(bytes.to_string()),
            ("seconds", value) => settings.seconds = value.parse().map_err(|_| wrong())?,
            (name, value) => {
                let value = value.parse().map_err(|_| wrong())?;
                sizes.set(name, value).ok_or_else(wrong)?;
            }
        }
    }
    Ok((sizes, settings))
}

fn plan(workload: &Workload, job: &PreparedWorkload) -> Result<()> {
    match &job.plan {
        Some(plan) => println!("{}", plan()?),
        None => println!("a step of {} is not planned as a whole", workload.name),
    }
    Ok(())
}

fn run(workload: &Workload, sizes: &WorkloadSizes, settings: &Settings) -> Result<()> {
    let figures = measure::measure(workload, sizes, settings)?;
    println!("first {:e}", figures.first);
    println!("step {:e}", figures.step);
    if let Some(cpu) = figures.cpu {
        println!("cpu {cpu:e}");
    }
    println!("peak {}", figures.peak);
    println!("state {}", figures.state);
    if let Some(predicted) = figures.predicted {
        println!("predicted {predicted}");
    }
    if let Some(expected) = figures.expected {
        println!("expected {expected:e}");
    }
    let limit = (workload.limit)(sizes);
    println!("flops {:e}", limit.flops);
    println!("bytes {:e}", limit.bytes);
    Ok(())
}

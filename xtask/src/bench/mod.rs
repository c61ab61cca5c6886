//! `cargo xtask bench`: our workloads and those of the peers, each run in a fresh process, in turns, and one table of them.
//!
//! `runs` starts processes and reads the lines that they print, `peers` knows where the peers are, `machine` what all that runs on,
//! `tables` prints. What was measured is `kept` as `json`, so that `compare` can put two commits side by side. The workloads
//! themselves are in `crates/bench`.

mod compare;
mod json;
mod kept;
mod machine;
mod peers;
mod runs;
mod tables;

use std::process::ExitCode;

use crate::cargo::{Cargo, target};
use crate::step::StepOutcome;
use kept::KeptRow;
use machine::Machine;
use peers::Peer;
use runs::{PeerFigures, ProcessFigures, best, figures, lines};

/// The row of this command.
pub const COMMAND: crate::Subcommand = crate::Subcommand {
    name: "bench",
    doc: "measures workloads beside the peers, or compares two commits; `bench --help` says more",
    words: "[doubled] [WORKLOAD ...]",
    run,
};

/// Turns of each process. The best median counts: what disturbs a machine only ever adds.
const TURNS: usize = 3;

/// Workloads that are also run with budgets: they save values for a gradient.
const BUDGETED: [&str; 9] = [
    "loop_grad_250",
    "loop_grad_1000",
    "loop_grad_4000",
    "mlp",
    "cnn",
    "gpt",
    "embed_sgd",
    "embed_adagrad",
    "gru",
];

/// A budget that everything fits in. Without one gradients of loops have few checkpoints; with this they take what is quickest.
const UNLIMITED: &str = "budget=1024TiB";

/// The budgets: what the fastest peer takes, divided by these.
const SHARES: [u64; 2] = [1, 2];

/// What `--help` prints.
const HELP: &str = "\
usage: cargo xtask bench [WORKLOAD ...]         workloads, or all of them, beside the peers
       cargo xtask bench doubled [WORKLOAD ...] what doubling each dimension costs
       cargo xtask bench compare A B            what was kept of two commits, side by side

Peers are those whose interpreters are named in TENSORFLOW_PYTHON, JAX_PYTHON, TORCH_PYTHON and
TONNAGE_PYTHON (our own package). Each workload runs in processes of its own, in turns; the least of
three medians counts. `tonnage-bench list` lists the workloads. What was measured is kept as
bench/COMMIT.json in the folder for what is built, with `-changed` behind the commit where files differ
from it; A and B are commits, such names, or files.";

fn run(words: &[String]) -> ExitCode {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        words if words.iter().any(|word| ["--help", "-h", "help"].contains(word)) => {
            println!("{HELP}");
            Ok(())
        }
        ["compare", a, b] => compare::compare(a, b),
        ["compare", ..] => Err(format!("say which two to compare\n\n{HELP}")),
        words => measured(words),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

/// A workload as `tonnage-bench list` has it: its name, and its dimensions with their lengths.
struct ListedWorkload {
    name: String,
    sizes: Vec<(String, u64)>,
}

fn measured(words: &[&str]) -> Result<(), String> {
    if let Some(option) = words.iter().find(|word| word.starts_with('-')) {
        return Err(format!("there is no option `{option}`\n\n{HELP}"));
    }
    if let StepOutcome::Failed(why) = Cargo::new("build --release --package tonnage-bench").run() {
        return Err(why);
    }
    let all = workloads()?;
    let doubled = words.first() == Some(&"doubled");
    let names = &words[usize::from(doubled)..];
    if let Some(name) = names.iter().find(|name| all.iter().all(|one| one.name != ***name)) {
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("there is no workload `{name}`; there are {}", known.join(", ")));
    }
    let is_chosen = |one: &&ListedWorkload| names.is_empty() || names.contains(&one.name.as_str());
    let chosen: Vec<&ListedWorkload> = all.iter().filter(is_chosen).collect();
    let machine = Machine::measured(|| ours(&["limits"]))?;
    if doubled { doubling(&chosen, &machine) } else { beside(&chosen, &machine) }
}

fn ours(words: &[&str]) -> Result<String, String> {
    let program = target().join("release").join("tonnage-bench");
    lines(&program, words)
}

fn workloads() -> Result<Vec<ListedWorkload>, String> {
    let text = ours(&["list"])?;
    let parsed = text.lines().map(|line| {
        let mut words = line.split(' ');
        let name = words.next()?.to_string();
        let size = |word: &str| {
            let (name, length) = word.split_once('=')?;
            Some((name.to_string(), length.parse().ok()?))
        };
        Some(ListedWorkload { name, sizes: words.map(size).collect::<Option<_>>()? })
    });
    parsed.collect::<Option<_>>().ok_or_else(|| format!("not a list of workloads:\n{text}"))
}

/// All workloads in turns with the peers, then those with a budget.
fn beside(chosen: &[&ListedWorkload], machine: &Machine) -> Result<(), String> {
    let (peers, path) = (peers::found(), kept::path_of_now()?);
    tables::say_peers(&peers);
    tables::head(&machine.now());
    let mut budgeted = Vec::new();
    for workload in chosen {
        let (name, machine) = (workload.name.as_str(), machine.now());
        let modes: Vec<(&Peer, &str)> =
            peers.iter().flat_map(|peer| peer.modes(name).map(move |mode| (peer, mode))).collect();
        let budgets = BUDGETED.contains(&name);
        let (mut own, mut unlimited): (Vec<ProcessFigures>, Vec<ProcessFigures>) =
            Default::default();
        let mut of_peers: Vec<Vec<ProcessFigures>> = vec![Vec::new(); modes.len()];
        for _ in 0..TURNS {
            own.push(figures(&ours(&["run", name])?)?);
            if budgets {
                unlimited.push(figures(&ours(&["run", name, UNLIMITED])?)?);
            }
            for ((peer, mode), of) in modes.iter().zip(&mut of_peers) {
                match peer.run(name, mode) {
                    Ok(one) => of.push(one),
                    Err(why) => eprintln!("{} {mode}, {name}: {why}", peer.name),
                }
            }
        }
        let own = best(&own).ok_or("nothing was measured")?;
        let ran = modes.iter().zip(&of_peers).filter_map(|((peer, mode), of)| {
            Some(PeerFigures { peer: peer.name, mode: (*mode).to_string(), figures: best(of)? })
        });
        let mut ran: Vec<PeerFigures> = ran.collect();
        ran.sort_by(|a, b| a.figures.step.total_cmp(&b.figures.step));
        let unlimited = best(&unlimited);
        tables::row(name, &own, unlimited.as_ref(), &ran, &machine);
        let row = |program: String, figures| KeptRow {
            workload: name.to_string(),
            program,
            figures,
            machine: machine.clone(),
        };
        let mut rows = vec![row("Tonnage".to_string(), own)];
        rows.extend(unlimited.map(|figures| row("Tonnage unlimited".to_string(), figures)));
        rows.extend(ran.iter().map(|one| row(format!("{} {}", one.peer, one.mode), one.figures)));
        kept::keep(&path, &rows)?;
        if let Some(first) = ran.first().filter(|_| budgets) {
            budgeted.push((name, own, first.figures));
        }
    }
    tables::imports(&peers);
    println!("kept in {}", path.display());
    if !budgeted.is_empty() {
        tables::budgets_head(&machine.now());
    }
    for (name, own, peer) in budgeted {
        for share in SHARES {
            let above = peer.peak.saturating_sub(own.state) / share;
            let budget = format!("budget={}", own.state + above);
            let runs = (0..TURNS).map(|_| figures(&ours(&["run", name, &budget])?));
            match runs.collect::<Result<Vec<_>, _>>() {
                Ok(runs) => tables::budget(name, share, above, best(&runs).as_ref(), &own, &peer),
                Err(why) => println!("{name:<15} 1/{share}: {why}"),
            }
        }
    }
    Ok(())
}

/// Each dimension of each workload doubled, beside what has to be computed and moved then.
fn doubling(chosen: &[&ListedWorkload], machine: &Machine) -> Result<(), String> {
    tables::doubled_head(&machine.now());
    for workload in chosen {
        let name = workload.name.as_str();
        let more: Vec<String> =
            workload.sizes.iter().map(|(name, length)| format!("{name}={}", 2 * length)).collect();
        let mut once: Vec<ProcessFigures> = Vec::new();
        let mut twice: Vec<Vec<ProcessFigures>> = vec![Vec::new(); more.len()];
        for _ in 0..TURNS {
            once.push(figures(&ours(&["run", name])?)?);
            for (more, twice) in more.iter().zip(&mut twice) {
                twice.push(figures(&ours(&["run", name, more])?)?);
            }
        }
        for ((dimension, _), twice) in workload.sizes.iter().zip(&twice) {
            if let (Some(once), Some(twice)) = (best(&once), best(twice)) {
                tables::doubled(name, dimension, &once, &twice);
            }
        }
    }
    Ok(())
}

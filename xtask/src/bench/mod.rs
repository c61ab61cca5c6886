//! `cargo xtask bench`: our workloads and those of the peers, each run in a fresh process, in turns, and one table of them.
//!
//! `runs` starts processes and reads the lines that they print, `peers` knows where the peers are, `tables` prints. The workloads
//! themselves are in `crates/bench`.

mod peers;
mod runs;
mod tables;

use std::process::ExitCode;

use crate::cargo::{Cargo, target};
use crate::step::StepOutcome;
use peers::Peer;
use runs::{PeerFigures, ProcessFigures, best, figures, lines};

/// The row of this command.
pub const COMMAND: crate::Subcommand = crate::Subcommand {
    name: "bench",
    doc: "measures workloads beside the peers; `doubled` measures each with its dimensions doubled",
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

fn run(words: &[String]) -> ExitCode {
    match measured(words) {
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

fn measured(words: &[String]) -> Result<(), String> {
    if let StepOutcome::Failed(why) = Cargo::new("build --release --package tonnage-bench").run() {
        return Err(why);
    }
    let all = workloads()?;
    let doubled = words.first().is_some_and(|word| word == "doubled");
    let names = &words[usize::from(doubled)..];
    if let Some(name) = names.iter().find(|name| all.iter().all(|one| one.name != **name)) {
        let known: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
        return Err(format!("there is no workload `{name}`; there are {}", known.join(", ")));
    }
    let is_chosen = |one: &&ListedWorkload| names.is_empty() || names.contains(&one.name);
    let chosen: Vec<&ListedWorkload> = all.iter().filter(is_chosen).collect();
    if doubled { doubling(&chosen) } else { beside(&chosen) }
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

/// Operations and bytes in a second: the best of the turns.
fn limits() -> Result<(f64, f64), String> {
    let all = (0..TURNS).map(|_| Ok(runs::named(&ours(&["limits"])?)));
    let all = all.collect::<Result<Vec<_>, String>>()?;
    let most =
        |name: &str| all.iter().filter_map(|of| of.get(name)).fold(0.0, |a: f64, b| a.max(*b));
    Ok((most("flops"), most("bytes")))
}

/// All workloads in turns with the peers, then those with a budget.
fn beside(chosen: &[&ListedWorkload]) -> Result<(), String> {
    let peers = peers::found();
    let (flops, bytes) = limits()?;
    println!(
        "\nlimits: {:.1} GFLOP/s in a product, {:.1} GB/s in a copy",
        flops / 1e9,
        bytes / 1e9
    );
    tables::say_peers(&peers);
    tables::head();
    let mut budgeted = Vec::new();
    for workload in chosen {
        let name = workload.name.as_str();
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
        tables::row(name, &own, best(&unlimited).as_ref(), &ran, (flops, bytes));
        if let Some(first) = ran.first().filter(|_| budgets) {
            budgeted.push((name, own, first.figures));
        }
    }
    tables::imports(&peers);
    if !budgeted.is_empty() {
        tables::budgets_head();
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
fn doubling(chosen: &[&ListedWorkload]) -> Result<(), String> {
    tables::doubled_head();
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

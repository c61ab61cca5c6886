//! What is printed: figures with their units, and the ratio to the best peer.

use super::TURNS;
use super::kept::KeptRow;
use super::machine::Machine;
use super::peers::Peer;
use super::runs::{PeerFigures, ProcessFigures};

/// Seconds, with a unit that suits them.
fn time(seconds: f64) -> String {
    let (factor, unit) = match seconds {
        s if s < 1e-6 => (1e9, "ns"),
        s if s < 1e-3 => (1e6, "us"),
        s if s < 1.0 => (1e3, "ms"),
        _ => (1.0, "s"),
    };
    format!("{:.3} {unit}", seconds * factor)
}

/// How many times `other` it is; nothing where there is no other.
fn ratio(one: f64, other: f64) -> String {
    if other > 0.0 { format!("{:.2}", one / other) } else { String::new() }
}

/// Bytes in MiB.
fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// Who is measured.
pub fn say_peers(peers: &[Peer]) {
    for Peer { name, version, .. } in peers {
        println!("beside {name} {version}");
    }
    if peers.is_empty() {
        println!(
            "no peers: name their interpreters in TENSORFLOW_PYTHON, JAX_PYTHON, TORCH_PYTHON"
        );
    }
}

/// The head of the table of workloads.
pub fn head(machine: &Machine) {
    println!(
        "\n{machine}\n{:<15} {:<24} {:>11} {:>11} {:>11} {:>10} {:>10}   {:>6} {:>6} {:>9}",
        "workload",
        "",
        "a step",
        "cpu",
        "first call",
        "peak MiB",
        "state MiB",
        "ratio",
        "of cpu",
        "of limit"
    );
}

/// A workload: ours, without a budget and with one that everything fits in, then the peers, the fastest first. The ratio is our
/// time to theirs, by the clock and by what all threads ran; threads that wait by spinning count as running.
pub fn row(
    name: &str,
    own: &ProcessFigures,
    unlimited: Option<&ProcessFigures>,
    peers: &[PeerFigures],
    machine: &Machine,
) {
    let limit = (own.flops / machine.flops).max(own.bytes / machine.bytes);
    let ours = [(name, "Tonnage", Some(own)), ("", "Tonnage unlimited", unlimited)];
    for (name, mode, figures) in ours {
        let Some(figures) = figures else { continue };
        let best = peers.first().map(|best| best.figures);
        println!(
            "{name:<15} {mode:<24} {:>11} {:>11} {:>11} {:>10} {:>10}   {:>6} {:>6} {:>9}",
            time(figures.step),
            time(figures.cpu),
            time(figures.first),
            mib(figures.peak),
            mib(figures.state),
            ratio(figures.step, best.map_or(0.0, |best| best.step)),
            ratio(figures.cpu, best.map_or(0.0, |best| best.cpu)),
            ratio(figures.step, limit),
        );
    }
    for PeerFigures { peer, mode, figures } in peers {
        println!(
            "{:<15} {:<24} {:>11} {:>11} {:>11} {:>10} {:>10}   {:>6} {:>6}",
            "",
            format!("{peer} {mode}"),
            time(figures.step),
            time(figures.cpu),
            time(figures.first),
            mib(figures.peak),
            "",
            ratio(own.step, figures.step),
            ratio(own.cpu, figures.cpu),
        );
    }
}

/// What importing takes.
pub fn imports(peers: &[Peer]) {
    for peer in peers {
        if let Some((seconds, resident)) = peer.import(TURNS) {
            println!("import {}: {}, {} MiB", peer.module, time(seconds), mib(resident as u64));
        }
    }
}

/// The head of the table of budgets.
pub fn budgets_head(machine: &Machine) {
    println!(
        "\n{machine}\nwith what the fastest peer takes on top of parameters, optimizer state and inputs, and with a part of it:\n{:<15} {:>5} {:>10} {:>10} {:>11} {:>14} {:>14}",
        "workload", "part", "MiB", "peak MiB", "a step", "to the peer", "to no budget"
    );
}

/// One of its rows.
pub fn budget(
    name: &str,
    share: u64,
    above: u64,
    ran: Option<&ProcessFigures>,
    own: &ProcessFigures,
    peer: &ProcessFigures,
) {
    let Some(ran) = ran else { return };
    println!(
        "{name:<15} {:>5} {:>10} {:>10} {:>11} {:>14.2} {:>14.2}",
        format!("1/{share}"),
        mib(above),
        mib(ran.peak.saturating_sub(own.state)),
        time(ran.step),
        ran.step / peer.step,
        ran.step / own.step,
    );
}

/// The head of the table of doubled dimensions.
pub fn doubled_head(machine: &Machine) {
    println!(
        "\n{machine}\n{:<15} {:<10} {:>11} {:>11} {:>8} {:>8} {:>8} {:>8}",
        "workload", "doubled", "once", "twice", "time", "peak", "flops", "bytes"
    );
}

/// One of its rows: how many times as much time and memory, and how many times as much there is to compute and move.
pub fn doubled(name: &str, dimension: &str, once: &ProcessFigures, twice: &ProcessFigures) {
    println!(
        "{name:<15} {dimension:<10} {:>11} {:>11} {:>8} {:>8} {:>8} {:>8}",
        time(once.step),
        time(twice.step),
        ratio(twice.step, once.step),
        ratio(twice.peak as f64, once.peak as f64),
        ratio(twice.flops, once.flops),
        ratio(twice.bytes, once.bytes),
    );
}

/// The head of the table of two commits.
pub fn compared_head() {
    println!(
        "\n{:<15} {:<24} {:>11} {:>11} {:>7} {:>7} {:>7} {:>10} {:>10} {:>7} {:>6} {:>6}",
        "workload",
        "",
        "a step, A",
        "B",
        "B / A",
        "of cpu",
        "of peak",
        "MiB, A",
        "B",
        "first",
        "load A",
        "B"
    );
}

/// One of its rows.
pub fn compared(before: &KeptRow, after: &KeptRow) {
    let (a, b) = (&before.figures, &after.figures);
    println!(
        "{:<15} {:<24} {:>11} {:>11} {:>7} {:>7} {:>7} {:>10} {:>10} {:>7} {:>6.2} {:>6.2}",
        before.workload,
        before.program,
        time(a.step),
        time(b.step),
        ratio(b.step, a.step),
        ratio(b.cpu, a.cpu),
        ratio(b.peak as f64, a.peak as f64),
        mib(a.peak),
        mib(b.peak),
        ratio(b.first, a.first),
        before.machine.load,
        after.machine.load,
    );
}

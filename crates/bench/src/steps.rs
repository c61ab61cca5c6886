//! Where the time of a planned step goes: each of its parts with its share, the bytes that it reads and writes, and the rate
//! that comes to.

use std::collections::BTreeMap;

use tonnage::{Plan, Result, memory};

use crate::measure::PreparedWorkload;

/// Calls that are recorded; the median of each part counts.
const CALLS: usize = 21;

/// Prints the parts that take longest, as many as asked for.
pub fn print(job: &mut PreparedWorkload, device: &str, most: usize) -> Result<()> {
    (job.step)()?;
    let recording = memory::record(device)?;
    for _ in 0..CALLS {
        (job.step)()?;
    }
    let timeline = recording.finish();
    let Some(plan) = timeline.plans.last() else {
        println!("it is not planned");
        return Ok(());
    };
    let calls: Vec<&[u64]> = timeline.calls.iter().map(|call| call.steps.as_slice()).collect();
    let mut parts: Vec<(usize, f64)> = (0..plan.steps.len())
        .map(|at| {
            let took =
                |ends: &&[u64]| ends[at] - at.checked_sub(1).map_or(0, |before| ends[before]);
            let mut all: Vec<u64> = calls.iter().filter(|ends| at < ends.len()).map(took).collect();
            all.sort_unstable();
            (at, all.get(all.len() / 2).map_or(0.0, |ns| *ns as f64))
        })
        .collect();
    let total: f64 = parts.iter().map(|part| part.1).sum();
    println!("{:.3} ms in {} parts", total / 1e6, parts.len());
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let told = plan.explain();
    let mut by_op: BTreeMap<&str, (usize, f64)> = BTreeMap::new();
    for (at, ns) in &parts {
        let of = by_op.entry(told.steps[*at].op).or_default();
        *of = (of.0 + 1, of.1 + ns);
    }
    let mut by_op: Vec<_> = by_op.into_iter().collect();
    by_op.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    for (op, (count, ns)) in by_op.into_iter().take(most / 4) {
        println!("{:>5.1}% {:>9.1} us  {op} x {count}", 100.0 * ns / total, ns / 1e3);
    }
    for (at, ns) in parts.into_iter().take(most) {
        let bytes = bytes_of(plan, at);
        let (op, fused) = (told.steps[at].op, told.steps[at].fused.unwrap_or(1));
        let shape = plan.steps[at].writes.first().map(|id| plan.graph.ty(*id).to_string());
        println!(
            "{at:>5} {:>5.1}% {:>9.1} us {:>8.1} MB {:>6.1} GB/s {:>6.1} TFLOP/s  {op} {fused} {}",
            100.0 * ns / total,
            ns / 1e3,
            bytes / 1e6,
            bytes / ns,
            flops_of(plan, at) / ns / 1e3,
            shape.unwrap_or_default(),
        );
    }
    if let Some(call) = timeline.calls.last().filter(|call| !call.inside.is_empty()) {
        println!("inside of loops and branches, in the last call:");
        for step in call.inside.iter().take(most) {
            let (ns, runs) = (step.nanoseconds as f64, step.runs as f64);
            println!(
                "      {:>5.1}% {:>9.1} us {:>8.1} MB {:>6.1} GB/s  {} x {} {}",
                100.0 * ns / total,
                ns / 1e3,
                step.bytes.get() as f64 * runs / 1e6,
                step.bytes.get() as f64 * runs / ns,
                step.op,
                step.runs,
                step.made.as_ref().map(ToString::to_string).unwrap_or_default(),
            );
        }
    }
    Ok(())
}

/// Operations of a part, as its op says.
fn flops_of(plan: &Plan, at: usize) -> f64 {
    let node = plan.graph.nodes.get(plan.steps[at].node);
    node.map_or(0.0, |node| plan.graph.with_call(node, node.op.cost).flops as f64)
}

/// What a part reads and writes, views and recipes as if they were whole.
fn bytes_of(plan: &Plan, at: usize) -> f64 {
    let step = &plan.steps[at];
    let ids = step.reads.iter().chain(&step.writes);
    ids.filter_map(|id| plan.graph.ty(*id).bytes("steps").ok()).map(|b| b.get() as f64).sum()
}

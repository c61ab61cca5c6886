//! Graphs that are too large to search through, for an integer program: each as one line of JSON, with what the frontier
//! takes at a number of budgets. `optimum.py` beside this file solves the same and compares.
//!
//! `cargo bench -p tonnage-plan --bench optimum > graphs.jsonl && python3 crates/plan/benches/optimum.py graphs.jsonl`

#[path = "../tests/common/works.rs"]
mod works;

use std::sync::Arc;

use tonnage_core::error::Result;
use tonnage_core::graph::Graph;
use tonnage_plan::{Allowed, Frontier, InputSpec, Machine};
use works::{Work, Works, network, options};

/// Shares of what lies between the least and everything.
const SHARES: [u64; 5] = [80, 60, 40, 20, 5];

fn line(name: &str, graph: &Arc<Graph>, inputs: &[InputSpec]) -> Result<String> {
    let machine = Machine::DEFAULT.without_disk();
    let Works { works, sizes, results } = Works::of(graph, &machine);
    let work = |work: &Work| {
        let Work { reads, makes, over, room, seconds } = work;
        format!(
            r#"{{"reads":{reads:?},"makes":{makes:?},"over":{over:?},"room":{room},"seconds":{seconds:e}}}"#
        )
    };
    let nodes: Vec<String> = works.iter().map(work).collect();
    let frontier = Frontier::allowing(Allowed::EXACT, graph, &[], inputs, options(machine))?;
    let (most, least) = (frontier.plan(0)?, frontier.least()?);
    let mut points = Vec::new();
    for share in SHARES {
        let between = (most.peak() - least.peak()).get() * share / 100;
        let budget = least.peak() + tonnage_core::Bytes::new(between);
        if let Ok(plan) = frontier.fit(budget)?
            && let Some(fitted) = plan.fitted
        {
            // Inputs lie outside of the arena.
            let arena = (budget - plan.inputs).get();
            points.push(format!(r#"{{"arena":{arena},"seconds":{:e}}}"#, fitted.seconds));
        }
    }
    Ok(format!(
        r#"{{"name":"{name}","nodes":[{}],"sizes":{sizes:?},"results":{results:?},"points":[{}]}}"#,
        nodes.join(","),
        points.join(",")
    ))
}

fn main() -> Result<()> {
    let graphs = [
        ("chain of 6", network(4096, &[32; 7], &[])),
        ("chain of 8", network(4096, &[32; 9], &[])),
        ("narrow and wide", network(4096, &[16, 64, 16, 96, 16, 64, 16], &[])),
        ("a bottle", network(4096, &[96, 64, 32, 16, 32, 64, 96], &[])),
        ("skips of two", network(4096, &[32; 7], &[(0, 2), (2, 4)])),
        ("a long skip", network(4096, &[48; 7], &[(0, 5)])),
        ("skips in skips", network(4096, &[48; 7], &[(0, 5), (1, 4)])),
        ("wider and wider", network(2048, &[8, 16, 32, 64, 128, 256], &[])),
    ];
    for (name, (graph, inputs)) in &graphs {
        println!("{}", line(name, graph, inputs)?);
    }
    Ok(())
}

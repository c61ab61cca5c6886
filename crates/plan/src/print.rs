//! A plan as a table that fits a terminal.

use std::fmt;

use crate::plan::{At, LoopGradPlan, Plan, Run, Step, StepMemory};

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "peak {}: inputs {}, arena {}, small results {}{}",
            self.peak(),
            self.inputs,
            self.arena,
            self.own_outputs(),
            if self.is_bound { " (a bound: data decide)" } else { "" }
        )?;
        match self.rounds_again() {
            Some(0) => {}
            Some(n) => writeln!(f, "gradients run {n} rounds of loops again")?,
            None => writeln!(f, "gradients run rounds of loops again: data decide how many")?,
        }
        writeln!(
            f,
            "{:>5}  {:<16} {:<12} {:>10} {:>10}  line",
            "step", "op", "memory", "bytes", "live"
        )?;
        for (i, step) in self.steps.iter().enumerate() {
            let bytes =
                step.begins.iter().map(|b| self.buffers[b.0].bytes).sum::<tonnage_core::Bytes>();
            let (op, source) = match self.graph.nodes.get(step.node) {
                Some(node) => (node.op.name, node.source.to_string()),
                None => ("copy", String::new()),
            };
            writeln!(
                f,
                "{i:>5}  {op:<16} {:<12} {:>10} {:>10}  {}",
                memory(step),
                bytes.to_string(),
                step.live.to_string(),
                tail(&source, 20),
            )?;
            if let Run::LoopGrad(plan) = &step.run {
                writeln!(f, "{:>7}{}", "", loop_text(plan))?;
            }
        }
        Ok(())
    }
}

/// What the gradient of a loop keeps, and what that costs.
fn loop_text(plan: &LoopGradPlan) -> String {
    let state = plan.state;
    let rounds = match plan.spec.of.known_rounds() {
        Some(n) => format!("{n} rounds"),
        None => "rounds as the data say".to_string(),
    };
    let again = match plan.again {
        Some(n) => format!("{n} run again"),
        None => "some run again".to_string(),
    };
    format!(
        "back through {rounds}: {} states of {state} kept besides the first, {again}",
        plan.rows
    )
}

fn memory(step: &Step) -> &'static str {
    match (step.memory, &step.run) {
        (StepMemory::InPlace(_), _) => "in place",
        (StepMemory::Aliases, _) => "aliases",
        (StepMemory::Recipe, _) => "recipe",
        (StepMemory::Updates, _) => "updates",
        (StepMemory::Output, Run::Copy { to, .. }) if matches!(to.at, At::Output(_)) => "result",
        (StepMemory::Output, _) => "result",
        (StepMemory::Allocates, _) => "allocates",
    }
}

/// The end of a text that is too long.
fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        true => format!("…{}", text.chars().skip(count - most + 1).collect::<String>()),
        false => text.to_string(),
    }
}

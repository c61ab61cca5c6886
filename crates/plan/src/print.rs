//! A plan as a table that fits a terminal.
//!
//! A long plan is cut to its beginning, what is around the peak, and its end; `{:#}` prints every step.

use std::fmt;

use tonnage_core::Bytes;

use crate::budget::{Fitted, Segment};
use crate::explain::{Explanation, LoopGradLine, Share, SourceShare, StepLine};
use crate::plan::{Lane, Plan, Refusal, StepMemory};

/// Steps that are printed around the peak, and at each end, of a plan that is too long.
const AROUND: usize = 16;
/// Columns that a list takes at most.
const WIDTH: usize = 96;
/// Entries that are printed of what lives at the peak.
const HOLDERS: usize = 10;

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.told().fmt(f)
    }
}

impl fmt::Display for Explanation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bound = if self.is_bound { " (a bound: data decide)" } else { "" };
        let on = self.device.as_ref().map_or(String::new(), |device| format!(" on {device}"));
        writeln!(
            f,
            "peak {}{on}: inputs {}, arena {}, small results {}{bound}",
            self.peak, self.inputs, self.arena, self.small_results,
        )?;
        if let Some(fitted) = &self.fitted {
            writeln!(f, "{}", wrapped(&fitted.to_string()))?;
        }
        for segment in &self.segments {
            writeln!(f, "{}", wrapped(&segment.to_string()))?;
        }
        if !self.spilled.is_zero() {
            let (spilled, disk) = (self.spilled, self.disk);
            match disk.is_zero() {
                true => writeln!(f, "spills {spilled} to host memory, and reads it back")?,
                false => writeln!(f, "spills {spilled} to a file of {disk}, and reads it back")?,
            }
        }
        if !self.host.is_zero() {
            writeln!(f, "takes {} of host memory", self.host)?;
        }
        let on_host = || self.steps.iter().filter_map(|step| Some((step.op, step.staging?)));
        if on_host().next().is_some() {
            let mut ops: Vec<&str> = on_host().map(|(op, _)| op).collect();
            ops.sort_unstable();
            ops.dedup();
            let (count, bytes) =
                (on_host().count(), on_host().map(|(_, bytes)| bytes).sum::<Bytes>());
            let steps = if count == 1 { "step runs" } else { "steps run" };
            let line =
                format!("{count} {steps} on the host, through {bytes} in all: {}", ops.join(", "));
            writeln!(f, "{}", wrapped(&line))?;
        }
        if !self.reads.is_zero() {
            writeln!(f, "reads {} from files that tensors stay in", self.reads)?;
        }
        if !self.writes.is_zero() {
            writeln!(f, "writes {} to the files of variables", self.writes)?;
        }
        match self.recomputed_iterations {
            Some(0) => {}
            Some(n) => writeln!(f, "gradients recompute {n} loop iterations")?,
            None => writeln!(f, "gradients recompute loop iterations: data decide how many")?,
        }
        writeln!(f, "at the peak, step {}:", self.peak_step)?;
        for holder in self.live_at_peak.iter().take(HOLDERS) {
            writeln!(f, "  {holder}")?;
        }
        if let Some(more) = self.live_at_peak.len().checked_sub(HOLDERS + 1) {
            writeln!(f, "  and {} more", more + 1)?;
        }
        shares(f, "by kind", &self.by_kind, self.gaps)?;
        // One layer that is everything tells nothing.
        if self.by_layer.len() > 1 {
            shares(f, "by layer", &self.by_layer, self.gaps)?;
        }
        if !self.suggestions.is_empty() {
            writeln!(f, "what would save the most:")?;
        }
        for suggestion in &self.suggestions {
            writeln!(f, "  {suggestion}")?;
        }
        writeln!(
            f,
            "{:>5}  {:<18} {:<10} {:>10} {:>10}  line",
            "step", "op", "memory", "bytes", "live"
        )?;
        let last = self.steps.len();
        let mut cut = false;
        for (i, step) in self.steps.iter().enumerate() {
            let shown = f.alternate()
                || last <= 4 * AROUND
                || i < AROUND
                || i + AROUND >= last
                || i.abs_diff(self.peak_step) <= AROUND / 2;
            if shown {
                writeln!(f, "{i:>5}  {step}")?;
                if let Some(back) = &step.loop_grad {
                    writeln!(f, "       {back}")?;
                }
            } else if !cut {
                writeln!(f, "    …")?;
            }
            cut = !shown;
        }
        Ok(())
    }
}

/// What the peak is made of, by a name, and what lies idle between.
fn shares(f: &mut fmt::Formatter<'_>, title: &str, all: &[Share], gaps: Bytes) -> fmt::Result {
    writeln!(f, "{title}:")?;
    let gaps = Share { name: "(gaps)".into(), count: 0, bytes: gaps };
    let gaps = Some(&gaps).filter(|gaps| !gaps.bytes.is_zero());
    for Share { name, count, bytes } in all.iter().take(HOLDERS).chain(gaps) {
        let name = if name.is_empty() { "(no layer)" } else { name };
        let times = if *count > 1 { format!(" x {count}") } else { String::new() };
        let bytes = bytes.to_string();
        writeln!(f, "{bytes:>12}  {}{times}", tail(name, 48))?;
    }
    match all.get(HOLDERS..).filter(|rest| !rest.is_empty()) {
        Some(rest) => {
            let bytes: Bytes = rest.iter().map(|share| share.bytes).sum();
            writeln!(f, "{:>12}  and {} more", bytes.to_string(), rest.len())
        }
        None => Ok(()),
    }
}

impl fmt::Display for Fitted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (now, before) = (self.seconds, self.unlimited_seconds);
        let mut done: Vec<String> = Vec::new();
        if self.recomputed > 0 {
            done.push(format!("{} nodes recomputed", self.recomputed));
        }
        if !self.spilled.is_zero() {
            done.push(format!("{} spilled", self.spilled));
        }
        if let Some(max_checkpoints) = self.max_checkpoints {
            let again = match self.recomputed_iterations {
                Some(n) => format!("{n} iterations recomputed"),
                None => "data decide how many iterations are recomputed".into(),
            };
            done.push(format!("loops keep {max_checkpoints} checkpoints ({again})"));
        }
        match self.residuals {
            0 => {}
            1 => done.push("a loop saves its residuals for the backward pass".into()),
            n => done.push(format!("{n} loops save their residuals for the backward pass")),
        }
        if let Some(pieces) = self.micro_batches {
            done.push(format!(
                "the batch in {pieces} pieces (last digits may differ unless `exact`)"
            ));
        }
        let segments = |n: usize| if n == 1 { "segment" } else { "segments" };
        if let Some(exact) = self.segments.checked_sub(self.segments_with_sums).filter(|n| *n > 0) {
            done.push(format!("{exact} {} in pieces", segments(exact)));
        }
        if self.segments_with_sums > 0 {
            let (n, segments) = (self.segments_with_sums, segments(self.segments_with_sums));
            done.push(format!("{n} {segments} in pieces (last digits may differ unless `exact`)"));
        }
        if self.in_bf16 > 0 {
            done.push(format!("{} values held in bf16", self.in_bf16));
        }
        let longer = if before > 0.0 { now / before } else { 1.0 };
        if done.is_empty() && longer < 1.005 {
            return write!(f, "fits as it is");
        }
        if done.is_empty() {
            done.push("as without a budget".into());
        }
        write!(f, "fitted: {}, {longer:.2} times the time expected", done.join(", "))
    }
}

impl fmt::Display for Segment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Segment { op, source, axis, pieces, whole, piece, nodes, .. } = self;
        write!(
            f,
            "{op} at {source} in {pieces} pieces along axis {axis}: {piece} of its {whole} exist at once"
        )?;
        write!(f, " ({nodes} nodes)")
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Refusal::ReadLater => "it is read later",
            Refusal::NotGivenUp => "it was not given up",
            Refusal::OtherSize => "it has another size",
            Refusal::Strided => "its elements do not lie close together",
            Refusal::Shared => "another input lies in the same bytes",
            Refusal::Recipe => "it is a recipe",
        })
    }
}

impl fmt::Display for SourceShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let times = if self.count > 1 { format!(" x {}", self.count) } else { String::new() };
        let what = format!("{}{times}", tail(&self.what, 40));
        let source = tail(&self.source.to_string(), 26);
        let (bytes, kind) = (self.bytes.to_string(), self.kind.name());
        write!(f, "{bytes:>10}  {kind:<10} {what:<24} {source}")
    }
}

impl fmt::Display for LoopGradLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let LoopGradLine { iterations, states, in_file, state, recomputed_iterations } = self;
        match iterations {
            Some(n) => write!(f, "back through {n} iterations")?,
            None => write!(f, "back through as many iterations as there were")?,
        }
        match in_file {
            true => write!(f, ", states of {state} in a file")?,
            false => write!(f, ", {states} checkpoints of {state}")?,
        }
        recomputed_iterations.map_or(Ok(()), |n| write!(f, ", {n} recomputed"))
    }
}

impl fmt::Display for StepLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let op = match self.fused {
            Some(count) => format!("{} {count}", self.op),
            None => self.op.to_string(),
        };
        let source = self.source.map(|s| s.to_string()).unwrap_or_default();
        let memory = self.memory_name();
        let bytes = self.bytes.to_string();
        let live = self.live.to_string();
        write!(f, "{op:<18} {memory:<10} {bytes:>10} {live:>10}  {}", tail(&source, 20))?;
        if self.lane == Lane::Network {
            f.write_str(", begins")?;
        }
        if !self.awaits.is_empty() {
            let steps: Vec<String> = self.awaits.iter().map(usize::to_string).collect();
            write!(f, ", awaits {}", steps.join(" "))?;
        }
        Ok(())
    }
}

impl StepLine {
    /// What it does to memory, in a word or two; that it is recomputed says more than that it allocates.
    pub fn memory_name(&self) -> &'static str {
        if self.recomputed { "recompute" } else { name(self.memory) }
    }
}

fn name(memory: StepMemory) -> &'static str {
    match memory {
        StepMemory::InPlace(_) => "in place",
        StepMemory::Aliases => "aliases",
        StepMemory::Recipe => "recipe",
        StepMemory::Updates => "updates",
        StepMemory::ToFile => "to a file",
        StepMemory::Output => "result",
        StepMemory::Allocates => "allocates",
        StepMemory::Spills => "spills",
        StepMemory::ReadsBack => "reads back",
        StepMemory::Waits => "waits",
    }
}

/// A list in lines of a terminal's width.
fn wrapped(list: &str) -> String {
    let mut lines = String::new();
    let mut column = 0;
    for part in list.split_inclusive(", ") {
        let width = part.trim_end().chars().count();
        if column > 0 && column + width > WIDTH {
            lines.truncate(lines.trim_end().len());
            lines.push_str("\n  ");
            column = 2;
        }
        lines.push_str(part);
        column += part.chars().count();
    }
    lines
}

/// The end of a text that is too long.
fn tail(text: &str, most: usize) -> String {
    let count = text.chars().count();
    match count > most {
        true => format!("…{}", text.chars().skip(count - most + 1).collect::<String>()),
        false => text.to_string(),
    }
}

//! Memory over time as text: columns of blocks that fit a terminal, with the peak and the budget marked.
//!
//! Each column shows the most of its span of time, so that no peak falls between two columns.

use std::fmt::Write;

use tonnage_core::Bytes;

use crate::picture::{Along, Picture};

/// Eighths of a line.
const BLOCKS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
/// Columns for the figures at the left, and the line beside them.
const MARGIN: usize = 12;

const RED: &str = "\x1b[31m";
const CYAN: &str = "\x1b[36m";
const YELLOW: &str = "\x1b[33m";
const PLAIN: &str = "\x1b[0m";

/// Whether what is written to the standard output may have colours: it is a terminal, and `NO_COLOR` is not set.
pub fn is_coloured() -> bool {
    use std::io::IsTerminal;
    let wants_none = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
    !wants_none && !is_dumb && std::io::stdout().is_terminal()
}

impl Picture {
    /// The picture as text of that many columns and lines, the legend not included; no line is longer. The peak is
    /// marked by `▲` under its column, the budget by a line of `┄`.
    pub fn chart(
        &self,
        columns: usize,
        lines: usize,
        budget: Option<Bytes>,
        coloured: bool,
    ) -> String {
        let (width, lines) = (columns.saturating_sub(MARGIN).max(8), lines.max(3));
        let budget = budget.map(Bytes::get);
        let top = self.peak.bytes.max(budget.unwrap_or(0)).max(1);
        let highest = self.columns(width);
        let peak = self.column(self.peak.at, width);
        let paint = |colour: &str, text: &str| match coloured {
            true => format!("{colour}{text}{PLAIN}"),
            false => text.to_string(),
        };
        let line_of = |bytes: u64| {
            let line = (u128::from(bytes) * lines as u128).div_ceil(u128::from(top)) as usize;
            lines - line.clamp(1, lines)
        };
        let mut text = String::new();
        for line in 0..lines {
            // What the line reaches up to, and its figure where it is the first to tell it.
            let up_to = (u128::from(top) * (lines - line) as u128 / lines as u128) as u64;
            let is_budget = budget.is_some_and(|budget| line_of(budget) == line);
            let figure = match () {
                () if budget.is_some() && is_budget => Bytes::new(budget.unwrap_or(0)).to_string(),
                () if line == 0 || line == lines / 2 => Bytes::new(up_to).to_string(),
                () => String::new(),
            };
            let _ = write!(text, "{figure:>10} ┤");
            for (column, bytes) in highest.iter().enumerate() {
                let eighths = u128::from(*bytes) * 8 * lines as u128 / u128::from(top);
                // What is there shows, however little.
                let eighths = eighths.max(u128::from(*bytes > 0)) as usize;
                let filled = eighths.saturating_sub(8 * (lines - 1 - line)).min(8);
                match filled {
                    0 if is_budget => text.push_str(&paint(YELLOW, "┄")),
                    0 => text.push(' '),
                    n if column == peak => text.push_str(&paint(RED, &BLOCKS[n].to_string())),
                    n => text.push_str(&paint(CYAN, &BLOCKS[n].to_string())),
                }
            }
            while text.ends_with(' ') {
                text.pop();
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{:>10} └{}", "", "─".repeat(width));
        let _ = writeln!(text, "{:>10}  {:peak$}{}", "", "", paint(RED, "▲"));
        let when = match self.along {
            Along::Steps => format!("step {} of {}", self.peak.at, self.length),
            Along::Nanoseconds => {
                let seconds = |ns: u64| ns as f64 / 1e9;
                format!("{:.3} s of {:.3} s", seconds(self.peak.at), seconds(self.length))
            }
        };
        let _ = write!(text, "peak {} at {when}", Bytes::new(self.peak.bytes));
        if let Some(budget) = budget {
            let _ = write!(text, ", budget {}", Bytes::new(budget));
        }
        text.push('\n');
        text
    }

    fn column(&self, at: u64, width: usize) -> usize {
        let column = u128::from(at) * width as u128 / u128::from(self.length.max(1));
        (column as usize).min(width - 1)
    }

    /// The most in use within each of that many spans of time.
    fn columns(&self, width: usize) -> Vec<u64> {
        let mut highest = vec![0u64; width];
        for (i, point) in self.curve.iter().enumerate() {
            // What holds until the next point holds in all columns on the way.
            let next = self.curve.get(i + 1).map_or(self.length, |next| next.at);
            let (first, last) = (self.column(point.at, width), self.column(next, width));
            // The column where the next point begins is its own, unless it begins in the middle.
            let length = u128::from(self.length.max(1));
            let starts = (u128::from(next) * width as u128).is_multiple_of(length);
            let last = if starts && last > first && next < self.length { last - 1 } else { last };
            for column in &mut highest[first..=last.max(first)] {
                *column = (*column).max(point.bytes);
            }
        }
        // A plan's arena may be fuller in address than in sum: the mark is the plan's own figure.
        let peak = self.column(self.peak.at, width);
        highest[peak] = highest[peak].max(self.peak.bytes);
        highest
    }
}

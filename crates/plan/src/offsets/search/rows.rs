//! Rows: what can lie on the floor of a valley, from one wall to the other.
//!
//! Items on the floor of a valley and sections that are left empty there follow each other without a gap. So a row is a
//! path from the valley's first section to its end, an item being a step over its span, and an item that is on no
//! path is no case. Where nothing may be wasted this rules out most of what fits the valley by itself.

use super::branch::Memory;
use super::state::{Scope, SearchState};

/// Boundaries that a path reaches, from both sides; held so that deciding allocates nothing.
#[derive(Default)]
pub(super) struct ReachableRows {
    /// By boundary: some path from the first wall gets there.
    from: Vec<bool>,
    /// By boundary: some path from there gets to the last wall.
    to: Vec<bool>,
    /// By section of the valley: items that cover it on a path, as steps up and down.
    cover: Vec<i32>,
}

/// The row that the chosen section is in.
pub(super) struct ReachableRow<'r> {
    rows: &'r ReachableRows,
    pub(super) may_leave: bool,
}

impl ReachableRow<'_> {
    /// True where an item with that span is on a path.
    pub(super) fn holds(&self, span: (u32, u32)) -> bool {
        self.rows.on_path(span)
    }
}

impl ReachableRows {
    fn on_path(&self, span: (u32, u32)) -> bool {
        self.from[span.0 as usize] && self.to[span.1 as usize]
    }

    /// The section of a valley that leaves the fewest cases for how often it failed. One
    /// that leaves a single case comes before all others: it decides nothing. Errs with a valley that cannot be
    /// covered.
    pub(super) fn choose(
        &mut self,
        state: &SearchState,
        memory: &Memory,
        scope: Scope,
    ) -> Result<(u32, ReachableRow<'_>), u32> {
        let sections = state.floor.len();
        self.from.resize(sections + 1, false);
        self.to.resize(sections + 1, false);
        let mut best = (f64::INFINITY, u64::MAX);
        let mut chosen = (scope.0, false);
        let mut s = scope.0;
        while s < scope.1 {
            let (first, level) = (s, state.floor[s as usize]);
            while s < scope.1 && state.floor[s as usize] == level {
                s += 1;
            }
            let walled = |side: u32| state.floor[side as usize] > level;
            if (first > scope.0 && !walled(first - 1)) || (s < scope.1 && !walled(s)) {
                continue;
            }
            if !self.paths(state, first, s) {
                return Err(first);
            }
            let mut covered = 0;
            for section in first..s {
                covered += self.cover[(section - first) as usize];
                let slack = state.slack(section);
                let leave = slack > 0 && self.on_path((section, section + 1));
                let score = match covered + i32::from(leave) {
                    1 => 0.0,
                    n => f64::from(n) / (1.0 + memory.weight(section)),
                };
                if (score, slack) < best {
                    (best, chosen) = ((score, slack), (section, leave));
                }
            }
        }
        Ok((chosen.0, ReachableRow { rows: self, may_leave: chosen.1 }))
    }

    /// Finds the paths over a valley. False where there is none.
    fn paths(&mut self, state: &SearchState, first: u32, last: u32) -> bool {
        let level = state.floor[first as usize];
        let fits = |&i: &u32| state.least[i as usize] == level;
        let span = |i: u32| state.component.span[i as usize];
        self.from[first as usize..=last as usize].fill(false);
        self.to[first as usize..=last as usize].fill(false);
        self.from[first as usize] = true;
        for s in first..last {
            if self.from[s as usize] {
                for i in state.starting(s).filter(fits) {
                    self.from[span(i).1 as usize] = true;
                }
                if state.slack(s) > 0 {
                    self.from[s as usize + 1] = true;
                }
            }
        }
        if !self.from[last as usize] {
            return false;
        }
        self.cover.clear();
        self.cover.resize((last - first) as usize + 1, 0);
        self.to[last as usize] = true;
        for s in (first..last).rev() {
            let mut reaches = state.slack(s) > 0 && self.to[s as usize + 1];
            for i in state.starting(s).filter(fits) {
                let end = span(i).1;
                if self.to[end as usize] {
                    reaches = true;
                    if self.from[s as usize] {
                        self.cover[(s - first) as usize] += 1;
                        self.cover[(end - first) as usize] -= 1;
                    }
                }
            }
            self.to[s as usize] = reaches;
        }
        true
    }
}

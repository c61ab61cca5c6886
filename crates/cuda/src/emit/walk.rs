//! How an operand is addressed: the axes that are left where neighbours are one, and the text that finds an element from its number.

use std::fmt::Write as _;

use smallvec::SmallVec;

use super::axes::Axes;

/// Some axes of one operand.
#[derive(Debug, Clone)]
pub struct Walk {
    axes: Axes,
}

impl Walk {
    pub fn of((sizes, steps): (SmallVec<[usize; 4]>, SmallVec<[i64; 4]>)) -> Walk {
        let all: SmallVec<[usize; 4]> = (0..sizes.len()).collect();
        Walk { axes: Axes::merged(&sizes, &[steps], &all) }
    }

    /// How many axes are left.
    pub fn rank(&self) -> u8 {
        self.axes.rank() as u8
    }

    /// How many elements.
    pub fn count(&self) -> u64 {
        self.axes.count()
    }

    /// Whether neighbours lie side by side.
    pub fn is_run(&self) -> bool {
        matches!(self.steps(), [] | [1])
    }

    /// Whether so many elements along the last axis lie side by side, as many as fit into it, and every other step is a multiple of that.
    pub fn has_runs_of(&self, vector: u64) -> bool {
        let (Some((last, outer)), Some(n)) = (self.steps().split_last(), self.axes.sizes.last())
        else {
            return false;
        };
        *last == 1
            && (*n as u64).is_multiple_of(vector)
            && outer.iter().all(|step| step.unsigned_abs().is_multiple_of(vector))
    }

    /// The length and the step of each axis.
    pub fn reaches(&self) -> impl Iterator<Item = (u64, i64)> + '_ {
        self.axes.sizes.iter().zip(self.steps()).map(|(n, step)| (*n as u64, *step))
    }

    /// Whether every step is a multiple of that many elements.
    pub fn is_multiple_of(&self, vector: u64) -> bool {
        self.steps().iter().all(|step| step.unsigned_abs().is_multiple_of(vector))
    }

    fn steps(&self) -> &[i64] {
        self.axes.strides.first().map_or(&[], |steps| steps)
    }

    /// Lengths and steps, as words of a launch. Elements are taken so many at a time along the last axis, which is a run then.
    pub fn words(&self, vector: u64, words: &mut Vec<u64>) {
        let last = self.axes.rank().wrapping_sub(1);
        let each = |i: usize| if i == last { vector } else { 1 };
        words.extend(self.axes.sizes.iter().enumerate().map(|(i, n)| *n as u64 / each(i)));
        words.extend(
            self.steps().iter().enumerate().map(|(i, step)| (*step as u64).wrapping_mul(each(i))),
        );
    }
}

/// Statements that give `name` the offset of element `number`, by `rank` lengths and steps from a word on; the word behind them.
pub fn offset(text: &mut String, name: &str, number: &str, rank: u8, word: usize) -> usize {
    let rank = usize::from(rank);
    let _ = writeln!(text, "    i64 {name} = 0;");
    if rank > 0 {
        let _ = writeln!(text, "    {{ idx q = (idx)({number});");
        for axis in (0..rank).rev() {
            let (size, step) = (word + axis, word + rank + axis);
            let _ = match axis {
                0 => writeln!(text, "    {name} += (i64)q * (i64)p.w[{step}]; }}"),
                _ => writeln!(
                    text,
                    "    {name} += (i64)(q % (idx)p.w[{size}]) * (i64)p.w[{step}]; q /= (idx)p.w[{size}];"
                ),
            };
        }
    }
    word + 2 * rank
}

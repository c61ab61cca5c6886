//! Rows that a boolean mask over the leading axes selects: what the kernels of `boolean_mask`, `mask_scatter` and
//! `nonzero` share.
//!
//! Where a row goes depends on how many come before it. Work is cut by halving the mask and counting
//! its first half, so both halves know where they start and no scratch is needed.

use tonnage_core::Bool;
use tonnage_core::error::Result;
use tonnage_core::lent::In;
use tonnage_core::walk::Runs;

use crate::parallel::{rows_at_once, strides};
use crate::strided::Positions;
use crate::workers::Workers;

/// A lent mask.
#[derive(Clone, Copy)]
pub struct BooleanMask<'a> {
    input: &'a In<'a>,
    positions: Positions<'a>,
}

/// A part of a mask, and how many rows the mask selects before it.
#[derive(Clone, Copy)]
pub struct MaskPart {
    /// Its first element.
    pub start: usize,
    /// How many elements.
    pub len: usize,
    /// Selected before it.
    pub before: usize,
}

impl<'a> BooleanMask<'a> {
    pub fn new(input: &'a In<'a>) -> BooleanMask<'a> {
        BooleanMask { input, positions: Positions::of(&input.layout) }
    }

    pub fn len(self) -> usize {
        self.input.layout.count()
    }

    pub fn get(self, i: usize) -> bool {
        self.input.slice::<Bool>()[self.positions.at(i)].get()
    }

    /// These elements, where they lie one after the other.
    pub fn run(self, start: usize, len: usize) -> Option<&'a [Bool]> {
        let run = self.positions.run(self.len())?;
        self.input.slice::<Bool>().get(run)?.get(start..start + len)
    }

    /// How many of these elements are true.
    pub fn count(self, start: usize, len: usize) -> usize {
        let (data, mut count) = (self.input.slice::<Bool>(), 0);
        Runs::new(&self.input.layout).for_each(start, len, |at, step, n| match step {
            1 => count += data[at..at + n].iter().filter(|b| b.get()).count(),
            _ => {
                let place = |i: usize| (at as isize + i as isize * step) as usize;
                count += (0..n).filter(|i| data[place(*i)].get()).count();
            }
        });
        count
    }

    /// Calls `f(part, rows)` for parts of the mask that make up the whole, with the rows of `out` that
    /// `owned` says are a part's; on as many threads as are free.
    pub fn for_each_part<T: Send>(
        self,
        workers: &dyn Workers,
        out: &mut [T],
        row: usize,
        owned: Owned,
        f: &(dyn Fn(MaskPart, &mut [T]) + Sync),
    ) -> Result<()> {
        let whole = MaskPart { start: 0, len: self.len(), before: 0 };
        let shared = self.len().div_ceil(4 * workers.threads());
        let grain = match workers.threads() {
            0 | 1 => self.len(),
            _ => shared.max(rows_at_once(row)),
        };
        self.split(workers, whole, out, row, grain.max(1), owned, f);
        workers.check()
    }

    /// A part on one thread, some of it at a time.
    fn in_order<T>(
        self,
        workers: &dyn Workers,
        whole: MaskPart,
        mut out: &mut [T],
        row: usize,
        owned: Owned,
        f: &(dyn Fn(MaskPart, &mut [T]) + Sync),
    ) {
        let (end, mut before) = (whole.start + whole.len, whole.before);
        for range in strides(workers, whole.start..end, row) {
            let part = MaskPart { start: range.start, len: range.len(), before };
            if range.end == end {
                return f(part, out);
            }
            let selected = self.count(part.start, part.len);
            let mine = match owned {
                Owned::Selected => selected,
                Owned::All => part.len,
            };
            let (here, rest) = out.split_at_mut((mine * row).min(out.len()));
            f(part, here);
            (before, out) = (before + selected, rest);
        }
    }

    #[allow(
        clippy::too_many_arguments,
        reason = "one recursion, whose arguments are all its state"
    )]
    fn split<T: Send>(
        self,
        workers: &dyn Workers,
        part: MaskPart,
        out: &mut [T],
        row: usize,
        grain: usize,
        owned: Owned,
        f: &(dyn Fn(MaskPart, &mut [T]) + Sync),
    ) {
        if workers.is_stopped() {
            return;
        }
        if part.len <= grain {
            return self.in_order(workers, part, out, row, owned, f);
        }
        let half = part.len / 2;
        let selected = self.count(part.start, half);
        let left = MaskPart { len: half, ..part };
        let right = MaskPart {
            start: part.start + half,
            len: part.len - half,
            before: part.before + selected,
        };
        let mine = match owned {
            Owned::Selected => selected,
            Owned::All => half,
        };
        let (a, b) = out.split_at_mut((mine * row).min(out.len()));
        workers.join(&mut || self.split(workers, left, a, row, grain, owned, f), &mut || {
            self.split(workers, right, b, row, grain, owned, f);
        });
    }
}

/// Which rows of an output belong to a part of the mask.
#[derive(Clone, Copy)]
pub enum Owned {
    /// One for every element that is true.
    Selected,
    /// One for every element.
    All,
}

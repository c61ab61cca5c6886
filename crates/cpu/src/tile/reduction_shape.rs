//! How a domain is reduced: which elements make a result, and what threads share.
//!
//! Neighbouring axes of one kind count as one group. Groups are found as they are asked for, not listed: a reduction
//! allocates nothing at any rank.

use tonnage_core::bytes::Bytes;

use super::partial::{BLOCK, Bits};

/// Results that are enough to keep all threads busy without cutting the reduction itself.
const MANY: usize = 32;

/// Elements that a segment has at least.
const SEGMENT: usize = 32 * 1024;

/// How a domain is reduced.
#[derive(Clone, Copy)]
pub struct ReductionShape<'a> {
    domain: &'a [usize],
    axes: &'a [usize],
    /// Results, without the innermost axis.
    pub outer: AxisPositions,
    /// What is reduced, without the innermost axis.
    pub reduced: AxisPositions,
    /// Results side by side: the innermost axis where it is kept, 1 otherwise.
    pub width: usize,
    /// Elements side by side that are reduced to one: the innermost axis where it is reduced, 1 otherwise.
    pub run: usize,
    /// Parts that are reduced separately and joined in order.
    pub segments: usize,
}

/// Positions of one kind: how many, in how many groups of axes, and the step of the innermost group.
#[derive(Clone, Copy)]
pub struct AxisPositions {
    pub count: usize,
    pub groups: usize,
    step: usize,
}

impl AxisPositions {
    fn put(&mut self, group: AxisGroup) {
        self.count *= group.size;
        self.groups += 1;
        if self.groups == 1 {
            self.step = group.step;
        }
    }
}

impl<'a> ReductionShape<'a> {
    pub fn new(domain: &'a [usize], axes: &'a [usize]) -> ReductionShape<'a> {
        let mut groups = Groups { domain, axes, step: 1 };
        let (width, run) = match groups.next() {
            Some(group) if group.reduces => (1, group.size),
            Some(group) => (group.size, 1),
            None => (1, 1),
        };
        let none = AxisPositions { count: 1, groups: 0, step: 0 };
        let (mut outer, mut reduced) = (none, none);
        for group in groups {
            if group.reduces { reduced.put(group) } else { outer.put(group) }
        }
        let mut shape = ReductionShape { domain, axes, outer, reduced, width, run, segments: 1 };
        if shape.jobs() < MANY {
            let each = shape.units().saturating_mul(shape.run.min(BLOCK) * shape.width.min(BLOCK));
            shape.segments = (each / SEGMENT).clamp(1, if shape.width == 1 { 64 } else { 16 });
        }
        shape
    }

    /// With as many segments as `scratch` bytes have room for, at least one: in the order of a file
    /// there may be more results than in the order that the bytes were asked for.
    pub fn within(self, scratch: usize) -> ReductionShape<'a> {
        let room = scratch / (self.results() * size_of::<Bits>()).max(1);
        ReductionShape { segments: self.segments.min(room.max(1)), ..self }
    }

    /// Results in all.
    pub fn results(&self) -> usize {
        self.outer.count * self.width
    }

    /// Results, as far as they are worked on together.
    fn jobs(&self) -> usize {
        self.outer.count * self.width.div_ceil(BLOCK)
    }

    /// Blocks, or rows, that are reduced to one result.
    pub fn units(&self) -> usize {
        self.reduced.count * self.run.div_ceil(BLOCK)
    }

    /// Elements that are reduced to one result.
    pub fn count(&self) -> usize {
        self.reduced.count * self.run
    }

    /// Partial results of the segments.
    pub fn scratch(&self) -> Bytes {
        match self.segments {
            1 => Bytes::ZERO,
            n => Bytes::of(n * self.results() * size_of::<Bits>()).rounded(),
        }
    }

    /// Whether whole rows of one result each lie one after the other.
    pub fn rows_in_order(&self) -> bool {
        self.width == 1 && self.reduced.groups == 0 && self.outer.groups <= 1
    }

    /// Where the result of that number among the outer ones begins.
    pub fn outer_at(&self, index: usize) -> usize {
        self.at(self.outer, false, index)
    }

    /// How far the reduced element of that number lies behind the first.
    pub fn reduced_at(&self, index: usize) -> usize {
        self.at(self.reduced, true, index)
    }

    fn at(&self, positions: AxisPositions, reduces: bool, mut index: usize) -> usize {
        if positions.groups <= 1 {
            return index * positions.step;
        }
        let groups = Groups { domain: self.domain, axes: self.axes, step: 1 };
        let mut at = 0;
        for group in groups.skip(1).filter(|group| group.reduces == reduces) {
            at += (index % group.size) * group.step;
            index /= group.size;
        }
        at
    }
}

/// Neighbouring axes of one kind, which count as one.
#[derive(Clone, Copy)]
struct AxisGroup {
    size: usize,
    /// From one of its elements to the next.
    step: usize,
    reduces: bool,
}

/// The groups of a domain, innermost first.
struct Groups<'a> {
    domain: &'a [usize],
    axes: &'a [usize],
    /// Elements behind what is left of the domain.
    step: usize,
}

impl Iterator for Groups<'_> {
    type Item = AxisGroup;

    fn next(&mut self) -> Option<AxisGroup> {
        let mut found: Option<AxisGroup> = None;
        while let Some((&size, outer)) = self.domain.split_last() {
            let reduces = self.axes.contains(&outer.len());
            match &mut found {
                _ if size == 1 => {}
                Some(group) if group.reduces == reduces => group.size *= size,
                Some(_) => break,
                None => found = Some(AxisGroup { size, step: self.step, reduces }),
            }
            // Sizes beside a 0 may multiply to anything; then nothing is read.
            self.step = self.step.wrapping_mul(size);
            self.domain = outer;
        }
        found
    }
}

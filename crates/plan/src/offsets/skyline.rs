//! The height of a pile over every section, with the questions that placing asks, in logarithmic time.
//!
//! A segment tree with delayed changes. A plain array would do for short lifetimes, but a training
//! graph of 20,000 nodes has thousands of items that span thousands of sections each.

/// Nothing is delayed here: no height is that large, since sizes add up to less than 2^63.
const NONE: u64 = u64::MAX;

/// Heights over sections, all zero at first, beside the sizes that are still to come there.
pub(super) struct Skyline {
    width: usize,
    nodes: Vec<SkylineNode>,
}

#[derive(Clone, Copy)]
struct SkylineNode {
    /// The largest height.
    height: u64,
    /// The sum of heights, which exceeds 64 bits.
    area: u128,
    /// The most that is still to come.
    rest: u64,
    /// The largest sum of height and what is still to come.
    both: u64,
    /// For all below: a height to set.
    set: u64,
    /// For all below: what has come.
    taken: u64,
}

/// What a run of sections is like.
#[derive(Clone, Copy)]
pub(super) struct Top {
    /// The highest point.
    pub(super) height: u64,
    /// The area below it that is not filled.
    pub(super) waste: u128,
    /// The largest sum of height and what is still to come.
    pub(super) both: u64,
}

impl Skyline {
    /// Flat, with so much to come in each section.
    pub(super) fn new(load: &[u64]) -> Skyline {
        let width = load.len().next_power_of_two();
        let empty = SkylineNode { height: 0, area: 0, rest: 0, both: 0, set: NONE, taken: 0 };
        let mut nodes = vec![empty; 2 * width];
        for (node, &load) in nodes[width..].iter_mut().zip(load) {
            (node.rest, node.both) = (load, load);
        }
        let mut skyline = Skyline { width, nodes };
        (1..width).rev().for_each(|node| skyline.join(node));
        skyline
    }

    /// What a new item over that span would rest on.
    pub(super) fn top(&mut self, span: (u32, u32)) -> Top {
        let (mut height, mut area, mut both) = (0, 0, 0);
        self.visit(1, (0, self.width), span, &mut |node, _| {
            height = height.max(node.height);
            both = both.max(node.both);
            area += node.area;
        });
        Top { height, waste: u128::from(height) * u128::from(span.1 - span.0) - area, both }
    }

    /// Sets the height over a span.
    pub(super) fn set(&mut self, span: (u32, u32), height: u64) {
        self.visit(1, (0, self.width), span, &mut |node, sections| node.set(height, sections));
    }

    /// Takes a size off what is still to come over a span.
    pub(super) fn take(&mut self, span: (u32, u32), size: u64) {
        self.visit(1, (0, self.width), span, &mut |node, _| node.take(size));
    }

    fn join(&mut self, node: usize) {
        let (left, right) = (self.nodes[2 * node], self.nodes[2 * node + 1]);
        let node = &mut self.nodes[node];
        node.height = left.height.max(right.height);
        node.area = left.area + right.area;
        node.rest = left.rest.max(right.rest);
        node.both = left.both.max(right.both);
    }

    /// Calls `act` with the nodes that make up `inside`, and how many sections each holds.
    fn visit(
        &mut self,
        node: usize,
        (low, high): (usize, usize),
        inside: (u32, u32),
        act: &mut dyn FnMut(&mut SkylineNode, usize),
    ) {
        let (first, last) = (inside.0 as usize, inside.1 as usize);
        if last <= low || high <= first {
            return;
        }
        if first <= low && high <= last {
            act(&mut self.nodes[node], high - low);
            return;
        }
        let half = (high - low) / 2;
        let set = std::mem::replace(&mut self.nodes[node].set, NONE);
        let taken = std::mem::take(&mut self.nodes[node].taken);
        for child in [2 * node, 2 * node + 1] {
            if taken > 0 {
                self.nodes[child].take(taken);
            }
            if set != NONE {
                self.nodes[child].set(set, half);
            }
        }
        self.visit(2 * node, (low, low + half), inside, act);
        self.visit(2 * node + 1, (low + half, high), inside, act);
        self.join(node);
    }
}

impl SkylineNode {
    fn set(&mut self, height: u64, sections: usize) {
        self.height = height;
        self.area = u128::from(height) * sections as u128;
        self.both = height + self.rest;
        self.set = height;
    }

    // Only ever by a size that is still to come in all these sections.
    fn take(&mut self, size: u64) {
        self.rest -= size;
        self.both -= size;
        self.taken += size;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_plain_arrays() {
        let mut heights = [0u64; 13];
        let mut rests: Vec<u64> = (0..13).map(|s| 100_000 + 37 * s).collect();
        let mut tree = Skyline::new(&rests);
        let mut state = 1u64;
        for _ in 0..500 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let first = (state >> 33) as usize % 13;
            let last = first + 1 + (state >> 45) as usize % (13 - first);
            let span = (first as u32, last as u32);
            let run = &mut heights[first..last];
            let rest = &mut rests[first..last];
            let highest = run.iter().max().copied().unwrap();
            let waste: u64 = run.iter().map(|h| highest - h).sum();
            let both = run.iter().zip(&*rest).map(|(h, r)| h + r).max().unwrap();
            let top = tree.top(span);
            let got = (top.height, top.waste, top.both);
            assert_eq!(got, (highest, u128::from(waste), both));
            let height = (state >> 20) % 50;
            if state >> 63 == 0 {
                run.fill(height);
                tree.set(span, height);
            } else {
                rest.iter_mut().for_each(|rest| *rest -= height);
                tree.take(span, height);
            }
        }
    }
}

//! The height of a pile over every section, with the questions that placing asks, in logarithmic time.
//!
//! A segment tree with delayed assignment. A plain array would do for short lifetimes, but a training
//! graph of 20,000 nodes has thousands of items that span thousands of sections each.

/// Nothing is delayed here: no height is that large, since sizes add up to less than 2^64.
const NONE: u64 = u64::MAX;

/// Heights over sections, all zero at first.
pub(super) struct Skyline {
    width: usize,
    max: Vec<u64>,
    // Heights times sections exceed 64 bits.
    sum: Vec<u128>,
    delayed: Vec<u64>,
}

/// The highest point of a run of sections, and the area below it that is not filled.
#[derive(Clone, Copy)]
pub(super) struct Top {
    pub(super) height: u64,
    pub(super) waste: u128,
}

impl Skyline {
    pub(super) fn new(sections: usize) -> Skyline {
        let width = sections.next_power_of_two();
        Skyline {
            width,
            max: vec![0; 2 * width],
            sum: vec![0; 2 * width],
            delayed: vec![NONE; 2 * width],
        }
    }

    /// What a new item over that span would rest on.
    pub(super) fn top(&mut self, span: (u32, u32)) -> Top {
        let (mut height, mut sum) = (0, 0);
        let inside = (span.0 as usize, span.1 as usize);
        self.visit(1, (0, self.width), inside, &mut |tree, node, _| {
            height = height.max(tree.max[node]);
            sum += tree.sum[node];
        });
        Top { height, waste: u128::from(height) * (inside.1 - inside.0) as u128 - sum }
    }

    /// Sets the height over a span.
    pub(super) fn set(&mut self, span: (u32, u32), height: u64) {
        let inside = (span.0 as usize, span.1 as usize);
        self.visit(1, (0, self.width), inside, &mut |tree, node, sections| {
            tree.assign(node, sections, height);
        });
    }

    fn assign(&mut self, node: usize, sections: usize, height: u64) {
        self.max[node] = height;
        self.sum[node] = u128::from(height) * sections as u128;
        self.delayed[node] = height;
    }

    /// Calls `act` with the nodes that make up `inside`, and how many sections each holds.
    fn visit(
        &mut self,
        node: usize,
        (low, high): (usize, usize),
        inside: (usize, usize),
        act: &mut dyn FnMut(&mut Skyline, usize, usize),
    ) {
        if inside.1 <= low || high <= inside.0 {
            return;
        }
        if inside.0 <= low && high <= inside.1 {
            act(self, node, high - low);
            return;
        }
        let half = (high - low) / 2;
        let delayed = std::mem::replace(&mut self.delayed[node], NONE);
        if delayed != NONE {
            self.assign(2 * node, half, delayed);
            self.assign(2 * node + 1, half, delayed);
        }
        self.visit(2 * node, (low, low + half), inside, act);
        self.visit(2 * node + 1, (low + half, high), inside, act);
        self.max[node] = self.max[2 * node].max(self.max[2 * node + 1]);
        self.sum[node] = self.sum[2 * node] + self.sum[2 * node + 1];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_array() {
        let mut tree = Skyline::new(13);
        let mut plain = [0u64; 13];
        let mut state = 1u64;
        for _ in 0..500 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(99);
            let first = (state >> 33) as usize % 13;
            let last = first + 1 + (state >> 45) as usize % (13 - first);
            let span = (first as u32, last as u32);
            let run = &mut plain[first..last];
            let highest = run.iter().max().copied().unwrap();
            let waste: u64 = run.iter().map(|h| highest - h).sum();
            let top = tree.top(span);
            assert_eq!((top.height, top.waste), (highest, u128::from(waste)));
            let height = (state >> 20) % 50;
            run.fill(height);
            tree.set(span, height);
        }
    }
}

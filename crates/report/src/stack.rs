//! Addresses for buffers that have none: each goes to the lowest place that is free from its beginning to its end, looked for
//! among those that live when it begins.

/// With more alive than this a buffer goes on top at once: looking for room would take longer than it shows.
const LOOKED_AT: usize = 4096;

/// What lives, lowest first.
#[derive(Default)]
pub struct Stack {
    live: Vec<StackedBuffer>,
}

struct StackedBuffer {
    low: u64,
    high: u64,
    to: u64,
}

impl Stack {
    /// The address of a buffer; they come in the order in which they begin.
    pub fn put(&mut self, from: u64, to: u64, bytes: u64) -> u64 {
        self.live.retain(|placed| placed.to > from);
        let (mut low, mut at) = (0, 0);
        if self.live.len() > LOOKED_AT {
            low = self.live.iter().map(|placed| placed.high).max().unwrap_or(0);
            at = self.live.len();
        } else {
            while let Some(next) = self.live.get(at).filter(|next| next.low < low + bytes) {
                low = low.max(next.high);
                at += 1;
            }
        }
        self.live.insert(at, StackedBuffer { low, high: low + bytes, to });
        low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lives_together_does_not_overlap_and_gaps_are_filled() {
        let mut stack = Stack::default();
        let spans: [(u64, u64, u64); 5] =
            [(0, 10, 100), (1, 4, 50), (2, 9, 30), (5, 8, 40), (6, 9, 20)];
        let low = spans.map(|(from, to, bytes)| stack.put(from, to, bytes));
        assert_eq!(low, [0, 100, 150, 100, 180]);
        for (i, a) in spans.iter().enumerate() {
            for (j, b) in spans.iter().enumerate().take(i) {
                let together = a.0 < b.1 && b.0 < a.1;
                let apart = low[i] + a.2 <= low[j] || low[j] + b.2 <= low[i];
                assert!(!together || apart, "{i} and {j}");
            }
        }
    }
}

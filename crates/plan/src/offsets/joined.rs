//! Fewer, larger items: what looks like the pieces of one block is packed as that block.
//!
//! Where sections have nothing to waste, the items that end at a boundary fill just what those that begin there fill.
//! So an item that ends where another of its size begins is most likely beside it, and two of the same lifetime are most likely
//! on top of each other. Joining is a guess, which the search then tries on what is left of the
//! instance; a packing of the blocks is one of the items, and where there is none, nothing is said of the items.
//!
//! Decision: `docs/decisions/packing-joined-items.md`.

use super::Item;
use super::search::mix;
use super::sections::{Component, split};
use crate::sort;

/// An item, or blocks joined.
struct JoinedBlock {
    span: (u32, u32),
    size: u64,
    /// What it is made of, each with its offset; nothing where it is an item.
    parts: Vec<(usize, u64)>,
}

/// An instance of blocks.
pub(super) struct Joined {
    blocks: Vec<JoinedBlock>,
    /// Which of them are not part of others, in the order of the items of `part`.
    left: Vec<usize>,
    /// What is to be packed.
    pub(super) component: Component,
}

/// Whether an attempt guesses where an item has several partners.
pub(super) fn guesses(attempt: u64) -> bool {
    !attempt.is_multiple_of(4)
}

/// Joins what it can; which of several partners an item gets differs from shuffle to shuffle. `None` where little is joined.
pub(super) fn joined(component: &Component, shuffle: u64) -> Option<Joined> {
    let item =
        |i| JoinedBlock { span: component.span[i], size: component.size[i], parts: Vec::new() };
    let blocks: Vec<JoinedBlock> = (0..component.len()).map(item).collect();
    let mut join = Join { left: (0..blocks.len()).collect(), blocks, shuffle };
    while join.chains(false) || join.stacks_that_chain() || join.wheels() || join.any() {}
    let Join { blocks, left, .. } = join;
    if left.len() * 20 > component.len() * 19 {
        return None;
    }
    let items: Vec<Item> = left
        .iter()
        .map(|&b| Item { lower: blocks[b].span.0, upper: blocks[b].span.1, size: blocks[b].size })
        .collect();
    let component = split(&items).pop()?;
    Some(Joined { blocks, left, component })
}

impl Joined {
    /// Offsets of the items, from those of the blocks.
    pub(super) fn unfold(&self, packed: &[u64]) -> Vec<u64> {
        let mut offsets = vec![0; self.blocks.len()];
        let mut blocks = vec![0; self.left.len()];
        self.component.store(packed, &mut blocks);
        for (&block, offset) in self.left.iter().zip(blocks) {
            offsets[block] = offset;
        }
        // What a block is made of stands before it, and the items come first.
        for (b, block) in self.blocks.iter().enumerate().rev() {
            for &(part, offset) in &block.parts {
                offsets[part] = offsets[b] + offset;
            }
        }
        offsets.truncate(self.blocks.iter().take_while(|block| block.parts.is_empty()).count());
        offsets
    }
}

/// Where a block begins or ends, its size, and which it is.
type Edge = (u32, u64, usize);

/// Blocks in the making.
struct Join {
    blocks: Vec<JoinedBlock>,
    left: Vec<usize>,
    shuffle: u64,
}

impl Join {
    /// Joins these, leaving out what shares a component with an earlier one. False where there is none.
    fn join(&mut self, made: Vec<JoinedBlock>) -> bool {
        let mut gone = vec![false; self.blocks.len()];
        let before = self.blocks.len();
        for block in made {
            if block.parts.iter().all(|&(part, _)| !gone[part]) {
                block.parts.iter().for_each(|&(part, _)| gone[part] = true);
                self.blocks.push(block);
            }
        }
        self.left.retain(|&b| !gone[b]);
        self.left.extend(before..self.blocks.len());
        before < self.blocks.len()
    }

    /// The second after the first.
    fn chain(&self, first: usize, second: usize) -> JoinedBlock {
        let (p, q) = (&self.blocks[first], &self.blocks[second]);
        JoinedBlock {
            span: (p.span.0, q.span.1),
            size: p.size,
            parts: vec![(first, 0), (second, 0)],
        }
    }

    /// The second on top of the first.
    fn stack(&self, first: usize, second: usize) -> JoinedBlock {
        let (p, q) = (&self.blocks[first], &self.blocks[second]);
        JoinedBlock {
            span: p.span,
            size: p.size + q.size,
            parts: vec![(first, 0), (second, p.size)],
        }
    }

    /// All blocks sorted by where they begin and their size, and by where they end.
    fn sorted(&self) -> (Vec<Edge>, Vec<Edge>) {
        let of = |&b: &usize| (&self.blocks[b], b);
        let mut starts: Vec<_> =
            self.left.iter().map(of).map(|(block, b)| (block.span.0, block.size, b)).collect();
        let mut ends: Vec<_> =
            self.left.iter().map(of).map(|(block, b)| (block.span.1, block.size, b)).collect();
        starts.sort_unstable();
        ends.sort_unstable();
        (starts, ends)
    }

    /// Joins blocks that follow each other and are alone in that; or, in a later attempt, one pair that is not.
    fn chains(&mut self, guess: bool) -> bool {
        let (starts, ends) = self.sorted();
        let mut pairs = Vec::new();
        for &(end, size, first) in &ends {
            let after = at(&starts, end, size);
            let alone = after.len() == 1 && at(&ends, end, size).len() == 1;
            if alone || guess {
                pairs.extend(after.iter().map(|&(_, _, second)| (size, first, second)));
            }
        }
        if guess {
            let Some(&(_, first, second)) = pairs.iter().max_by_key(|&&(_, p, q)| self.draw(p, q))
            else {
                return false;
            };
            return self.join(vec![self.chain(first, second)]);
        }
        self.join(pairs.into_iter().map(|(_, p, q)| self.chain(p, q)).collect())
    }

    /// Joins pairs of one lifetime that together are as large as what comes before or after.
    fn stacks_that_chain(&mut self) -> bool {
        let (starts, ends) = self.sorted();
        let mut pairs = Vec::new();
        self.twins(|join, p, q| {
            let (span, size) = (join.blocks[p].span, join.blocks[p].size + join.blocks[q].size);
            if !at(&starts, span.1, size).is_empty() || !at(&ends, span.0, size).is_empty() {
                pairs.push((p, q));
            }
        });
        sort::by_key(&mut pairs, |&(p, q)| std::cmp::Reverse(self.draw(p, q)));
        self.join(pairs.into_iter().map(|(p, q)| self.stack(p, q)).collect())
    }

    /// Joins four blocks that go around a fifth, the least that no straight cut takes apart.
    fn wheels(&mut self) -> bool {
        let (starts, ends) = self.sorted();
        let of = |b: usize| &self.blocks[b];
        let mut made = Vec::new();
        for &hub in &self.left {
            let (middle, (from, to)) = (of(hub).size, of(hub).span);
            for &(_, high, above) in at_boundary(&starts, from) {
                for &(_, _, before) in at(&ends, from, high + middle) {
                    for &(_, right, after) in at_boundary(&starts, to) {
                        if of(after).span.1 != of(above).span.1 || right <= middle {
                            continue;
                        }
                        let low = right - middle;
                        for &(_, _, below) in at(&ends, to, low) {
                            if of(below).span.0 == of(before).span.0 {
                                let parts = vec![
                                    (below, 0),
                                    (after, 0),
                                    (hub, low),
                                    (before, low),
                                    (above, right),
                                ];
                                let span = (of(before).span.0, of(above).span.1);
                                made.push(JoinedBlock { span, size: right + high, parts });
                            }
                        }
                    }
                }
            }
        }
        sort::by_key(&mut made, |block| {
            std::cmp::Reverse(self.draw(block.parts[2].0, block.parts[3].0))
        });
        self.join(made)
    }

    /// Joins one pair that may as well belong elsewhere: none in every fourth attempt, and others in each of the rest.
    fn any(&mut self) -> bool {
        match self.shuffle % 4 {
            0 => false,
            1 => self.any_stack() || self.chains(true),
            2 => self.chains(true) || self.any_stack(),
            _ => self.chains(true),
        }
    }

    fn any_stack(&mut self) -> bool {
        let mut best = None;
        self.twins(|join, p, q| best = best.max(Some((join.draw(p, q), p, q))));
        match best {
            Some((_, p, q)) => self.join(vec![self.stack(p, q)]),
            None => false,
        }
    }

    /// Tells of all pairs of one lifetime.
    fn twins(&self, mut tell: impl FnMut(&Join, usize, usize)) {
        let mut order = self.left.clone();
        order.sort_unstable_by_key(|&b| (self.blocks[b].span, b));
        for group in order.chunk_by(|&p, &q| self.blocks[p].span == self.blocks[q].span) {
            for (k, &p) in group.iter().enumerate() {
                group[k + 1..].iter().take(MOST_TWINS).for_each(|&q| tell(self, p, q));
            }
        }
    }

    /// A number for a pair, from a fixed sequence.
    fn draw(&self, p: usize, q: usize) -> u64 {
        mix(mix(self.shuffle) ^ ((p as u64) << 32 | q as u64))
    }
}

/// Others of its lifetime that a block is tried with.
const MOST_TWINS: usize = 8;

/// Those with that boundary.
fn at_boundary(sorted: &[Edge], boundary: u32) -> &[Edge] {
    let from = sorted.partition_point(|&(b, _, _)| b < boundary);
    let to = sorted.partition_point(|&(b, _, _)| b <= boundary);
    &sorted[from..to]
}

/// Those with that boundary and size.
fn at(sorted: &[Edge], boundary: u32, size: u64) -> &[Edge] {
    let from = sorted.partition_point(|&(b, s, _)| (b, s) < (boundary, size));
    let to = sorted.partition_point(|&(b, s, _)| (b, s) <= (boundary, size));
    &sorted[from..to]
}

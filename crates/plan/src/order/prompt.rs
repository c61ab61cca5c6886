//! An order with what leaves no more bytes than it frees as soon as it can run: the product that is the last to read a wide
//! gradient comes right behind the gradient, and the update right behind the product.
//!
//! Orders that differ in nothing but how long a value waits for its last reader often have one peak. What is done to fit a budget
//! tells them apart: a value that waits for long lives beside everything that is recomputed meanwhile, and no segment holds all
//! of its readers.
//!
//! Decision: `docs/decisions/segments-in-pieces.md`.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::limits::Limits;
use super::pressure::Pressure;

/// An order that holds all limits, changed so.
pub fn order(base: &[u32], limits: &Limits, pressure: &Pressure) -> Vec<u32> {
    let mut making = Making::new(base, limits, pressure);
    for n in base {
        if !making.done[*n as usize] {
            making.run(*n);
        }
        while let Some(Reverse((_, n))) = making.open.pop() {
            if making.may_run(n) {
                making.run(n);
            }
        }
    }
    making.made
}

struct Making<'a> {
    limits: &'a Limits,
    pressure: &'a Pressure,
    /// Nodes that wait for each.
    after: Vec<Vec<u32>>,
    /// How many each waits for.
    missing: Vec<usize>,
    /// Nodes that read each root, and how many of them have not run.
    readers: Vec<Vec<u32>>,
    left: Vec<usize>,
    /// The place of each node in the order that it is made of.
    place: Vec<u32>,
    /// How many of the nodes that can fail have run, without a gap.
    failed: usize,
    /// Nodes that wait for one that can fail.
    waiting: Vec<u32>,
    /// Nodes that may have become able to run, the first of the order first.
    open: BinaryHeap<Reverse<(u32, u32)>>,
    done: Vec<bool>,
    made: Vec<u32>,
}

impl<'a> Making<'a> {
    fn new(base: &[u32], limits: &'a Limits, pressure: &'a Pressure) -> Making<'a> {
        let count = limits.count();
        let mut after: Vec<Vec<u32>> = vec![Vec::new(); count];
        for (n, before) in limits.before.iter().enumerate() {
            before.iter().for_each(|b| after[*b as usize].push(n as u32));
        }
        let mut readers: Vec<Vec<u32>> = vec![Vec::new(); pressure.size.len()];
        for (n, needs) in pressure.nodes.iter().enumerate() {
            needs.reads.iter().for_each(|root| readers[*root as usize].push(n as u32));
        }
        let mut place = vec![0; count];
        base.iter().zip(0..).for_each(|(n, at)| place[*n as usize] = at);
        Making {
            limits,
            pressure,
            missing: limits.before.iter().map(|before| before.len()).collect(),
            left: readers.iter().map(Vec::len).collect(),
            after,
            readers,
            place,
            failed: 0,
            waiting: Vec::new(),
            open: BinaryHeap::new(),
            done: vec![false; count],
            made: Vec::with_capacity(count),
        }
    }

    fn run(&mut self, n: u32) {
        self.done[n as usize] = true;
        self.made.push(n);
        for next in &self.after[n as usize] {
            self.missing[*next as usize] -= 1;
            self.open.push(Reverse((self.place[*next as usize], *next)));
        }
        for root in &self.pressure.nodes[n as usize].reads {
            let root = *root as usize;
            self.left[root] -= 1;
            if self.left[root] == 1 {
                let last = self.readers[root].iter().find(|r| !self.done[**r as usize]);
                let place = |r: &u32| Reverse((self.place[*r as usize], *r));
                self.open.extend(last.map(place));
            }
        }
        let before = self.failed;
        let failing = &self.limits.failing;
        while failing.get(self.failed).is_some_and(|f| self.done[*f as usize]) {
            self.failed += 1;
        }
        if self.failed > before {
            let place = |n: u32| Reverse((self.place[n as usize], n));
            self.open.extend(std::mem::take(&mut self.waiting).into_iter().map(place));
        }
    }

    /// Whether a node can run, and leaves no more than it frees of what it reads.
    fn may_run(&mut self, n: u32) -> bool {
        let at = n as usize;
        if self.done[at] || self.missing[at] > 0 || self.leaves(n).is_none_or(|left| left > 0) {
            return false;
        }
        if self.limits.waits[at] && self.limits.failing.get(self.failed).is_some_and(|f| *f < n) {
            self.waiting.push(n);
            return false;
        }
        true
    }

    /// Bytes that a node makes, less those that it frees; `None` of one that reads nothing of the arena.
    fn leaves(&self, n: u32) -> Option<i64> {
        let needs = &self.pressure.nodes[n as usize];
        let made: u64 = needs.makes.iter().map(|r| self.pressure.size[*r as usize]).sum();
        let read =
            || needs.reads.iter().map(|r| *r as usize).filter(|r| self.pressure.in_arena[*r]);
        read().next()?;
        let freed = read().filter(|r| self.left[*r] == 1 && !self.pressure.stays[*r]);
        Some(made as i64 - freed.map(|r| self.pressure.size[r]).sum::<u64>() as i64)
    }
}

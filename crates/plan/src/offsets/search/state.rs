//! What the search knows at one point: which items are placed, and how low the others can start.
//!
//! Every section has a floor: no unplaced item starts below it there. An item's least offset is the highest
//! floor among its sections; a section's floor is the lowest least offset among its unplaced items. [`SearchState`]
//! keeps both at their fixed point, and refuses as soon as a section's floor and the sizes still to come
//! exceed the capacity. Everything is written to a trail, so going back costs what going forward did.

use std::cell::Cell;

use crate::offsets::sections::Component;

/// One change, with what was there before.
enum TrailEntry {
    Floor(u32, u64),
    Least(u32, u64),
    Placed(u32),
}

/// A run of sections, `[first, last)`, that no unplaced item leaves.
pub(super) type Scope = (u32, u32);

pub(super) struct SearchState<'a> {
    pub(super) component: &'a Component,
    pub(super) capacity: u64,
    /// The items of each section, the unplaced ones first.
    members: Vec<Vec<u32>>,
    /// Where each item is among the members of its first section, of the next and so on; item by item.
    at: Vec<u32>,
    /// By item: where its own begin in that.
    first_at: Vec<usize>,
    /// Those of them that begin there.
    starts: Vec<Vec<u32>>,
    /// By section: where the lowest unplaced item can start at best.
    pub(super) floor: Vec<u64>,
    /// By section: the sizes of its unplaced items.
    pub(super) rest: Vec<u64>,
    /// By section: how many items are unplaced.
    left: Vec<u32>,
    /// By item: where it can start at best.
    pub(super) least: Vec<u64>,
    placed: Vec<bool>,
    pub(super) offsets: Vec<u64>,
    trail: Vec<TrailEntry>,
    /// Sections whose floor may have to rise.
    queue: Vec<u32>,
    queued: Vec<bool>,
    /// Items looked at so far: what the time goes into.
    pub(super) work: Cell<u64>,
}

impl<'a> SearchState<'a> {
    pub(super) fn new(component: &'a Component, capacity: u64) -> SearchState<'a> {
        let (items, sections) = (component.len(), component.load.len());
        let members = component.members();
        let mut starts = vec![Vec::new(); sections];
        (0..items).for_each(|i| starts[component.span[i].0 as usize].push(i as u32));
        let mut first_at = Vec::with_capacity(items);
        let mut total = 0;
        for span in &component.span {
            first_at.push(total);
            total += (span.1 - span.0) as usize;
        }
        let mut at = vec![0; total];
        for (s, members) in members.iter().enumerate() {
            for (k, &i) in members.iter().enumerate() {
                at[first_at[i as usize] + s - component.span[i as usize].0 as usize] = k as u32;
            }
        }
        SearchState {
            component,
            capacity,
            left: members.iter().map(|members| members.len() as u32).collect(),
            members,
            at,
            first_at,
            starts,
            floor: vec![0; sections],
            rest: component.load.clone(),
            least: vec![0; items],
            placed: vec![false; items],
            offsets: vec![0; items],
            trail: Vec::new(),
            queue: Vec::new(),
            queued: vec![false; sections],
            work: Cell::new(0),
        }
    }

    /// The unplaced items of a section.
    pub(super) fn open(&self, section: u32) -> impl Iterator<Item = u32> + '_ {
        let open = &self.members[section as usize][..self.left[section as usize] as usize];
        // A section costs something by itself.
        self.work.set(self.work.get() + open.len() as u64 + 4);
        open.iter().copied()
    }

    /// Moves an item behind the unplaced ones of a section. Taken back in the opposite order, it only has to be counted again.
    fn leave(&mut self, item: u32, s: usize) {
        let spot =
            |i: u32| self.first_at[i as usize] + s - self.component.span[i as usize].0 as usize;
        let last = self.left[s] as usize - 1;
        let other = self.members[s][last];
        let (own, others) = (spot(item), spot(other));
        let k = self.at[own];
        self.members[s].swap(k as usize, last);
        (self.at[own], self.at[others]) = (last as u32, k);
        self.left[s] = last as u32;
    }

    /// The unplaced items that begin with a section.
    pub(super) fn starting(&self, section: u32) -> impl Iterator<Item = u32> + '_ {
        let starts = &self.starts[section as usize];
        self.work.set(self.work.get() + starts.len() as u64 + 2);
        starts.iter().copied().filter(|&i| !self.placed[i as usize])
    }

    /// True where all items of a section are placed.
    pub(super) fn done(&self, section: u32) -> bool {
        self.left[section as usize] == 0
    }

    /// What a section can still waste.
    pub(super) fn slack(&self, section: u32) -> u64 {
        let s = section as usize;
        self.capacity - self.rest[s] - self.floor[s]
    }

    /// Where the trail stands, for [`SearchState::undo_to`].
    pub(super) fn mark(&self) -> usize {
        self.trail.len()
    }

    pub(super) fn undo_to(&mut self, mark: usize) {
        for change in self.trail.drain(mark..).rev() {
            match change {
                TrailEntry::Floor(s, floor) => self.floor[s as usize] = floor,
                TrailEntry::Least(i, least) => self.least[i as usize] = least,
                TrailEntry::Placed(i) => {
                    self.placed[i as usize] = false;
                    for s in run(self.component.span[i as usize]) {
                        self.rest[s] += self.component.size[i as usize];
                        self.left[s] += 1;
                    }
                }
            }
        }
    }

    /// Places an item. Errs with the section that does not fit the capacity any more.
    pub(super) fn place(&mut self, item: u32, offset: u64) -> Result<(), u32> {
        let i = item as usize;
        let (span, size) = (self.component.span[i], self.component.size[i]);
        self.offsets[i] = offset;
        self.placed[i] = true;
        self.trail.push(TrailEntry::Placed(item));
        for s in run(span) {
            self.rest[s] -= size;
            self.leave(item, s);
        }
        for s in span.0..span.1 {
            if !self.done(s) {
                self.raise_one(s, offset + size)?;
                self.enqueue(s);
            }
        }
        self.settle()
    }

    /// Rules that no unplaced item starts below `floor` in a section.
    pub(super) fn raise(&mut self, section: u32, floor: u64) -> Result<(), u32> {
        self.raise_one(section, floor)?;
        self.settle()
    }

    fn raise_one(&mut self, section: u32, floor: u64) -> Result<(), u32> {
        let s = section as usize;
        if self.floor[s] >= floor {
            return Ok(());
        }
        self.trail.push(TrailEntry::Floor(section, self.floor[s]));
        self.floor[s] = floor;
        if floor + self.rest[s] > self.capacity {
            self.drain();
            return Err(section);
        }
        self.work.set(self.work.get() + u64::from(self.left[s]));
        for k in 0..self.left[s] as usize {
            let item = self.members[s][k];
            let i = item as usize;
            if self.least[i] < floor {
                self.trail.push(TrailEntry::Least(item, self.least[i]));
                self.least[i] = floor;
                for s in self.component.span[i].0..self.component.span[i].1 {
                    self.enqueue(s);
                }
            }
        }
        Ok(())
    }

    fn enqueue(&mut self, section: u32) {
        if !std::mem::replace(&mut self.queued[section as usize], true) {
            self.queue.push(section);
        }
    }

    fn drain(&mut self) {
        for s in self.queue.drain(..) {
            self.queued[s as usize] = false;
        }
    }

    /// Raises floors until none has to.
    fn settle(&mut self) -> Result<(), u32> {
        while let Some(s) = self.queue.pop() {
            self.queued[s as usize] = false;
            if let Some(lowest) = self.open(s).map(|i| self.least[i as usize]).min() {
                self.raise_one(s, lowest)?;
            }
        }
        Ok(())
    }

    /// The least floor of a valley's section, given that no item starts on the floor it has: an item
    /// that could start there has to rest on an unplaced item beside the section instead. `None` where
    /// the capacity forbids it.
    pub(super) fn next_floor(&self, section: u32) -> Option<u64> {
        let level = self.floor[section as usize];
        let (mut lowest, mut first, mut last) = (u64::MAX, section, section + 1);
        for i in self.open(section) {
            let (i, span) = (i as usize, self.component.span[i as usize]);
            if self.least[i] > level {
                lowest = lowest.min(self.least[i]);
            } else {
                (first, last) = (first.min(span.0), last.max(span.1));
            }
        }
        // Spans around one section form one run: what supports one of those items is anywhere in it.
        for s in (first..last).filter(|&s| s != section) {
            for i in self.open(s) {
                let (i, span) = (i as usize, self.component.span[i as usize]);
                if !(span.0..span.1).contains(&section) {
                    lowest = lowest.min(self.least[i] + self.component.size[i]);
                }
            }
        }
        let fits =
            |&floor: &u64| floor.checked_add(self.rest[section as usize]) <= Some(self.capacity);
        Some(lowest).filter(|&lowest| lowest != u64::MAX).filter(fits)
    }

    /// The scopes that a scope falls apart into: no unplaced item joins them, so each is a problem
    /// of its own.
    pub(super) fn split(&self, scope: Scope, out: &mut Vec<Scope>) {
        let mut s = scope.0;
        while s < scope.1 {
            let first = s;
            let mut last = s;
            while s <= last && s < scope.1 {
                // Whatever reaches a section begins in the scope too.
                last = self
                    .starting(s)
                    .map(|i| self.component.span[i as usize].1 - 1)
                    .fold(last, u32::max);
                s += 1;
            }
            if !self.done(first) {
                out.push((first, s));
            }
        }
    }

    /// A name for what is left in a scope: its unplaced items and its floors. Whether they can be
    /// completed depends on nothing else.
    pub(super) fn key(&self, scope: Scope) -> u128 {
        let (mut high, mut low) = (0u64, 0u64);
        let mut add = |x: u64| {
            high = high.wrapping_add(x);
            low = low.wrapping_add(mix(x));
        };
        for s in scope.0..scope.1 {
            if self.done(s) {
                continue;
            }
            add(mix(self.floor[s as usize].wrapping_mul(0xd6e8_feb8_6659_fd93) ^ u64::from(s)));
            for i in self.starting(s) {
                add(mix(u64::from(i) ^ (1 << 63)));
            }
        }
        // Never zero, which stands for nothing remembered.
        1 << 127 | u128::from(high) << 64 | u128::from(low)
    }
}

/// Sections as indices.
fn run(span: (u32, u32)) -> std::ops::Range<usize> {
    span.0 as usize..span.1 as usize
}

/// Scatters bits (the finalizer of SplitMix64): a fixed function, so the search stays deterministic.
pub(in crate::offsets) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

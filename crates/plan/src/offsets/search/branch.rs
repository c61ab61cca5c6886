//! Attempts of the search: decisions on a stack, taken back when they fail.

use super::SearchOutcome;
use super::rows::ReachableRows;
use super::state::{Scope, SearchState};
use crate::offsets::sections::Component;
use crate::sort;

/// The index before the first: no frame, or the end of a list.
const NIL: usize = usize::MAX;
/// Slots for what has failed: 16 MiB at most.
const MAX_SLOTS: u64 = 1 << 20;
/// Looked-at items that count as one node.
const WORK: u64 = 32_768;
/// How often the caller is asked whether to stop, in decisions.
const ASK: u64 = 64;

/// Nodes that a decision counts for: what follows from it is looked for among all items.
pub(in crate::offsets) fn weight(component: &Component) -> u64 {
    1 + component.len() as u64 / 128
}

/// What attempts at one capacity pass on.
pub(super) struct Memory {
    /// Keys of scopes that cannot be completed, each in the slot that its bits name; a later one takes
    /// the slot of an earlier one. Zero is an empty slot.
    failed: Vec<u128>,
    /// By section: how often it failed, later failures counting more.
    weight: Vec<f64>,
    bump: f64,
}

impl Memory {
    fn new(component: &Component, nodes: u64) -> Memory {
        let slots = nodes.clamp(1, MAX_SLOTS).next_power_of_two();
        Memory {
            failed: vec![0; slots as usize],
            weight: vec![0.0; component.load.len()],
            bump: 1.0,
        }
    }

    /// How often a section failed.
    pub(in crate::offsets) fn weight(&self, section: u32) -> f64 {
        self.weight[section as usize] / self.bump
    }

    fn slot(&mut self, key: u128) -> &mut u128 {
        let slot = key as usize & (self.failed.len() - 1);
        &mut self.failed[slot]
    }

    fn blame(&mut self, section: u32) {
        self.weight[section as usize] += self.bump;
        self.bump *= 1.0005;
        if self.bump > 1e100 {
            self.weight.iter_mut().for_each(|weight| *weight *= 1e-100);
            self.bump *= 1e-100;
        }
    }
}

/// A decision about the lowest item over one section.
struct SearchFrame {
    scope: Scope,
    section: u32,
    /// Its choices: up to here in [`Attempt::choices`], from the next one to try.
    next: usize,
    end: usize,
    /// The last case, that no item starts on the floor, is still to be tried.
    may_leave: bool,
    /// The frame whose decision cut this scope off: where a failure returns to.
    owner: usize,
    /// What to restore before each case.
    mark: usize,
    pending: usize,
    pendings: usize,
    key: u128,
}

/// A scope that is still to be solved: a list that frames share.
#[derive(Clone, Copy)]
struct Pending {
    scope: Scope,
    owner: usize,
    next: usize,
}

/// Which of several items is tried first: by its place in an order.
pub(super) enum Preference {
    /// What fits a valley's walls comes before the order.
    Fits(Vec<u32>),
    /// The order alone.
    Guide(Vec<u32>),
}

/// A search at one capacity, from the start each time it runs.
pub(super) struct Attempt<'a> {
    state: SearchState<'a>,
    preference: Preference,
    memory: Memory,
    frames: Vec<SearchFrame>,
    choices: Vec<u32>,
    pendings: Vec<Pending>,
    /// Lent to [`SearchState::split`], so that it need not allocate.
    scopes: Vec<Scope>,
    rows: ReachableRows,
    decisions: u64,
    /// Nodes that a decision counts for.
    weight: u64,
}

impl<'a> Attempt<'a> {
    /// Remembers failures for about that many nodes.
    pub(super) fn new(component: &'a Component, capacity: u64, nodes: u64) -> Attempt<'a> {
        Attempt {
            state: SearchState::new(component, capacity),
            preference: Preference::Guide(Vec::new()),
            memory: Memory::new(component, nodes / weight(component)),
            frames: Vec::new(),
            choices: Vec::new(),
            pendings: Vec::new(),
            scopes: Vec::new(),
            rows: ReachableRows::default(),
            decisions: 0,
            weight: weight(component),
        }
    }

    /// Nodes used in all, with what wide sections add to them.
    pub(super) fn nodes(&self) -> u64 {
        self.decisions * self.weight + self.state.work.get() / WORK
    }

    /// Searches until it is decided, `limit` nodes are used in all or `stop` answers true. What failed in
    /// earlier runs stays known.
    pub(super) fn run(
        &mut self,
        preference: Preference,
        limit: u64,
        stop: &mut dyn FnMut() -> bool,
    ) -> SearchOutcome {
        self.preference = preference;
        self.state.undo_to(0);
        self.frames.clear();
        self.pendings.clear();
        let all = (0, self.state.component.load.len() as u32);
        let mut head = self.postpone(all, NIL, NIL);
        while head != NIL {
            let pending = self.pendings[head];
            let key = self.state.key(pending.scope);
            let mut failed = *self.memory.slot(key) == key;
            let mut owner = pending.owner;
            if !failed {
                self.decide(pending, key);
            }
            head = loop {
                if failed {
                    if owner == NIL {
                        return SearchOutcome::None;
                    }
                    // Frames above the owner solved other scopes, which cannot help this one.
                    self.frames.truncate(owner + 1);
                }
                if self.nodes() >= limit || (self.decisions.is_multiple_of(ASK) && stop()) {
                    return SearchOutcome::Unknown;
                }
                match self.try_next() {
                    CaseOutcome::Holds(head) => break head,
                    CaseOutcome::Fails => failed = false,
                    CaseOutcome::Exhausted(frame_owner) => (failed, owner) = (true, frame_owner),
                }
            };
        }
        SearchOutcome::Found(std::mem::take(&mut self.state.offsets))
    }

    /// Puts the pieces of a scope before the list, the smallest first; returns the new head.
    fn postpone(&mut self, scope: Scope, owner: usize, mut next: usize) -> usize {
        self.scopes.clear();
        self.state.split(scope, &mut self.scopes);
        sort::by_key(&mut self.scopes, |scope| std::cmp::Reverse(scope.1 - scope.0));
        for &scope in &self.scopes {
            self.pendings.push(Pending { scope, owner, next });
            next = self.pendings.len() - 1;
        }
        next
    }

    /// Opens a frame for a scope. Without a case where some valley cannot be covered.
    fn decide(&mut self, pending: Pending, key: u128) {
        let start = self.frames.last().map_or(0, |frame| frame.end);
        self.choices.truncate(start);
        let state = &self.state;
        let mut chosen = (pending.scope.0, false);
        match self.rows.choose(state, &self.memory, pending.scope) {
            Err(section) => self.memory.blame(section),
            Ok((section, row)) => {
                let walls = Walls::around(state, pending.scope, section);
                let fits = |&i: &u32| {
                    state.least[i as usize] == walls.level
                        && row.holds(state.component.span[i as usize])
                };
                self.choices.extend(state.open(section).filter(fits));
                let choices = &mut self.choices[start..];
                match &self.preference {
                    Preference::Guide(rank) => choices.sort_by_key(|&i| rank[i as usize]),
                    Preference::Fits(rank) => choices.sort_by_cached_key(|&i| {
                        (walls.misfit(state.component, i), rank[i as usize])
                    }),
                }
                chosen = (section, row.may_leave);
            }
        }
        self.frames.push(SearchFrame {
            scope: pending.scope,
            section: chosen.0,
            next: start,
            end: self.choices.len(),
            may_leave: chosen.1,
            owner: pending.owner,
            mark: self.state.mark(),
            pending: pending.next,
            pendings: self.pendings.len(),
            key,
        });
    }

    /// The next case of the top frame.
    fn try_next(&mut self) -> CaseOutcome {
        let top = self.frames.len().wrapping_sub(1);
        let Some(frame) = self.frames.last_mut() else { return CaseOutcome::Exhausted(NIL) };
        self.state.undo_to(frame.mark);
        self.pendings.truncate(frame.pendings);
        let section = frame.section;
        let done = if frame.next < frame.end {
            let item = self.choices[frame.next];
            frame.next += 1;
            let component = self.state.component;
            // Equal items are one choice.
            while frame.next < frame.end && equal(component, item, self.choices[frame.next]) {
                frame.next += 1;
            }
            self.state.place(item, self.state.floor[section as usize])
        } else if std::mem::take(&mut frame.may_leave) {
            let Some(floor) = self.state.next_floor(section) else {
                return CaseOutcome::Fails;
            };
            self.state.raise(section, floor)
        } else {
            *self.memory.slot(frame.key) = frame.key;
            return CaseOutcome::Exhausted(frame.owner);
        };
        self.decisions += 1;
        if let Err(section) = done {
            self.memory.blame(section);
            return CaseOutcome::Fails;
        }
        let (scope, next) = (frame.scope, frame.pending);
        CaseOutcome::Holds(self.postpone(scope, top, next))
    }
}

/// What came of a case.
enum CaseOutcome {
    /// The list of scopes to go on with.
    Holds(usize),
    Fails,
    /// All cases failed; where to go back to.
    Exhausted(usize),
}

fn equal(component: &Component, a: u32, b: u32) -> bool {
    let of = |i: u32| (component.span[i as usize], component.size[i as usize]);
    of(a) == of(b)
}

/// The valley around a section, with the floors beside it.
struct Walls {
    first: u32,
    last: u32,
    level: u64,
    left: u64,
    right: u64,
}

impl Walls {
    fn around(state: &SearchState, scope: Scope, section: u32) -> Walls {
        let floor = |s: u32| state.floor[s as usize];
        let level = floor(section);
        let first = (scope.0..section).rev().take_while(|&s| floor(s) == level).last();
        let first = first.unwrap_or(section);
        let last = (section..scope.1).find(|&s| floor(s) != level).unwrap_or(scope.1);
        // Beyond the scope everything is placed: a wall that no item reaches the top of.
        let left = if first > scope.0 { floor(first - 1) } else { u64::MAX };
        let right = if last < scope.1 { floor(last) } else { u64::MAX };
        Walls { first, last, level, left, right }
    }

    /// How badly an item suits the valley: 0 where it joins both walls and ends level with them.
    fn misfit(&self, component: &Component, item: u32) -> u32 {
        let (first, last) = component.span[item as usize];
        let top = self.level + component.size[item as usize];
        let side = |touches: bool, wall: u64| match (touches, top == wall) {
            (true, true) => 0,
            (true, false) => 2,
            (false, _) => 3,
        };
        side(first == self.first, self.left) + side(last == self.last, self.right)
    }
}

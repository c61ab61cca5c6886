//! Traces and plans that are cached, up to a bound in bytes; the least recently used give way.
//!
//! The invariant: what is held, keys and tables included, is what the ledger is told, and no more than the
//! bound. Looking something up is a hash away, however much is held.

use std::collections::HashMap;
use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::heap::{Heap, Seen};
use tonnage_plan::{Allowed, Frontier, Plan};
use tonnage_runtime::{Owner, Tally, host_ledger};

use super::budgets::{Budget, Budgets};
use super::captures::Captures;
use super::choice::{Levers, PlanKey};
use super::key::{CallKey, QuickBuild};
use super::program::TracedProgram;
use super::ran::Ran;

/// What traces and plans of one function may take unless it is told otherwise.
pub(crate) const LIMIT: Bytes = Bytes::mib(64);

/// Something that was traced.
pub(crate) trait HasProgram: Heap {
    fn program(&self) -> &TracedProgram;
}

struct CacheEntry<V> {
    value: Arc<V>,
    bytes: usize,
    /// When it was last asked for.
    used: u64,
}

/// The traces and plans of one function, or of one session.
pub(crate) struct TraceCache<T> {
    traces: HashMap<CallKey, CacheEntry<T>, QuickBuild>,
    plans: HashMap<PlanKey, CacheEntry<Plan>, QuickBuild>,
    /// frontiers of plans, for calls that had to take less than their plan.
    frontiers: HashMap<PlanKey, CacheEntry<Frontier>, QuickBuild>,
    /// Traces with open dims, by what their signatures have in common apart from sizes.
    open: HashMap<CallKey, Vec<CallKey>, QuickBuild>,
    /// What the entries take.
    bytes: usize,
    limit: usize,
    /// What every call has to fit into.
    budget: Budgets,
    /// What others hold beside the call, in the same budget.
    beside: Bytes,
    /// Whether plans are made for parameters that have bytes, also where they are still recipes.
    settled: bool,
    /// Whether values may wait in a file for that.
    may_spill: bool,
    /// What else may be done for it.
    allowed: Allowed,
    /// What the last call took.
    last: Option<Ran>,
    clock: u64,
    tally: Tally,
    captures: Arc<Captures>,
}

/// Traces and frontiers of this many bytes are worth giving back to the system when they go.
pub(super) const WORTH_GIVING_BACK: usize = 1 << 20;

impl<T> Drop for TraceCache<T> {
    /// Many small pieces: the allocator would keep their pages for the next ones.
    fn drop(&mut self) {
        self.traces.clear();
        self.plans.clear();
        self.frontiers.clear();
        if self.bytes >= WORTH_GIVING_BACK {
            tonnage_runtime::system::give_back_heap();
        }
    }
}

impl<T: HasProgram> TraceCache<T> {
    pub fn new(owner: Owner) -> TraceCache<T> {
        TraceCache {
            traces: HashMap::default(),
            plans: HashMap::default(),
            frontiers: HashMap::default(),
            open: HashMap::default(),
            bytes: 0,
            limit: LIMIT.as_usize(),
            budget: Budgets::default(),
            beside: Bytes::ZERO,
            settled: false,
            may_spill: true,
            last: None,
            allowed: Allowed::default(),
            clock: 0,
            captures: Captures::new(owner.clone()),
            tally: host_ledger().tally(owner),
        }
    }

    pub fn set_limit(&mut self, limit: Bytes) {
        self.limit = limit.as_usize();
        self.settle();
    }

    /// Every call has to fit into that from here on; plans for another budget are forgotten.
    pub fn set_budget(&mut self, budget: Option<Budget>) {
        self.budget = budget.map_or(Budgets::default(), Budgets::from);
        self.forget_plans();
    }

    /// What others hold of the budget.
    pub fn set_beside(&mut self, beside: Bytes) {
        self.beside = beside;
        self.forget_plans();
    }

    /// Plans are made for parameters that have bytes from here on.
    pub fn set_settled(&mut self) {
        self.settled = true;
        self.forget_plans();
    }

    /// Whether plans are made for parameters that have bytes.
    pub fn is_settled(&self) -> bool {
        self.settled
    }

    /// No value waits in a file from here on.
    pub fn forbid_spilling(&mut self) {
        self.may_spill = false;
        self.forget_plans();
    }

    /// What may be done for a budget from here on; plans that did something else are forgotten.
    pub fn set_allowed(&mut self, allowed: Allowed) {
        self.allowed = allowed;
        self.forget_plans();
    }

    /// What plans are made for, and what may be done to fit.
    pub fn levers(&self) -> Levers {
        let machine = crate::calibrate::machine();
        let machine = if self.may_spill { machine } else { machine.without_disk() };
        Levers { machine, allowed: self.allowed, beside: self.beside }
    }

    /// Forgets plans and frontiers: they were made for another budget, or by other levers.
    fn forget_plans(&mut self) {
        self.bytes -= self.plans.values().map(|e| e.bytes).sum::<usize>()
            + self.frontiers.values().map(|e| e.bytes).sum::<usize>();
        self.plans = HashMap::default();
        self.frontiers = HashMap::default();
        self.settle();
    }

    pub fn budget(&self) -> Budgets {
        self.budget
    }

    /// What the budget leaves for a call.
    pub fn room(&self) -> Budgets {
        let bytes = self.budget.bytes.map(|bytes| bytes.saturating_sub(self.beside));
        Budgets { bytes, ..self.budget }
    }

    /// What the last call took.
    pub fn last(&self) -> Option<Ran> {
        self.last
    }

    pub fn set_last(&mut self, ran: Ran) {
        self.last = Some(ran);
    }

    /// How many traces there are.
    pub fn traces(&self) -> usize {
        self.traces.len()
    }

    /// What all of it takes, tables included.
    pub fn bytes(&self) -> usize {
        self.bytes
            + table::<CallKey, CacheEntry<T>>(self.traces.capacity())
            + table::<PlanKey, CacheEntry<Plan>>(self.plans.capacity())
            + table::<PlanKey, CacheEntry<Frontier>>(self.frontiers.capacity())
            + table::<CallKey, Vec<CallKey>>(self.open.capacity())
    }

    /// The trace for just that signature.
    pub fn trace(&mut self, key: &CallKey) -> Option<Arc<T>> {
        self.clock += 1;
        let entry = self.traces.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// A trace with open dims that such a call fits.
    pub fn open_trace(&mut self, key: &CallKey) -> Option<Arc<T>> {
        if self.open.is_empty() {
            return None;
        }
        let keys = self.open.get(&key.coarse())?;
        let fits = |k: &&CallKey| {
            let entry = self.traces.get(*k);
            entry.is_some_and(|e| e.value.program().signature.bind(key).is_some())
        };
        let found = keys.iter().find(fits)?.clone();
        self.trace(&found)
    }

    /// Caches a trace; where another thread was quicker, its trace stays and is returned. One that is
    /// open is found by every call that fits its signature.
    pub fn insert_trace(&mut self, key: CallKey, made: Arc<T>, is_open: bool) -> Arc<T> {
        if let Some(first) = self.trace(&key) {
            return first;
        }
        let mut seen = Seen::default();
        let mut bytes = key.heap(&mut seen) + made.heap(&mut seen);
        if bytes > self.limit {
            return made;
        }
        if is_open {
            let coarse = key.coarse();
            bytes += key.heap(&mut seen) + size_of::<CallKey>() + coarse.heap(&mut seen);
            self.open.entry(coarse).or_default().push(key.clone());
        }
        self.bytes += bytes;
        self.captures.add(made.program());
        self.traces.insert(key, CacheEntry { value: made.clone(), bytes, used: self.clock });
        self.settle();
        made
    }

    pub fn plan(&mut self, key: &PlanKey) -> Option<Arc<Plan>> {
        self.clock += 1;
        let entry = self.plans.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Caches a plan; `shared` is what its trace has counted already.
    pub fn insert_plan(&mut self, key: PlanKey, made: Arc<Plan>, mut shared: Seen) -> Arc<Plan> {
        if let Some(first) = self.plan(&key) {
            return first;
        }
        let bytes = key.heap(&mut shared) + made.heap(&mut shared);
        if bytes > self.limit {
            return made;
        }
        self.bytes += bytes;
        self.plans.insert(key, CacheEntry { value: made.clone(), bytes, used: self.clock });
        self.settle();
        made
    }

    pub fn frontier(&mut self, key: &PlanKey) -> Option<Arc<Frontier>> {
        self.clock += 1;
        let entry = self.frontiers.get_mut(key)?;
        entry.used = self.clock;
        Some(entry.value.clone())
    }

    /// Caches a frontier, or counts it anew: it grows by the plans that are asked of it.
    pub fn insert_frontier(&mut self, key: PlanKey, made: &Arc<Frontier>, mut shared: Seen) {
        self.clock += 1;
        self.bytes -= self.frontiers.remove(&key).map_or(0, |before| before.bytes);
        let bytes = key.heap(&mut shared) + made.heap(&mut shared);
        if bytes <= self.limit {
            self.bytes += bytes;
            self.frontiers.insert(key, CacheEntry { value: made.clone(), bytes, used: self.clock });
        }
        self.settle();
    }

    /// Forgets all of it.
    pub fn clear(&mut self) {
        self.traces = HashMap::default();
        self.plans = HashMap::default();
        self.frontiers = HashMap::default();
        self.open = HashMap::default();
        self.bytes = 0;
        self.captures.set(std::iter::empty());
        self.tally.set(Bytes::ZERO);
    }

    /// Holds the bound: what was used longest ago goes, until an eighth of the bound is free, so that a
    /// full cache is sorted once in a while and not at every call.
    fn settle(&mut self) {
        if self.bytes() > self.limit {
            let mut all: Vec<(u64, usize)> = (self.traces.values().map(|e| (e.used, e.bytes)))
                .chain(self.plans.values().map(|e| (e.used, e.bytes)))
                .chain(self.frontiers.values().map(|e| (e.used, e.bytes)))
                .collect();
            all.sort_unstable();
            let over = self.bytes().saturating_sub(self.limit - self.limit / 8);
            let mut gone = 0;
            let oldest = all.iter().find(|(_, bytes)| {
                gone += bytes;
                gone >= over
            });
            let before = oldest.or(all.last()).map_or(0, |(used, _)| *used);
            self.forget(before);
        }
        self.tally.set(Bytes::of(self.bytes()));
    }

    /// Forgets what was not used since, with the plans of traces that go.
    fn forget(&mut self, before: u64) {
        self.traces.retain(|_, entry| entry.used > before);
        self.captures.set(self.traces.values().map(|entry| entry.value.program()));
        let traces = &self.traces;
        self.open.retain(|_, keys| {
            keys.retain(|key| traces.contains_key(key));
            !keys.is_empty()
        });
        let alive: std::collections::HashSet<u64> =
            self.traces.values().map(|e| e.value.program().number).collect();
        self.plans.retain(|key, e| e.used > before && alive.contains(&key.program));
        self.frontiers.retain(|key, e| e.used > before && alive.contains(&key.program));
        self.traces.shrink_to_fit();
        self.plans.shrink_to_fit();
        self.frontiers.shrink_to_fit();
        self.open.shrink_to_fit();
        self.bytes = self.traces.values().map(|e| e.bytes).sum::<usize>()
            + self.plans.values().map(|e| e.bytes).sum::<usize>()
            + self.frontiers.values().map(|e| e.bytes).sum::<usize>();
    }
}

/// What a table of the standard library takes: an entry and a control byte a bucket, of which seven in
/// eight are used at most.
fn table<K, V>(capacity: usize) -> usize {
    match capacity {
        0 => 0,
        n => {
            let buckets =
                if n < 8 { (n + 1).next_power_of_two() } else { (n * 8 / 7).next_power_of_two() };
            buckets * (size_of::<(K, V)>() + 1) + 16
        }
    }
}

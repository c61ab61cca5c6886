//! What the ledger's mutex guards: the entries, the sums, the limit and the cache.
//!
//! Each method leaves the sums true: `in_use` is the sum of the entries, the marks are at least what
//! they mark, and [`Books::settle`] holds the cache under its bounds.

use std::collections::HashMap;

use tonnage_core::bytes::LARGE;
use tonnage_core::error::{Holder as ErrorHolder, Shortage};
use tonnage_core::{Bytes, Device, ErrorKind, Kind, Result, Source};

use super::slab::{Id, Slab};
use super::{Holder, Info, Owner, Space};
use crate::cache::{BlockCache, IDLE};
use crate::system::MemoryBlock;
use crate::timeline::{Timeline, TimelineRecorder};

/// One live buffer.
#[derive(Debug)]
struct LedgerEntry {
    owner: Owner,
    bytes: Bytes,
    /// Its size had been given back to the system, and was wanted again.
    wanted_again: bool,
}

/// Bytes that are no tensor's: see [`super::Tally`].
#[derive(Debug)]
struct Tallied {
    owner: Owner,
    bytes: Bytes,
}

/// What is still wanted of an entry that has ended.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ended {
    pub(super) what: &'static str,
    pub(super) source: Source,
    pub(super) bytes: Bytes,
    wanted_again: bool,
}

impl Ended {
    /// The same, as if so much of it had not ended.
    pub(super) fn without(self, retained: Bytes) -> Ended {
        Ended { bytes: self.bytes.saturating_sub(retained), ..self }
    }
}

impl LedgerEntry {
    #[inline]
    fn end(&self) -> Ended {
        let LedgerEntry { owner: Owner { what, source, .. }, bytes, wanted_again } = *self;
        Ended { what, source, bytes, wanted_again }
    }
}

/// The state of a ledger.
#[derive(Debug)]
pub(super) struct Books {
    device: Device,
    entries: Slab<LedgerEntry>,
    tallies: Slab<Tallied>,
    cache: BlockCache,
    in_use: Bytes,
    peak: Bytes,
    peak_reserved: Bytes,
    /// The most that was ever in use: `reset_peak` does not lower it.
    ceiling: Bytes,
    limit: Option<Bytes>,
    machine: Option<Bytes>,
    /// The lesser of the two: what nothing may exceed.
    most: Bytes,
    /// Requests until one is made to fail.
    fail_in: Option<u64>,
    /// What happens is written here, where somebody asked for it.
    pub(super) recorder: Option<Box<TimelineRecorder>>,
}

impl Books {
    pub(super) fn new(
        device: Device,
        limit: Option<Bytes>,
        machine: Option<Bytes>,
        cache: BlockCache,
    ) -> Books {
        Books {
            device,
            entries: Slab::new(),
            tallies: Slab::new(),
            cache,
            in_use: Bytes::ZERO,
            peak: Bytes::ZERO,
            peak_reserved: Bytes::ZERO,
            ceiling: Bytes::ZERO,
            limit,
            machine,
            most: lesser(limit, machine),
            fail_in: None,
            recorder: None,
        }
    }

    pub(super) fn in_use(&self) -> Bytes {
        self.in_use
    }

    pub(super) fn peak(&self) -> Bytes {
        self.peak
    }

    pub(super) fn reset_peak(&mut self) {
        self.peak = self.in_use;
        self.peak_reserved = self.in_use + self.cache.bytes();
    }

    pub(super) fn set_limit(&mut self, limit: Option<Bytes>) {
        self.limit = limit;
        self.most = lesser(limit, self.machine);
        self.settle();
    }

    pub(super) fn limited(&self) -> Option<(Bytes, Bytes)> {
        self.limit.map(|limit| (limit, self.in_use))
    }

    /// By how much a request would be over the limit.
    pub(super) fn over(&self, bytes: Bytes) -> Bytes {
        (self.in_use + bytes).saturating_sub(self.limit.unwrap_or(Bytes::new(u64::MAX)))
    }

    pub(super) fn owner(&self, id: Id) -> Option<Owner> {
        self.entries.get(id).map(|entry| entry.owner.clone())
    }

    /// A block that is warm.
    pub(super) fn take_warm(&mut self, bytes: Bytes) -> Option<MemoryBlock> {
        self.cache.take(bytes)
    }

    /// Whether the block of an entry stays warm when it is freed: its size is asked for again and again.
    pub(super) fn is_wanted_again(&self, id: Id) -> bool {
        self.entries.get(id).is_some_and(|entry| entry.wanted_again)
    }

    pub(super) fn give_up_cache(&mut self) -> Bytes {
        let cached = self.cache.bytes();
        self.cache.shrink(Bytes::ZERO);
        cached
    }

    pub(super) fn shrink_cache(&mut self, wanted: Bytes, most: Bytes) {
        self.cache.shrink_beside(wanted, most);
    }

    pub(super) fn fail_nth(&mut self, n: Option<u64>) {
        self.fail_in = n;
    }

    pub(super) fn set_owner(&mut self, id: Id, owner: Owner) {
        if let Some(recorder) = &mut self.recorder {
            recorder.rename(id, &owner);
        }
        if let Some(entry) = self.entries.get_mut(id) {
            entry.owner = owner;
        }
    }

    pub(super) fn begin_tally(&mut self, owner: Owner) -> Id {
        self.tallies.insert(Tallied { owner, bytes: Bytes::ZERO })
    }

    pub(super) fn set_tally(&mut self, id: Id, bytes: Bytes) {
        if let Some(tally) = self.tallies.get_mut(id) {
            tally.bytes = bytes;
        }
    }

    pub(super) fn end_tally(&mut self, id: Id) {
        self.tallies.remove(id, |_| ());
    }

    /// Enters a block that the allocator gave, or refuses it.
    #[inline]
    pub(super) fn enter_small(&mut self, bytes: Bytes, owner: &Owner) -> Result<Id> {
        self.admit(bytes, owner)?;
        Ok(self.enter(bytes, owner, false))
    }

    /// A small block for bytes that are counted already passes, unless it is the one to fail.
    pub(super) fn check_small(&mut self, bytes: Bytes, owner: &Owner) -> Result<()> {
        if self.fails_now() { Err(self.refused(bytes, owner)) } else { Ok(()) }
    }

    /// A block from the cache or the system.
    pub(super) fn obtain_large(
        &mut self,
        space: &Space,
        bytes: Bytes,
        owner: &Owner,
    ) -> Result<(MemoryBlock, Id)> {
        self.admit(bytes, owner)?;
        if let Some(block) = self.cache.take(bytes) {
            return Ok((block, self.enter(bytes, owner, true)));
        }
        let wanted_again = self.cache.gave_back(bytes);
        // Room is made before the system is asked, so that the bound holds at every moment.
        self.cache.shrink(self.bound(self.in_use + bytes).saturating_sub(self.in_use + bytes));
        let block = space.obtain(bytes).or_else(|| {
            self.give_up_cache();
            space.obtain(bytes)
        });
        let Some(block) = block else {
            return Err(space.failure().unwrap_or_else(|| self.refused(bytes, owner)));
        };
        Ok((block, self.enter(bytes, owner, wanted_again)))
    }

    /// Ends an entry without touching its bytes.
    #[inline]
    pub(super) fn remove(&mut self, id: Id) -> Option<Ended> {
        let entry = self.entries.remove(id, LedgerEntry::end)?;
        self.in_use -= entry.bytes;
        if let Some(recorder) = &mut self.recorder {
            recorder.end(id, self.in_use);
        }
        if self.in_use.is_zero() {
            self.cache.shrink(IDLE);
        }
        Some(entry)
    }

    /// Ends an entry; its block goes to the cache if it may.
    pub(super) fn free_large(&mut self, id: Id, block: MemoryBlock) -> Option<Ended> {
        let entry = self.remove(id)?;
        self.cache.put(block, Bytes::ZERO, entry.wanted_again);
        self.settle();
        Some(entry)
    }

    pub(super) fn merge(&mut self, id: Id, rest: Id) -> Option<Ended> {
        let entry = self.entries.remove(id, LedgerEntry::end)?;
        match self.entries.get_mut(rest) {
            Some(rest) => rest.bytes += entry.bytes,
            None => self.in_use -= entry.bytes,
        }
        if let Some(recorder) = &mut self.recorder {
            let grown = self.entries.get(rest).map(|grown| (rest, &grown.owner, grown.bytes));
            recorder.exchange(&[id, rest], grown.into_iter(), self.in_use);
        }
        Some(entry)
    }

    pub(super) fn exchange(
        &mut self,
        id: Option<Id>,
        (left, absent): (MemoryBlock, Bytes),
        entries: Vec<(Bytes, Owner)>,
    ) -> (Vec<Id>, Option<Ended>) {
        let before = id.and_then(|id| self.entries.remove(id, LedgerEntry::end));
        let after: Bytes = entries.iter().map(|(bytes, _)| *bytes).sum();
        // A result that is the whole arena serves the next call's, once it is dropped.
        let wanted = |bytes| before.as_ref().is_some_and(|b| b.wanted_again && b.bytes == bytes);
        let ids: Vec<Id> = entries
            .into_iter()
            .map(|(bytes, owner)| {
                let wanted_again = wanted(bytes);
                self.entries.insert(LedgerEntry { owner, bytes, wanted_again })
            })
            .collect();
        if let Some(before) = before {
            self.in_use = (self.in_use + after).saturating_sub(before.bytes);
            match left.len() as u64 >= LARGE {
                true => self.cache.put(left, absent, before.wanted_again),
                false if before.bytes.get() >= LARGE => self.cache.note_given_back(before.bytes),
                false => {}
            }
        }
        self.mark();
        if let Some(recorder) = &mut self.recorder {
            let entry = |id: &Id| self.entries.get(*id).map(|e| (*id, &e.owner, e.bytes));
            recorder.exchange(id.as_slice(), ids.iter().filter_map(entry), self.in_use);
        }
        (ids, before)
    }

    #[inline]
    fn enter(&mut self, bytes: Bytes, owner: &Owner, wanted_again: bool) -> Id {
        self.in_use += bytes;
        self.mark();
        let id = self.entries.insert(LedgerEntry { owner: owner.clone(), bytes, wanted_again });
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(id, owner, bytes, self.in_use);
        }
        id
    }

    /// Starts to write down what happens; `false` where that is done already.
    pub(super) fn record(&mut self, most: usize) -> bool {
        if self.recorder.is_some() {
            return false;
        }
        let mut recorder = TimelineRecorder::new(most, self.in_use);
        for (id, entry) in self.entries.iter_with_ids() {
            recorder.existing(id, &entry.owner, entry.bytes);
        }
        self.recorder = Some(Box::new(recorder));
        true
    }

    pub(super) fn recorded(&mut self) -> Option<Timeline> {
        self.recorder.take().map(|recorder| recorder.finish())
    }

    /// Moves the marks up to where the sums are.
    #[inline]
    fn mark(&mut self) {
        self.peak = self.peak.max(self.in_use);
        self.ceiling = self.ceiling.max(self.in_use);
        self.settle();
        self.peak_reserved = self.peak_reserved.max(self.in_use + self.cache.bytes());
    }

    /// What in use + cached may be while so much is in use. The 2 MiB over the ceiling let an arena
    /// stay warm while the small results of its call live.
    fn bound(&self, in_use: Bytes) -> Bytes {
        let bound = self.ceiling.max(in_use) + IDLE;
        self.limit.map_or(bound, |limit| bound.min(limit))
    }

    /// Holds the cache under its bounds.
    #[inline]
    fn settle(&mut self) {
        if self.cache.bytes().is_zero() {
            return;
        }
        let room = self.bound(self.in_use).saturating_sub(self.in_use);
        self.cache.shrink(if self.in_use.is_zero() { room.min(IDLE) } else { room });
    }

    /// May so much be obtained at all? The cache need not be asked: it always makes room.
    #[inline]
    fn admit(&mut self, bytes: Bytes, owner: &Owner) -> Result<()> {
        if self.in_use + bytes <= self.most && self.fail_in.is_none() {
            return Ok(());
        }
        self.why_not(bytes, owner)
    }

    #[cold]
    fn why_not(&mut self, bytes: Bytes, owner: &Owner) -> Result<()> {
        if self.fails_now() {
            return Err(self.refused(bytes, owner));
        }
        let total = self.in_use + bytes;
        if total <= self.most {
            return Ok(());
        }
        let shortage = self.shortage(bytes, owner);
        Err(match self.limit {
            _ if bytes > self.most => ErrorKind::NeverFits { shortage, limit: self.most },
            Some(budget) if total > budget => {
                ErrorKind::OverBudget { shortage, budget, least: None, would_help: None }
            }
            // More than the machine has: a system that hands that out says no by killing the process.
            // We say it first.
            _ => ErrorKind::SystemRefused { shortage },
        }
        .into())
    }

    /// Counts down to the request that is made to fail.
    fn fails_now(&mut self) -> bool {
        let Some(left) = self.fail_in else { return false };
        self.fail_in = left.checked_sub(1).filter(|left| *left > 0);
        left <= 1
    }

    #[cold]
    pub(super) fn refused(&self, bytes: Bytes, owner: &Owner) -> tonnage_core::Error {
        ErrorKind::SystemRefused { shortage: self.shortage(bytes, owner) }.into()
    }

    fn shortage(&self, asked: Bytes, owner: &Owner) -> Shortage {
        let (what, in_use) = (owner.label(), self.in_use);
        Shortage {
            what,
            device: self.device,
            asked,
            in_use,
            holders: self.named(&[]),
            others: Vec::new(),
        }
    }

    /// The holders but for these entries, largest first, as errors name them.
    pub(super) fn named(&self, but: &[Id]) -> Vec<ErrorHolder> {
        let entries = self.entries.iter_with_ids().filter(|(id, _)| !but.contains(id));
        let holders = summed(entries.map(|(_, entry)| (&entry.owner, entry.bytes)));
        holders.iter().map(Holder::named).collect()
    }

    pub(super) fn holders(&self) -> Vec<Holder> {
        let entries = self.entries.iter().map(|entry| (&entry.owner, entry.bytes));
        let tallies = self.tallies.iter().map(|tally| (&tally.owner, tally.bytes));
        summed(entries.chain(tallies.filter(|(_, bytes)| !bytes.is_zero())))
    }

    pub(super) fn info(&self) -> Info {
        let holders = self.holders();
        let of_kind = |kind: Kind| -> Bytes {
            holders
                .iter()
                .filter(|holder| holder.owner.kind == kind)
                .map(|holder| holder.bytes)
                .sum()
        };
        let cached = self.cache.bytes();
        Info {
            in_use: self.in_use,
            peak: self.peak,
            cached,
            away: Bytes::ZERO,
            reserved: self.in_use + cached,
            peak_reserved: self.peak_reserved,
            limit: self.limit,
            overhead: Bytes::ZERO,
            graphs: self.tallies.iter().map(|tally| tally.bytes).sum(),
            by_kind: Kind::ALL
                .into_iter()
                .map(|kind| (kind, of_kind(kind)))
                .filter(|(_, bytes)| !bytes.is_zero())
                .collect(),
            holders,
        }
    }
}

/// Bytes by owner, largest first.
fn summed<'a>(entries: impl Iterator<Item = (&'a Owner, Bytes)>) -> Vec<Holder> {
    let mut sums: HashMap<&Owner, (Bytes, usize)> = HashMap::new();
    for (owner, bytes) in entries {
        let sum = sums.entry(owner).or_default();
        sum.0 += bytes;
        sum.1 += 1;
    }
    let mut holders: Vec<Holder> = sums
        .into_iter()
        .map(|(owner, (bytes, buffers))| Holder { owner: owner.clone(), bytes, buffers })
        .collect();
    // Ties in a fixed order, so that two reports of one state are equal.
    holders.sort_by_cached_key(|holder| {
        (std::cmp::Reverse(holder.bytes), holder.owner.source, holder.owner.to_string())
    });
    holders
}

/// The smaller of the limit and the memory of the machine; unbounded where neither is known.
fn lesser(limit: Option<Bytes>, machine: Option<Bytes>) -> Bytes {
    limit.into_iter().chain(machine).min().unwrap_or(Bytes::new(u64::MAX))
}

//! Large blocks that were freed and may be wanted again: warm pages between calls.
//!
//! A block serves a request of exactly its size, so that what is counted is what is held. What stays
//! is bounded four ways:
//!
//! * A size earns its place. A block larger than [`IDLE`] goes back to the system when it is freed,
//!   unless its size had been given back before and was then asked for again. One large tensor that
//!   is dropped thus leaves the process at once, while a training step's arena stays warm from its
//!   third step on. (Keeping everything up to a cap was rejected: the resident size would not fall.)
//! * At most so many bytes, [`CAP`] of host memory and all that another device has, and [`SLOTS`] blocks; the oldest go first. Host
//!   memory is shared with all programs; a GPU idles while memory of it is obtained and given back, about a millisecond a gigabyte.
//!   Host memory that is pinned for a device is not counted for that: to pin it anew takes longer than to copy what it is for.
//! * A block that was not wanted in the last [`SLOTS`] large requests goes.
//! * Bytes of a block that went back to the system while it was used count for nothing until it is taken again.
//! * The ledger lets in use + cached exceed neither the limit nor, by more than [`IDLE`], the most that
//!   ever was in use, so the cache raises no peak; and it empties the cache down to [`IDLE`] when
//!   nothing lives.

use std::collections::VecDeque;

use tonnage_core::Bytes;

use crate::system::MemoryBlock;

/// What may stay when nothing lives.
pub(crate) const IDLE: Bytes = Bytes::mib(2);
/// What may stay of host memory while something lives.
pub(crate) const CAP: Bytes = Bytes::mib(512);
/// How many blocks may stay, how many large requests each may sit out, and how many sizes that were
/// given back are remembered. A step of an eager model has some hundred large buffers.
const SLOTS: usize = 256;

/// Freed blocks, oldest first.
#[derive(Debug)]
pub(crate) struct BlockCache {
    blocks: VecDeque<CachedBlock>,
    bytes: Bytes,
    /// Which of them are pinned.
    pinned: Bytes,
    /// What may stay while something lives.
    cap: Bytes,
    /// Large requests so far.
    clock: u64,
    /// Sizes given back to the system lately.
    given_back: VecDeque<usize>,
}

#[derive(Debug)]
struct CachedBlock {
    block: MemoryBlock,
    /// How much of it went back to the system.
    absent: Bytes,
    since: u64,
}

impl CachedBlock {
    fn bytes(&self) -> Bytes {
        Bytes::of(self.block.len()).saturating_sub(self.absent)
    }

    fn pinned(&self) -> Bytes {
        if self.block.is_pinned() { self.bytes() } else { Bytes::ZERO }
    }
}

impl BlockCache {
    /// Nothing yet, and at most that while something lives.
    pub(crate) fn up_to(cap: Bytes) -> BlockCache {
        let (blocks, given_back) = (VecDeque::new(), VecDeque::new());
        BlockCache { blocks, bytes: Bytes::ZERO, pinned: Bytes::ZERO, cap, clock: 0, given_back }
    }

    /// How much is held.
    pub(crate) fn bytes(&self) -> Bytes {
        self.bytes
    }

    /// A block of that size if there is one, the warmest first. Counts as a large request.
    pub(crate) fn take(&mut self, bytes: Bytes) -> Option<MemoryBlock> {
        self.clock += 1;
        let found = self.blocks.iter().rposition(|idle| idle.block.len() == bytes.as_usize());
        let block = found.and_then(|at| self.remove(at)).map(|idle| idle.block);
        let clock = self.clock;
        while self.blocks.front().is_some_and(|idle| clock - idle.since > SLOTS as u64) {
            self.release_oldest();
        }
        block
    }

    /// Was a block of that size given back not long ago?
    pub(crate) fn gave_back(&self, bytes: Bytes) -> bool {
        self.given_back.contains(&bytes.as_usize())
    }

    /// Takes a freed block, of which so much went back to the system; `wanted_again` says that its size has earned its place.
    pub(crate) fn put(&mut self, block: MemoryBlock, absent: Bytes, wanted_again: bool) {
        let bytes = Bytes::of(block.len()).saturating_sub(absent);
        let stays = match wanted_again {
            true => block.is_pinned() || bytes <= self.cap,
            false => bytes <= IDLE.saturating_sub(self.bytes),
        };
        if !stays {
            return self.release(block);
        }
        self.push(CachedBlock { block, absent, since: self.clock });
        while self.blocks.len() > SLOTS {
            self.release_oldest();
        }
        while self.bytes - self.pinned > self.cap {
            let oldest = self.blocks.iter().position(|idle| !idle.block.is_pinned());
            let Some(idle) = oldest.and_then(|at| self.remove(at)) else { break };
            self.release(idle.block);
        }
    }

    /// Notes that a block of that size was cut up: all of it but some parts went back to the system.
    pub(crate) fn note_given_back(&mut self, bytes: Bytes) {
        if !self.gave_back(bytes) {
            if self.given_back.len() == SLOTS {
                self.given_back.pop_front();
            }
            self.given_back.push_back(bytes.as_usize());
        }
    }

    /// Gives back the oldest until no more than `most` is held.
    #[inline]
    pub(crate) fn shrink(&mut self, most: Bytes) {
        while self.bytes > most {
            self.release_oldest();
        }
    }

    /// Gives back the oldest until no more than `most` is held beside one block of that size, which is wanted next.
    pub(crate) fn shrink_beside(&mut self, wanted: Bytes, most: Bytes) {
        let size = wanted.as_usize();
        let found = self.blocks.iter().rposition(|idle| idle.block.len() == size);
        let wanted_block = found.and_then(|at| self.remove(at));
        self.shrink(most);
        if let Some(idle) = wanted_block {
            self.push(idle);
        }
    }

    fn push(&mut self, idle: CachedBlock) {
        self.bytes += idle.bytes();
        self.pinned += idle.pinned();
        self.blocks.push_back(idle);
    }

    fn remove(&mut self, at: usize) -> Option<CachedBlock> {
        let idle = self.blocks.remove(at)?;
        self.bytes -= idle.bytes();
        self.pinned -= idle.pinned();
        Some(idle)
    }

    fn release_oldest(&mut self) {
        if let Some(idle) = self.remove(0) {
            self.release(idle.block);
        }
    }

    fn release(&mut self, block: MemoryBlock) {
        self.note_given_back(Bytes::of(block.len()));
        drop(block);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::{Backing, HostPin};

    #[derive(Debug)]
    struct Held;

    impl HostPin for Held {}

    #[test]
    fn pinned_memory_that_is_wanted_again_stays_whatever_its_size() {
        let mut cache = BlockCache::up_to(CAP);
        let block = |mib| MemoryBlock::obtain(Backing::NATIVE, Bytes::mib(mib)).unwrap();
        let pinned = |mib| {
            let mut block = block(mib);
            block.pin(|_| Some(Box::new(Held)));
            block
        };
        cache.put(pinned(700), Bytes::ZERO, false);
        assert_eq!(cache.bytes(), Bytes::ZERO);
        for (block, stay) in [(pinned(700), 700), (block(300), 1000), (block(400), 1100)] {
            cache.put(block, Bytes::ZERO, true);
            assert_eq!(cache.bytes(), Bytes::mib(stay));
        }
        assert!(cache.take(Bytes::mib(700)).unwrap().is_pinned());
        assert_eq!(cache.bytes(), Bytes::mib(400));
    }

    #[test]
    fn what_stays_is_at_most_the_cap_and_the_oldest_goes_first() {
        for (cap, stay) in [(CAP, vec![300]), (Bytes::mib(2000), vec![400, 700, 300])] {
            let mut cache = BlockCache::up_to(cap);
            for mib in [400, 700, 300] {
                let block = MemoryBlock::obtain(Backing::NATIVE, Bytes::mib(mib)).unwrap();
                cache.put(block, Bytes::ZERO, true);
            }
            let lengths = cache.blocks.iter().map(|idle| idle.block.len() >> 20);
            assert_eq!(lengths.collect::<Vec<_>>(), stay);
            assert_eq!(cache.bytes(), Bytes::mib(stay.iter().map(|mib| *mib as u64).sum()));
        }
    }
}

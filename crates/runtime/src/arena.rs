//! One block for all buffers of a planned call. At the end of the call the results are cut out of it
//! and the rest goes back to the system, so a result costs no copy and pins nothing but itself. Where the same arena is asked for
//! call after call and results are a small part of it, they are copied, and the arena stays warm.
//!
//! Decision: `docs/decisions/one-arena-block.md`.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use tonnage_core::bytes::{LARGE, PAGE};
use tonnage_core::error::bad_argument;
use tonnage_core::{Bytes, Error, Result};

use crate::buffer::{BlockRemainder, Buffer};
use crate::ledger::{Ledger, Owner};
use crate::system::MemoryBlock;

/// The memory of one planned call. Dropped, it goes where freed buffers go: pages that are wanted
/// call after call stay warm.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::{Arena, Ledger, Owner};
/// let ledger = Ledger::new(None);
/// let mut arena = Arena::obtain(&ledger, Bytes::mib(8), Owner::new(Kind::Activation, "step"))?;
/// arena.bytes_mut()?[1 << 20] = 42;
/// let result = (1 << 20..3 << 20, Owner::new(Kind::Output, "step"));
/// let parts = arena.into_parts(&[result])?;
/// assert_eq!(parts[0].bytes()?[0], 42);
/// assert_eq!(parts[0].reserved(), Bytes::mib(2));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub struct Arena {
    buffer: Buffer,
    owner: Owner,
}

/// A range that outlives the arena, checked.
struct RetainedRange<'a> {
    /// Its number among those that the caller named.
    number: usize,
    start: usize,
    len: usize,
    owner: &'a Owner,
}

impl RetainedRange<'_> {
    /// What it takes up in the arena: whole pages, in the ledger or not.
    fn pages(&self) -> usize {
        self.len.next_multiple_of(PAGE as usize)
    }

    fn reserved(&self) -> Bytes {
        Bytes::of(self.len).rounded()
    }

    /// A piece of less than [`LARGE`] bytes is copied out: it would pin a page and count a line.
    fn is_small(&self) -> bool {
        self.reserved().get() < LARGE
    }
}

impl Arena {
    /// That many bytes for that owner.
    ///
    /// # Errors
    /// As [`Buffer::obtain`].
    pub fn obtain(ledger: &Ledger, bytes: Bytes, owner: Owner) -> Result<Arena> {
        Ok(Arena { buffer: Buffer::obtain(ledger, bytes, owner.clone())?, owner })
    }

    /// The bytes, to write: zeros, or what an earlier owner left.
    ///
    /// # Errors
    /// Where they are a device's.
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        self.buffer.bytes_mut()
    }

    /// The bytes, wherever they are.
    pub(crate) fn buffer_mut(&mut self) -> &mut Buffer {
        &mut self.buffer
    }

    /// What it takes in the ledger.
    pub fn reserved(&self) -> Bytes {
        self.buffer.reserved()
    }

    /// Retains these ranges as buffers of their own, in the order given, and gives everything else back
    /// at once, or keeps it warm for the next call. Each starts on a page, and no two share one. Where the system takes back no part of a
    /// block, the whole stays counted until its last part is dropped. With nothing large to retain, the
    /// arena goes where freed buffers go.
    ///
    /// # Errors
    /// For ranges that break the rules above, and where the system refuses the copies of small
    /// pieces. The arena is freed then too.
    pub fn into_parts(self, retained: &[(Range<usize>, Owner)]) -> Result<Vec<Buffer>> {
        let mut parts: Vec<Buffer> = retained.iter().map(|_| Buffer::default()).collect();
        let pieces = self.checked(retained)?;
        let Some(ledger) = self.buffer.ledger().filter(|_| !pieces.is_empty()).cloned() else {
            return Ok(parts);
        };
        let copies = self.copies(&ledger, &pieces)?;
        let Arena { buffer, owner } = self;
        let total = buffer.reserved();
        let stays = buffer.id().is_some_and(|id| ledger.is_wanted_again(id));
        let (mut block, id) = buffer.into_block();
        let moved = if stays { moved(&mut block, &ledger, &pieces) } else { None };
        let (mut blocks, left) = match moved {
            Some((large, absent)) => (merged(copies, large, &pieces), (block, absent)),
            None => {
                let (blocks, left) = cut(block, copies, &pieces);
                (blocks, (left, Bytes::ZERO))
            }
        };

        let shared = blocks.iter().any(MemoryBlock::is_part);
        let mut entries: Vec<(Bytes, Owner)> =
            pieces.iter().map(|piece| (piece.reserved(), piece.owner.clone())).collect();
        if shared {
            let large = pieces.iter().filter(|piece| !piece.is_small());
            entries.push((total.saturating_sub(large.map(RetainedRange::reserved).sum()), owner));
        }
        let mut ids = ledger.exchange(id, left, entries);
        let rest = if shared { ids.pop() } else { None };
        let rest = rest.map(|id| Arc::new(BlockRemainder::new(ledger.clone(), id)));
        for ((piece, block), id) in pieces.iter().zip(blocks.drain(..)).zip(ids) {
            let rest = rest.clone().filter(|_| block.is_part());
            if let Some(part) = parts.get_mut(piece.number) {
                *part = Buffer::entered(block, piece.len, &ledger, id, rest);
            }
        }
        Ok(parts)
    }

    /// Copies of the small pieces, in blocks of their own. They are entered when the arena leaves the
    /// ledger: for a moment they exist uncounted, which is less than [`LARGE`] for each. Counting them
    /// beside the arena would put them on top of a peak that the plan knows exactly.
    fn copies(&self, ledger: &Ledger, pieces: &[RetainedRange<'_>]) -> Result<Vec<MemoryBlock>> {
        let mut copies = Vec::new();
        for piece in pieces.iter().filter(|piece| piece.is_small()) {
            let mut copy = ledger.small_block(piece.reserved(), piece.owner)?;
            self.buffer.copy_to_block(piece.start, piece.len, &mut copy)?;
            copies.push(copy);
        }
        Ok(copies)
    }

    /// The ranges that are not empty, in the order of their places.
    fn checked<'a>(&self, retained: &'a [(Range<usize>, Owner)]) -> Result<Vec<RetainedRange<'a>>> {
        let mut pieces: Vec<RetainedRange<'a>> = retained
            .iter()
            .enumerate()
            .filter(|(_, (range, _))| !range.is_empty())
            .map(|(number, (range, owner))| RetainedRange {
                number,
                start: range.start,
                len: range.len(),
                owner,
            })
            .collect();
        pieces.sort_by_key(|piece| piece.start);
        let mut end = 0;
        for piece in &pieces {
            let start = piece.start;
            if !start.is_multiple_of(PAGE as usize) {
                return Err(misplaced(piece, "does not start on a page"));
            }
            if start < end {
                return Err(misplaced(piece, "shares a page with another"));
            }
            if start + piece.len > self.buffer.len() {
                return Err(misplaced(piece, "ends behind the arena"));
            }
            end = start + piece.pages();
        }
        Ok(pieces)
    }
}

fn misplaced(piece: &RetainedRange<'_>, why: &str) -> Error {
    let RetainedRange { start, len, owner, .. } = piece;
    let what = format!("the range at {start} of {len} bytes for {owner} {why}");
    bad_argument("arena", what, "keep ranges that start on pages of their own")
}

/// Results that stay, in parts of the arena, for which it is kept: to touch all of it anew takes longer than to copy them.
const SMALL_PART: usize = 4;

/// Copies of the large pieces in blocks of their own, and the bytes of the arena that went back for that beforehand: as many, so
/// that there is never a byte more than was planned. `None` where the pieces are a large part of the arena, and where the system
/// takes back no part of a block or gives none.
fn moved(
    block: &mut MemoryBlock,
    ledger: &Ledger,
    pieces: &[RetainedRange<'_>],
) -> Option<(Vec<MemoryBlock>, Bytes)> {
    let large = || pieces.iter().filter(|piece| !piece.is_small());
    let all: usize = large().map(RetainedRange::pages).sum();
    if all.saturating_mul(SMALL_PART) > block.len() {
        return None;
    }
    // The largest gap between pieces.
    let ends = pieces.iter().map(|piece| piece.start + piece.pages());
    let starts = pieces.iter().map(|piece| piece.start).chain([block.len()]);
    let gaps = std::iter::once(0).chain(ends).zip(starts);
    let (start, end) = gaps.max_by_key(|(start, end)| end.saturating_sub(*start))?;
    if end.saturating_sub(start) < all || !block.give_back(end - all..end) {
        return None;
    }
    let copy = |piece: &RetainedRange<'_>| {
        let mut copy = ledger.uncounted(Bytes::of(piece.pages()))?;
        copy.bytes_mut()?[..piece.len].copy_from_slice(&block.bytes()?[piece.start..][..piece.len]);
        Some(copy)
    };
    Some((large().map(copy).collect::<Option<Vec<_>>>()?, Bytes::of(all)))
}

/// Copies of small pieces and of large ones, in the order of the pieces.
fn merged(
    small: Vec<MemoryBlock>,
    large: Vec<MemoryBlock>,
    pieces: &[RetainedRange<'_>],
) -> Vec<MemoryBlock> {
    let (mut small, mut large) = (small.into_iter(), large.into_iter());
    let next = |piece: &RetainedRange<'_>| match piece.is_small() {
        true => small.next(),
        false => large.next(),
    };
    pieces.iter().filter_map(next).collect()
}

/// One block for each piece, and the whole where nothing had to be cut out of it. What lies between
/// the pieces goes back to the system here.
fn cut(
    block: MemoryBlock,
    copies: Vec<MemoryBlock>,
    pieces: &[RetainedRange<'_>],
) -> (Vec<MemoryBlock>, MemoryBlock) {
    let mut copies = copies.into_iter();
    let mut blocks = Vec::with_capacity(pieces.len());
    let (mut rest, mut at) = (block, 0);
    for piece in pieces {
        if piece.is_small() {
            blocks.extend(copies.next());
            continue;
        }
        let (gap, tail) = rest.split(piece.start - at);
        drop(gap);
        let (block, tail) = tail.split(piece.pages());
        blocks.push(block);
        (rest, at) = (tail, piece.start + piece.pages());
    }
    if at > 0 {
        rest = MemoryBlock::default();
    }
    (blocks, rest)
}

impl fmt::Debug for Arena {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Arena({} for {})", self.reserved(), self.owner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[cfg(unix)]
    use crate::events::{Action, Scope};
    use crate::leak_check;
    use crate::system::Backing;
    use tonnage_core::Kind;

    const PAGE: usize = 4096;

    fn owner(kind: Kind) -> Owner {
        Owner::new(kind, "step")
    }

    fn backings() -> Vec<Backing> {
        if Backing::NATIVE == Backing::Plain {
            vec![Backing::Plain]
        } else {
            vec![Backing::NATIVE, Backing::Plain]
        }
    }

    /// An arena whose bytes tell their page.
    fn arena(ledger: &Ledger, pages: usize) -> Arena {
        let bytes = Bytes::of(pages * PAGE);
        let mut arena = Arena::obtain(ledger, bytes, owner(Kind::Activation)).unwrap();
        for (page, bytes) in arena.bytes_mut().unwrap().chunks_mut(PAGE).enumerate() {
            bytes.fill(page as u8);
        }
        arena
    }

    fn retain(ranges: &[Range<usize>]) -> Vec<(Range<usize>, Owner)> {
        ranges.iter().map(|range| (range.clone(), owner(Kind::Output))).collect()
    }

    #[test]
    fn retained_ranges_keep_their_bytes_and_the_order_given() {
        for backing in backings() {
            let ledger = Ledger::with_backing(None, backing);
            leak_check(&ledger, || {
                let ranges =
                    [90 * PAGE..100 * PAGE, 0..9 * PAGE + 5, 50 * PAGE..50 * PAGE + 70, 3..3];
                let parts = arena(&ledger, 100).into_parts(&retain(&ranges)).unwrap();
                for (part, range) in parts.iter().zip(&ranges) {
                    assert_eq!(part.len(), range.len());
                    let page = |at: usize| ((range.start + at) / PAGE) as u8;
                    assert!(
                        part.bytes()
                            .unwrap()
                            .iter()
                            .enumerate()
                            .all(|(at, byte)| *byte == page(at))
                    );
                }
            })
            .unwrap();
        }
    }

    #[cfg(unix)]
    #[test]
    fn what_is_not_retained_is_no_longer_counted() {
        let ledger = Ledger::new(None);
        let scope = Scope::open();
        let ranges = retain(&[10 * PAGE..20 * PAGE, 40 * PAGE..40 * PAGE + 100]);
        let mut parts = arena(&ledger, 100).into_parts(&ranges).unwrap();
        let report = scope.report();
        let left = report.total(Action::Allocated) - report.total(Action::Freed);
        assert_eq!(left, ledger.in_use());
        assert_eq!(ledger.in_use(), Bytes::of(10 * PAGE + 128));
        assert_eq!(ledger.peak(), Bytes::of(100 * PAGE));
        assert_eq!(ledger.info().by_kind, [(Kind::Output, Bytes::of(10 * PAGE + 128))]);
        parts.remove(0);
        assert_eq!(ledger.in_use(), Bytes::new(128));
    }

    #[test]
    fn without_partial_release_the_whole_is_counted_until_its_last_part_goes() {
        let ledger = Ledger::with_backing(None, Backing::Plain);
        let ranges =
            retain(&[10 * PAGE..20 * PAGE, 30 * PAGE..50 * PAGE, 60 * PAGE..60 * PAGE + 100]);
        let mut parts = arena(&ledger, 100).into_parts(&ranges).unwrap();
        let (whole, copy) = (Bytes::of(100 * PAGE), Bytes::new(128));
        assert_eq!(ledger.in_use(), whole + copy);
        let outputs = Bytes::of(30 * PAGE) + copy;
        let by_kind = [(Kind::Activation, whole + copy - outputs), (Kind::Output, outputs)];
        assert_eq!(ledger.info().by_kind, by_kind);
        parts.remove(0);
        assert_eq!(ledger.in_use(), whole + copy);
        parts.remove(0);
        assert_eq!(ledger.in_use(), copy);
        drop(parts);
        assert_eq!(ledger.in_use(), Bytes::ZERO);
    }

    #[test]
    fn an_arena_with_small_results_alone_stays_warm() {
        for backing in backings() {
            let ledger = Ledger::with_backing(None, backing);
            let size = Bytes::mib(8);
            let variable = Buffer::obtain(&ledger, Bytes::new(64), owner(Kind::Variable)).unwrap();
            let mut loss = Vec::new();
            for step in 0..4 {
                assert_eq!(ledger.info().cached, if step < 2 { Bytes::ZERO } else { size });
                let arena = arena(&ledger, size.as_usize() / PAGE);
                assert_eq!(ledger.info().cached, Bytes::ZERO);
                let result = 7 * PAGE..7 * PAGE + 4;
                loss = arena.into_parts(&[(result, owner(Kind::Output))]).unwrap();
                assert_eq!(loss[0].bytes().unwrap(), [7; 4]);
            }
            let info = ledger.info();
            assert_eq!((info.in_use, info.cached), (Bytes::new(128), size));
            assert_eq!(info.peak, size + Bytes::new(128));
            drop((variable, loss));
            assert_eq!(ledger.info().cached, Bytes::ZERO);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_arena_whose_results_are_a_small_part_stays_warm_without_a_byte_more() {
        let size = Bytes::mib(8);
        let pages = size.as_usize() / PAGE;
        // Where results lie, and whether the arena stays for them.
        let one = |end: usize| vec![Range { start: 7 * PAGE, end: 7 * PAGE + end }];
        let cases: [(Vec<Range<usize>>, bool); 5] = [
            (one(83 * PAGE + 5), true),
            (
                vec![(pages - 100) * PAGE..pages * PAGE, 0..99 * PAGE, 200 * PAGE..200 * PAGE + 8],
                true,
            ),
            (one(pages / 4 * PAGE), true),
            (one((pages / 4 + 1) * PAGE), false),
            // No gap is as large as all results are.
            ((0..10).map(|i| i * 200 * PAGE..(i * 200 + 50) * PAGE).collect(), false),
        ];
        for (ranges, stays) in cases {
            let ledger = Ledger::new(None);
            let weight = Buffer::obtain(&ledger, Bytes::new(64), owner(Kind::Variable)).unwrap();
            for step in 0..5 {
                let arena = arena(&ledger, pages);
                assert_eq!(ledger.in_use(), size + weight.reserved());
                let parts = arena.into_parts(&retain(&ranges)).unwrap();
                for (part, range) in parts.iter().zip(&ranges) {
                    let page = |at: usize| ((range.start + at) / PAGE) as u8;
                    let mut bytes = part.bytes().unwrap().iter().enumerate();
                    assert_eq!(part.len(), range.len());
                    assert!(bytes.all(|(at, byte)| *byte == page(at)));
                }
                let reserved = parts.iter().map(Buffer::reserved);
                let (large, small): (Vec<_>, Vec<_>) =
                    reserved.partition(|bytes| bytes.get() >= PAGE as u64);
                let (kept, small) =
                    (large.into_iter().sum::<Bytes>(), small.into_iter().sum::<Bytes>());
                let info = ledger.info();
                assert_eq!(info.in_use, weight.reserved() + kept + small);
                assert_eq!(info.peak, size + weight.reserved());
                match stays && step > 0 {
                    true => assert_eq!(info.cached, size.saturating_sub(kept), "{ranges:?}"),
                    // What results of the call before took.
                    false => assert!(info.cached <= Bytes::mib(2), "{ranges:?}"),
                }
            }
            drop(weight);
            assert!(ledger.info().reserved <= Bytes::mib(2));
        }
    }

    #[test]
    fn misplaced_ranges_are_refused_and_the_arena_is_freed() {
        let ledger = Ledger::new(None);
        for (ranges, why) in [
            ([0..PAGE, PAGE + 64..2 * PAGE], "does not start on a page"),
            ([0..PAGE + 1, PAGE..2 * PAGE], "shares a page with another"),
            ([0..PAGE, 99 * PAGE..101 * PAGE], "ends behind the arena"),
        ] {
            leak_check(&ledger, || {
                let error = arena(&ledger, 100).into_parts(&retain(&ranges)).unwrap_err();
                assert!(error.to_string().contains(why), "{error}");
            })
            .unwrap();
        }
    }

    #[test]
    fn a_refused_copy_of_a_small_result_leaks_nothing() {
        let ledger = Ledger::new(None);
        leak_check(&ledger, || {
            let arena = arena(&ledger, 100);
            ledger.fail_nth(Some(2));
            let ranges = [0..10, PAGE..20 * PAGE, 50 * PAGE..50 * PAGE + 10];
            let error = arena.into_parts(&retain(&ranges)).unwrap_err();
            assert!(error.to_string().starts_with("the system refused: output step"), "{error}");
        })
        .unwrap();
    }
}

//! What kernels were lent of an arena, recorded as it is lent and without a look at the plan's figures.
//!
//! Two figures. *Touched*: the bytes that were lent at least once, which is the memory that the call needs from the
//! system. *At once*: the most that was lent and alive at the same time; an arena whose packing has gaps is larger.
//!
//! The invariant: ranges of touched addresses are in order and never meet.

use std::ops::Range;

use tonnage_core::bytes::Bytes;

use crate::lend::ByteRange;

/// Bytes that kernels were lent of an arena.
pub struct UsedBytes {
    arena: ByteRange,
    /// What was lent and still lives: where it starts, and its bytes.
    live: Vec<(usize, Bytes)>,
    now: Bytes,
    at_once: Bytes,
    touched: Vec<Range<usize>>,
}

impl UsedBytes {
    /// Nothing yet of this arena.
    pub fn new(arena: ByteRange) -> UsedBytes {
        UsedBytes {
            arena,
            live: Vec::new(),
            now: Bytes::ZERO,
            at_once: Bytes::ZERO,
            touched: Vec::new(),
        }
    }

    /// The most that lived at the same time.
    pub fn at_once(&self) -> Bytes {
        self.at_once
    }

    /// Bytes that were lent at least once.
    pub fn touched(&self) -> Bytes {
        Bytes::of(self.touched.iter().map(Range::len).sum())
    }

    /// Notes that a kernel was lent these bytes to write; bytes outside of the arena are not counted here.
    pub fn lent(&mut self, byte_range: &ByteRange) {
        let ByteRange { base, offset, len, .. } = self.arena;
        let inside = byte_range.base == base && (offset..offset + len).contains(&byte_range.offset);
        if inside && byte_range.len > 0 {
            let (offset, bytes) = (byte_range.offset, Bytes::of(byte_range.len).rounded());
            // A part was touched with the whole. Rounded on its own, a row would reach beyond it.
            if !self.live_from(offset, bytes) {
                self.touch(offset..offset + bytes.as_usize());
            }
        }
    }

    /// Notes that whatever lives in a buffer of the arena ends.
    pub fn ended(&mut self, buffer: &ByteRange) {
        let (now, addresses) = (&mut self.now, buffer.offset..buffer.offset + buffer.len);
        self.live.retain(|(at, bytes)| {
            let inside = addresses.contains(at);
            if inside {
                *now -= *bytes;
            }
            !inside
        });
    }

    /// Notes what a body or a branch was lent of its own arena, which is one block of this one.
    pub fn ran(&mut self, child: &UsedBytes) {
        child.touched.iter().for_each(|range| self.touch(range.clone()));
        if !child.touched.is_empty() {
            self.live_from(child.arena.offset, child.touched());
        }
    }

    /// Notes that bytes live from here on; whether they are a part of something that lived before. A part is no more, and
    /// what grows is as much more.
    fn live_from(&mut self, offset: usize, bytes: Bytes) -> bool {
        let around = |at: usize, bytes: Bytes| (at..at + bytes.as_usize()).contains(&offset);
        let is_part = match self.live.iter_mut().find(|(at, known)| around(*at, *known)) {
            Some((at, known)) if *at == offset => {
                self.now += bytes.saturating_sub(*known);
                *known = bytes.max(*known);
                false
            }
            Some(_) => true,
            None => {
                self.live.push((offset, bytes));
                self.now += bytes;
                false
            }
        };
        self.at_once = self.at_once.max(self.now);
        is_part
    }

    fn touch(&mut self, range: Range<usize>) {
        let first = self.touched.partition_point(|known| known.end < range.start);
        let behind = self.touched.partition_point(|known| known.start <= range.end);
        match &mut self.touched[first..behind] {
            [] => self.touched.insert(first, range),
            [known] => *known = known.start.min(range.start)..known.end.max(range.end),
            [left, .., right] => {
                *left = left.start.min(range.start)..right.end.max(range.end);
                self.touched.drain(first + 1..behind);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing yet of an arena of 4 KiB.
    fn unused() -> UsedBytes {
        UsedBytes::new(range(0, 4096))
    }

    /// That many bytes from there on.
    fn range(offset: usize, len: usize) -> ByteRange {
        ByteRange { base: 0, offset, len, align: 1 }
    }

    /// The same figures by a list of all cache lines.
    #[test]
    fn touched_bytes_are_those_of_a_list_of_all_of_them() {
        let mut seed = 7u64;
        let mut draw = |most: u64| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            ((seed >> 33) % most) as usize
        };
        for _ in 0..200 {
            let (mut used, mut list) = (unused(), vec![false; 64]);
            for _ in 0..draw(12) {
                let (start, lines) = (draw(56), 1 + draw(8));
                let lent = range(start * 64, lines * 64);
                used.lent(&lent);
                used.ended(&lent);
                list[start..start + lines].fill(true);
                assert_eq!(used.touched().as_usize(), list.iter().filter(|t| **t).count() * 64);
                assert!(used.touched.windows(2).all(|pair| pair[0].end < pair[1].start));
            }
        }
    }

    #[test]
    fn what_has_ended_counts_among_the_touched_bytes_alone() {
        let mut used = unused();
        used.lent(&range(0, 128));
        used.lent(&range(64, 128)); // a row of the first, which does not reach beyond it
        used.ended(&range(0, 128));
        used.lent(&range(128, 64));
        assert_eq!((used.at_once().get(), used.touched().get()), (128, 192));
        let mut outer = unused();
        outer.ran(&used);
        assert_eq!((outer.at_once().get(), outer.touched().get()), (192, 192));
    }
}

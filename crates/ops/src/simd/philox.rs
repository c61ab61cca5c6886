//! Philox4x32-10: random bits from a key and a counter.
//!
//! The generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
//! (2011): ten rounds of two 32-bit multiplications. Invariant: a block of four words depends on the
//! key and the counter alone, so any tile, thread or recomputation finds the same bits. The loop
//! below is over blocks; LLVM puts as many of them side by side as the vectors are wide.

use super::level::Level;
use super::vectorize::{Isa, Kernel};

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];
const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The four words of one counter.
///
/// ```
/// use tonnage_ops::simd::philox::block;
/// assert_ne!(block([1, 2], [0, 0, 0, 0]), block([1, 2], [1, 0, 0, 0]));
/// ```
#[inline(always)]
pub fn block(key: [u32; 2], counter: [u32; 4]) -> [u32; 4] {
    // The words are held in 64 bits, whose upper half is left as it comes: a multiplication of the
    // lower halves to a whole is one vector instruction, and moving halves about is several.
    const LOW: u64 = 0xffff_ffff;
    let [mut k0, mut k1] = key;
    let [mut c0, mut c1, mut c2, mut c3] = counter.map(u64::from);
    for _ in 0..10 {
        let p0 = u64::from(MULTIPLIERS[0]) * (c0 & LOW);
        let p1 = u64::from(MULTIPLIERS[1]) * (c2 & LOW);
        c0 = (p1 >> 32) ^ c1 ^ u64::from(k0);
        c1 = p1;
        c2 = (p0 >> 32) ^ c3 ^ u64::from(k1);
        c3 = p0;
        k0 = k0.wrapping_add(WEYL[0]);
        k1 = k1.wrapping_add(WEYL[1]);
    }
    [c0, c1, c2, c3].map(|c| c as u32)
}

/// A stream of random words: a key, and the upper half of every counter. The lower half counts the
/// stream's blocks, 2^64 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub struct Stream {
    /// Philox's key.
    pub key: [u32; 2],
    /// The upper two words of the counter: tells streams of one key apart.
    pub nonce: [u32; 2],
}

impl Stream {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Stream {
        Stream { key: [seed as u32, (seed >> 32) as u32], nonce: [0, 0] }
    }

    /// The words of the stream's block number `index`.
    #[inline(always)]
    pub fn block(self, index: u64) -> [u32; 4] {
        block(self.key, [index as u32, (index >> 32) as u32, self.nonce[0], self.nonce[1]])
    }
}

/// Fills `out` with blocks `first`, `first + 1`, ... of a stream.
pub fn fill(level: Level, stream: Stream, first: u64, out: &mut [[u32; 4]]) {
    level.run(Fill { stream, first, out });
}

struct Fill<'a> {
    stream: Stream,
    first: u64,
    out: &'a mut [[u32; 4]],
}

impl Kernel for Fill<'_> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (i, words) in self.out.iter_mut().enumerate() {
            *words = self.stream.block(self.first.wrapping_add(i as u64));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The known answers that Random123 publishes for philox4x32-10.
    #[test]
    fn the_published_answers_come_out() {
        let ones = u32::MAX;
        for (counter, key, expected) in [
            ([0; 4], [0; 2], [0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8]),
            ([ones; 4], [ones; 2], [0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd]),
            (
                [0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344],
                [0xa4093822, 0x299f31d0],
                [0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1],
            ),
        ] {
            assert_eq!(block(key, counter), expected);
        }
    }

    #[test]
    fn every_level_gives_the_words_of_single_blocks_also_where_the_counter_carries() {
        let stream = Stream { key: [7, 8], nonce: [9, 10] };
        let first = u64::from(u32::MAX) - 20;
        for &level in Level::available() {
            let mut out = [[0; 4]; 53];
            fill(level, stream, first, &mut out);
            for (i, words) in out.iter().enumerate() {
                let index = first + i as u64;
                assert_eq!(*words, block([7, 8], [index as u32, (index >> 32) as u32, 9, 10]));
            }
        }
    }
}

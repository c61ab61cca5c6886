//! Philox4x32-10: random bits from a key and a counter.
//!
//! The generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
//! (2011): ten rounds of two 32-bit multiplications. Invariant: a block of four words depends on the
//! key and the counter alone, so any tile, thread or recomputation finds the same bits. The loop
//! below is over blocks; LLVM puts as many of them side by side as the vectors are wide.

use super::level::Level;
use super::vectorize::{Isa, SimdKernel};

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

impl SimdKernel for Fill<'_> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (i, words) in self.out.iter_mut().enumerate() {
            *words = self.stream.block(self.first.wrapping_add(i as u64));
        }
    }
}

//! Streams of [Philox](tonnage_core::philox)'s random words. The loop below is over blocks; LLVM puts as many of them side by
//! side as the vectors are wide.

use tonnage_core::philox::block;

use super::level::Level;
use super::vectorize::{Isa, SimdKernel};

/// A stream of random words: a key, and the upper half of every counter. The lower half counts the
/// stream's blocks, 2^64 of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

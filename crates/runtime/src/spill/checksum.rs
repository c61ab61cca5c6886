//! A checksum of 64 bits, for bytes that a file should give back as they were.
//!
//! Four sums side by side over words of eight bytes, each word mixed in by a multiplication, so that it runs at the
//! speed of memory. It finds what disks and people do to files; it is no protection against an attacker, who could
//! write to the process's memory as well as to its files. No crate is worth its dependency for this.

/// Odd, with about half of their bits set: the fractional digits of square roots of primes.
const KEYS: [u64; 4] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

/// Bytes in a block: a word for each sum.
const BLOCK: usize = 32;

/// The checksum of some bytes.
pub(super) fn sum(bytes: &[u8]) -> u64 {
    let mut sum = Checksum::default();
    sum.add(bytes);
    sum.finish()
}

/// The checksum of bytes that come in pieces: the same, however they are cut.
///
/// ```
/// use tonnage_runtime::spill::Checksum;
/// let (mut whole, mut parts) = (Checksum::default(), Checksum::default());
/// whole.add(b"all of it");
/// parts.add(b"all ");
/// parts.add(b"of it");
/// assert_eq!(whole.finish(), parts.finish());
/// ```
#[derive(Debug, Clone)]
pub struct Checksum {
    sums: [u64; 4],
    /// The bytes of a block that is not full yet.
    rest: [u8; BLOCK],
    len: u64,
}

impl Default for Checksum {
    fn default() -> Checksum {
        Checksum { sums: KEYS, rest: [0; BLOCK], len: 0 }
    }
}

impl Checksum {
    /// Adds what comes next.
    pub fn add(&mut self, mut bytes: &[u8]) {
        let waiting = self.waiting();
        self.len += bytes.len() as u64;
        if waiting > 0 {
            let (first, others) = bytes.split_at(bytes.len().min(BLOCK - waiting));
            self.rest[waiting..waiting + first.len()].copy_from_slice(first);
            if waiting + first.len() < BLOCK {
                return;
            }
            add_block(&mut self.sums, &self.rest);
            bytes = others;
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        // In registers, not in memory.
        let mut sums = self.sums;
        blocks.iter().for_each(|block| add_block(&mut sums, block));
        self.sums = sums;
        self.rest[..rest.len()].copy_from_slice(rest);
    }

    /// The sum of all that was added.
    pub fn finish(&self) -> u64 {
        let mut sums = self.sums;
        for (i, byte) in self.rest[..self.waiting()].iter().enumerate() {
            sums[i % 4] = mix(sums[i % 4], u64::from(*byte), KEYS[i % 4]);
        }
        sums.iter().zip(KEYS).fold(self.len, |all, (sum, key)| mix(all, *sum, key))
    }

    fn waiting(&self) -> usize {
        (self.len % BLOCK as u64) as usize
    }
}

fn add_block(sums: &mut [u64; 4], block: &[u8; BLOCK]) {
    let (words, _) = block.as_chunks::<8>();
    for ((sum, word), key) in sums.iter_mut().zip(words).zip(KEYS) {
        *sum = mix(*sum, u64::from_le_bytes(*word), key);
    }
}

/// Both halves of a product: every bit of a word reaches every bit of the sum. (One half alone lets the highest bit
/// through as it is, so that two changed bits could undo each other.)
fn mix(sum: u64, word: u64, key: u64) -> u64 {
    let wide = u128::from(sum ^ word) * u128::from(key);
    wide as u64 ^ (wide >> 64) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bit_of_every_byte_and_their_number_count() {
        let bytes: Vec<u8> = (0..99u32).map(|i| (i * 37) as u8).collect();
        let mut seen = vec![sum(&bytes)];
        for at in 0..bytes.len() {
            for bit in 0..8 {
                let mut other = bytes.clone();
                other[at] ^= 1 << bit;
                seen.push(sum(&other));
            }
            seen.push(sum(&bytes[..at]));
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn pieces_of_any_length_have_the_sum_of_the_whole() {
        let bytes: Vec<u8> = (0..200u32).map(|i| (i * 41) as u8).collect();
        for length in [1, 3, 31, 32, 33, 64, 199] {
            let mut parts = Checksum::default();
            bytes.chunks(length).for_each(|part| parts.add(part));
            assert_eq!(parts.finish(), sum(&bytes), "{length}");
        }
    }

    #[test]
    fn two_changes_do_not_undo_each_other() {
        let bytes = [0x5au8; 96];
        let mut seen = vec![sum(&bytes)];
        for first in 0..256 {
            for second in 256..512 {
                let mut other = bytes;
                other[first / 8] ^= 1 << (first % 8);
                other[second / 8] ^= 1 << (second % 8);
                seen.push(sum(&other));
            }
        }
        let count = seen.len();
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), count);
    }

    #[test]
    fn exchanged_words_and_zeros_that_are_lost_show() {
        let mut bytes = vec![0u8; 256];
        assert_ne!(sum(&bytes), sum(&bytes[..224]));
        bytes[0] = 1;
        let first = sum(&bytes);
        bytes.swap(0, 32);
        assert_ne!(first, sum(&bytes));
    }
}

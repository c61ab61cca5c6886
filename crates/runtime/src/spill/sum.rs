//! A checksum of 64 bits, for bytes that a file should give back as they were.
//!
//! Four sums side by side over words of eight bytes, each word mixed in by a multiplication, so that it runs at the
//! speed of memory. It finds what disks and people do to files; it is no protection against an attacker, who could
//! write to the process's memory as well as to its files. No crate is worth its dependency for this.

/// Odd, with about half of their bits set: the fractional digits of square roots of primes.
const KEYS: [u64; 4] =
    [0x6a09_e667_f3bc_c909, 0xbb67_ae85_84ca_a73b, 0x3c6e_f372_fe94_f82b, 0xa54f_f53a_5f1d_36f1];

/// The checksum of some bytes.
pub fn sum(bytes: &[u8]) -> u64 {
    let mut sums = KEYS;
    let (blocks, rest) = bytes.as_chunks::<32>();
    for block in blocks {
        let (words, _) = block.as_chunks::<8>();
        for ((sum, word), key) in sums.iter_mut().zip(words).zip(KEYS) {
            *sum = mix(*sum, u64::from_le_bytes(*word), key);
        }
    }
    for (i, byte) in rest.iter().enumerate() {
        sums[i % 4] = mix(sums[i % 4], u64::from(*byte), KEYS[i % 4]);
    }
    sums.iter().zip(KEYS).fold(bytes.len() as u64, |all, (sum, key)| mix(all, *sum, key))
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

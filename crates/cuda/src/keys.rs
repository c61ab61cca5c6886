//! Maps by what tells kernels apart. They are asked at every launch, so their hash is a few operations a word; nobody chooses keys to make it
//! slow.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// A map by such a key.
pub type KeyMap<K, V> = HashMap<K, V, BuildHasherDefault<KeyHasher>>;

/// An odd number without a pattern: the golden ratio's digits.
const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;

/// A hash of words, one after the other.
#[derive(Debug, Default, Clone, Copy)]
pub struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(size_of::<u64>()) {
            let mut word = [0; size_of::<u64>()];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u8(&mut self, n: u8) {
        self.write_u64(n.into());
    }

    fn write_u16(&mut self, n: u16) {
        self.write_u64(n.into());
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0 ^ n).wrapping_mul(SPREAD).rotate_left(29);
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn finish(&self) -> u64 {
        // A map looks at both ends.
        let spread = self.0.wrapping_mul(SPREAD);
        spread ^ spread >> 32
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::hash::{BuildHasher, BuildHasherDefault};

    use super::*;

    #[test]
    fn keys_that_differ_in_a_word_or_in_their_order_have_other_hashes() {
        let hash = |words: &[u32]| BuildHasherDefault::<KeyHasher>::default().hash_one(words);
        let mut seen = HashSet::new();
        for a in 0..64 {
            for b in 0..64 {
                assert!(seen.insert(hash(&[a, b])), "{a} {b}");
            }
        }
        assert_ne!(hash(&[0]), hash(&[0, 0]));
        // Both ends of a hash tell small numbers apart.
        let ends = |n: u32| (hash(&[n]) >> 57, hash(&[n]) % 64);
        let both: HashSet<_> = (0..64).map(ends).collect();
        assert!(both.len() > 60, "{}", both.len());
    }
}

//! Philox4x32-10: random bits from a key and a counter.
//!
//! The generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3"
//! (2011): ten rounds of two 32-bit multiplications. Invariant: a block of four words depends on the
//! key and the counter alone, so any tile, thread, device or recomputation finds the same bits.

const MULTIPLIERS: [u32; 2] = [0xd251_1f53, 0xcd9e_8d57];

const WEYL: [u32; 2] = [0x9e37_79b9, 0xbb67_ae85];

/// The four words of one counter.
///
/// ```
/// use tonnage_core::philox::block;
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

/// The key of a list of numbers, such as a seed and a counter: another one for every list, however long. Its blocks have
/// [`NUMBERED`] as the last word of their counters.
pub fn key_of(numbers: impl ExactSizeIterator<Item = i64>) -> [u32; 2] {
    let halves = |number: u64| [number as u32, (number >> 32) as u32];
    let first = halves(numbers.len() as u64);
    numbers.fold(first, |key, number| {
        let [low, high] = halves(number as u64);
        let words = block(key, [low, high, 0, NUMBERED]);
        [words[0], words[1]]
    })
}

/// What [`key_of`] puts into the last word of a counter.
pub const NUMBERED: u32 = 5;

//! Strings in buckets by their hash, with TensorFlow's values: models that were trained there look up the same rows here.

use tonnage::strings::{Strings, step};
use tonnage::{DType, Result, Tensor, TensorType};
use tonnage_core::error::bad_argument;

/// A bucket for each string, `i64`, by a hash that is quick and whose values TensorFlow may change; see [`hash_bucket_fast`].
///
/// # Errors
/// Where there is no bucket.
#[track_caller]
pub fn hash_bucket(x: &Strings, buckets: i64) -> Result<Tensor> {
    bucket("to_hash_bucket", x, buckets, murmur)
}

/// A bucket for each string, `i64`, by its [`fingerprint64`].
///
/// ```
/// use tonnage::strings::Strings;
/// use tonnage_formats::strings::hash_bucket_fast;
/// let x = Strings::new(&["Hello", "TensorFlow", "2.x"], [3])?;
/// assert_eq!(hash_bucket_fast(&x, 3)?.to_vec::<i64>()?, [0, 2, 2]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// Where there is no bucket.
#[track_caller]
pub fn hash_bucket_fast(x: &Strings, buckets: i64) -> Result<Tensor> {
    bucket("to_hash_bucket_fast", x, buckets, fingerprint64)
}

/// A bucket for each string, `i64`, by SipHash with a key: nobody who does not know it can fill one bucket.
///
/// # Errors
/// Where there is no bucket.
#[track_caller]
pub fn hash_bucket_strong(x: &Strings, buckets: i64, key: [u64; 2]) -> Result<Tensor> {
    bucket("to_hash_bucket_strong", x, buckets, move |text| sip(text, key))
}

#[track_caller]
fn bucket(
    op: &'static str,
    x: &Strings,
    buckets: i64,
    hash: impl Fn(&[u8]) -> u64 + Send + Sync + 'static,
) -> Result<Tensor> {
    if buckets < 1 {
        return Err(bad_argument(op, format!("{buckets} buckets"), "give at least 1"));
    }
    let results = [TensorType::new(DType::I64, x.shape())];
    let made = step(op, &[x], &[], &results, move |strings, _, out| {
        for (i, bucket) in (0..strings[0].len()).zip(out[0].slice::<i64>()) {
            *bucket = (hash(strings[0].get(i)?) % buckets as u64) as i64;
        }
        Ok(())
    })?;
    Ok(made[0].clone())
}

/// Eight bytes from `at` on, the lowest first.
fn word(text: &[u8], at: usize) -> u64 {
    let mut bytes = [0; 8];
    bytes.copy_from_slice(&text[at..at + 8]);
    u64::from_le_bytes(bytes)
}

fn half(text: &[u8], at: usize) -> u64 {
    word(&[&text[at..at + 4], &[0; 4]].concat(), 0)
}

/// MurmurHash64A with TensorFlow's seed.
fn murmur(text: &[u8]) -> u64 {
    const M: u64 = 0xc6a4_a793_5bd1_e995;
    let mut hash = 0x00de_cafc_affe ^ (text.len() as u64).wrapping_mul(M);
    let (words, rest) = text.as_chunks::<8>();
    for bytes in words {
        let word = u64::from_le_bytes(*bytes).wrapping_mul(M);
        hash = (hash ^ (word ^ word >> 47).wrapping_mul(M)).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let word = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
        hash = (hash ^ word).wrapping_mul(M);
    }
    hash = (hash ^ hash >> 47).wrapping_mul(M);
    hash ^ hash >> 47
}

/// SipHash with two rounds for each word and four at the end.
fn sip(text: &[u8], key: [u64; 2]) -> u64 {
    let [low, high] = key;
    let mut v = [
        low ^ 0x736f_6d65_7073_6575,
        high ^ 0x646f_7261_6e64_6f6d,
        low ^ 0x6c79_6765_6e65_7261,
        high ^ 0x7465_6462_7974_6573,
    ];
    let rounds = |v: &mut [u64; 4], count: usize| {
        for _ in 0..count {
            v[0] = v[0].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(13) ^ v[0];
            v[0] = v[0].rotate_left(32);
            v[2] = v[2].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(16) ^ v[2];
            v[0] = v[0].wrapping_add(v[3]);
            v[3] = v[3].rotate_left(21) ^ v[0];
            v[2] = v[2].wrapping_add(v[1]);
            v[1] = v[1].rotate_left(17) ^ v[2];
            v[2] = v[2].rotate_left(32);
        }
    };
    let (words, rest) = text.as_chunks::<8>();
    let last = rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte));
    let last = last | (text.len() as u64) << 56;
    for word in words.iter().map(|bytes| u64::from_le_bytes(*bytes)).chain([last]) {
        v[3] ^= word;
        rounds(&mut v, 2);
        v[0] ^= word;
    }
    v[2] ^= 0xff;
    rounds(&mut v, 4);
    v[0] ^ v[1] ^ v[2] ^ v[3]
}

const K0: u64 = 0xc3a5_c85c_97cb_3127;
const K1: u64 = 0xb492_b66f_be98_f273;
const K2: u64 = 0x9ae1_6a3b_2f90_404f;

fn mixed(value: u64) -> u64 {
    value ^ value >> 47
}

/// Two words as one.
fn folded(low: u64, high: u64, by: u64) -> u64 {
    let a = mixed((low ^ high).wrapping_mul(by));
    mixed((high ^ a).wrapping_mul(by)).wrapping_mul(by)
}

/// FarmHash's `Fingerprint64`: the same for ever.
///
/// ```
/// assert_eq!(tonnage_formats::strings::fingerprint64(b""), 0x9ae16a3b2f90404f);
/// ```
pub fn fingerprint64(text: &[u8]) -> u64 {
    match text.len() {
        0..=16 => up_to_16(text),
        17..=32 => up_to_32(text),
        33..=64 => up_to_64(text),
        _ => longer(text),
    }
}

fn up_to_16(text: &[u8]) -> u64 {
    let length = text.len() as u64;
    let by = K2.wrapping_add(length * 2);
    match text.len() {
        8.. => {
            let a = word(text, 0).wrapping_add(K2);
            let b = word(text, text.len() - 8);
            let c = b.rotate_right(37).wrapping_mul(by).wrapping_add(a);
            let d = a.rotate_right(25).wrapping_add(b).wrapping_mul(by);
            folded(c, d, by)
        }
        4..8 => folded(length + (half(text, 0) << 3), half(text, text.len() - 4), by),
        1..4 => {
            let at = |i: usize| u64::from(text[i]);
            let y = at(0) + (at(text.len() / 2) << 8);
            let z = length + (at(text.len() - 1) << 2);
            mixed(y.wrapping_mul(K2) ^ z.wrapping_mul(K0)).wrapping_mul(K2)
        }
        0 => K2,
    }
}

fn up_to_32(text: &[u8]) -> u64 {
    let length = text.len();
    let by = K2.wrapping_add(length as u64 * 2);
    let (a, b) = (word(text, 0).wrapping_mul(K1), word(text, 8));
    let (c, d) =
        (word(text, length - 8).wrapping_mul(by), word(text, length - 16).wrapping_mul(K2));
    let low = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    folded(low, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), by)
}

fn up_to_64(text: &[u8]) -> u64 {
    let length = text.len();
    let by = K2.wrapping_add(length as u64 * 2);
    let (a, b) = (word(text, 0).wrapping_mul(K2), word(text, 8));
    let (c, d) =
        (word(text, length - 8).wrapping_mul(by), word(text, length - 16).wrapping_mul(K2));
    let y = a.wrapping_add(b).rotate_right(43).wrapping_add(c.rotate_right(30)).wrapping_add(d);
    let z = folded(y, a.wrapping_add(b.wrapping_add(K2).rotate_right(18)).wrapping_add(c), by);
    let (e, f) = (word(text, 16).wrapping_mul(by), word(text, 24));
    let g = y.wrapping_add(word(text, length - 32)).wrapping_mul(by);
    let h = z.wrapping_add(word(text, length - 24)).wrapping_mul(by);
    let low = e.wrapping_add(f).rotate_right(43).wrapping_add(g.rotate_right(30)).wrapping_add(h);
    folded(low, e.wrapping_add(f.wrapping_add(a).rotate_right(18)).wrapping_add(g), by)
}

/// Of 32 bytes from `at` on, with two seeds.
fn weak(text: &[u8], at: usize, a: u64, b: u64) -> (u64, u64) {
    let [w, x, y, z] = [0, 8, 16, 24].map(|i| word(text, at + i));
    let a = a.wrapping_add(w);
    let b = b.wrapping_add(a).wrapping_add(z).rotate_right(21);
    let sum = a.wrapping_add(x).wrapping_add(y);
    (sum.wrapping_add(z), b.wrapping_add(sum.rotate_right(44)).wrapping_add(a))
}

fn longer(text: &[u8]) -> u64 {
    const SEED: u64 = 81;
    let last = (text.len() - 1) % 64;
    let end = text.len() - 1 - last;
    let mut x = SEED.wrapping_mul(K2).wrapping_add(word(text, 0));
    let mut y = SEED.wrapping_mul(K1).wrapping_add(113);
    let mut z = mixed(y.wrapping_mul(K2).wrapping_add(113)).wrapping_mul(K2);
    let (mut v, mut w) = ((0u64, 0u64), (0u64, 0u64));
    // The last block overlaps the one before it, and is mixed by another factor.
    let mut block = |at: usize, by: u64, is_last: bool, v: &mut (u64, u64), w: &mut (u64, u64)| {
        let factor: u64 = if is_last { 9 } else { 1 };
        x = x.wrapping_add(y).wrapping_add(v.0).wrapping_add(word(text, at + 8));
        x = x.rotate_right(37).wrapping_mul(by);
        y = y.wrapping_add(v.1).wrapping_add(word(text, at + 48)).rotate_right(42).wrapping_mul(by);
        x ^= w.1.wrapping_mul(factor);
        y = y.wrapping_add(v.0.wrapping_mul(factor)).wrapping_add(word(text, at + 40));
        z = z.wrapping_add(w.0).rotate_right(33).wrapping_mul(by);
        *v = weak(text, at, v.1.wrapping_mul(by), x.wrapping_add(w.0));
        *w = weak(text, at + 32, z.wrapping_add(w.1), y.wrapping_add(word(text, at + 16)));
        std::mem::swap(&mut z, &mut x);
        (x, y, z)
    };
    let mut state = (0, 0, 0);
    for at in (0..end).step_by(64) {
        state = block(at, K1, false, &mut v, &mut w);
    }
    let by = K1.wrapping_add((state.2 & 0xff) << 1);
    w.0 = w.0.wrapping_add(last as u64);
    v.0 = v.0.wrapping_add(w.0);
    w.0 = w.0.wrapping_add(v.0);
    let (x, y, z) = block(text.len() - 64, by, true, &mut v, &mut w);
    let low = folded(v.0, w.0, by).wrapping_add(mixed(y).wrapping_mul(K0)).wrapping_add(z);
    folded(low, folded(v.1, w.1, by).wrapping_add(x), by)
}

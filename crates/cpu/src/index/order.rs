//! Elements as whole numbers in the same order: what `sort`, `argsort`, `unique` and `searchsorted` share.
//!
//! NaN comes behind everything, whatever its sign, and all NaNs are level. Comparing whole numbers is what a sort
//! is fast with, and an index packed beside one breaks ties: a stable sort in place, without memory of its own.

use bytemuck::Pod;
use tonnage_core::{Bool, Element, Result, bf16, f16};

use crate::parallel::strides;
use crate::workers::Workers;

/// Keys that are worth a thread of their own.
const MANY: usize = 1 << 13;

/// Keys that are sorted without a look at whether to stop: some milliseconds.
const LONGEST: usize = 1 << 18;

/// Sorts keys in place, many of them on all threads: what belongs into the lower part is parted from the rest, and both
/// are sorted by themselves.
///
/// # Errors
/// Where the work is stopped: the keys are in some order.
pub fn in_order<K: Ord + Copy + Send>(keys: &mut [K], workers: &dyn Workers) -> Result<()> {
    among(keys, workers.threads(), workers);
    workers.check()
}

fn among<K: Ord + Copy + Send>(mut keys: &mut [K], threads: usize, workers: &dyn Workers) {
    while threads > 1 && keys.len() >= 2 * MANY {
        if workers.is_stopped() {
            return;
        }
        let (low, high) = parted(std::mem::take(&mut keys), workers);
        if low.is_empty() {
            keys = high;
            continue;
        }
        // Each part has threads for its length.
        let share = threads * low.len() / (low.len() + high.len());
        let lower = share.clamp(1, threads - 1);
        workers.join(&mut || among(low, lower, workers), &mut || {
            among(high, threads - lower, workers);
        });
        return;
    }
    in_pieces(keys, workers);
}

/// Sorts keys on one thread: quicksort down to pieces that are sorted at once.
fn in_pieces<K: Ord + Copy>(mut keys: &mut [K], workers: &dyn Workers) {
    if keys.len() > LONGEST && is_sorted(keys, workers) {
        return;
    }
    while keys.len() > LONGEST {
        if workers.is_stopped() {
            return;
        }
        let (low, high) = parted(std::mem::take(&mut keys), workers);
        let (less, more) = if low.len() < high.len() { (low, high) } else { (high, low) };
        in_pieces(less, workers);
        keys = more;
    }
    keys.sort_unstable();
}

/// Whether keys are in order; some answer where the work is stopped.
fn is_sorted<K: Ord>(keys: &[K], workers: &dyn Workers) -> bool {
    // The last key of a range is the first of the next one.
    strides(workers, 0..keys.len(), 1)
        .all(|range| keys[range.start..(range.end + 1).min(keys.len())].is_sorted())
}

/// The keys in two parts that are sorted by themselves: what is in the first belongs before what is in the second. Where
/// the first is empty, what is in its place already was left out, at least one key. In some order where the work is stopped.
fn parted<'k, K: Ord + Copy>(
    keys: &'k mut [K],
    workers: &dyn Workers,
) -> (&'k mut [K], &'k mut [K]) {
    let step = keys.len() / SEEN;
    let mut seen: [K; SEEN] = std::array::from_fn(|i| keys[i * step + step / 2]);
    seen.sort_unstable();
    let pivot = seen[SEEN / 2];
    let below = part(keys, workers, |key| *key < pivot);
    match below {
        // The smallest ones, all level, are in place.
        0 => {
            let level = part(keys, workers, |key| *key == pivot);
            (&mut [], &mut keys[level..])
        }
        _ => keys.split_at_mut(below),
    }
}

/// Keys whose median parts the rest.
const SEEN: usize = 31;

/// Brings the keys that belong to the front there, without a branch that processors would have to guess, and counts them.
fn part<K: Copy>(keys: &mut [K], workers: &dyn Workers, in_front: impl Fn(&K) -> bool) -> usize {
    let mut count = 0;
    for range in strides(workers, 0..keys.len(), 1) {
        for i in range {
            let key = keys[i];
            keys.swap(i, count);
            count += usize::from(in_front(&key));
        }
    }
    count
}

/// An element with a position in an order.
pub trait Ordered: Element {
    /// As wide as the element.
    type Key: Ord + Copy + Pod + Send + Sync + Into<u64>;
    /// A whole number in the elements' order; -0 comes before 0.
    fn key(self) -> Self::Key;
    /// The element of a key.
    fn of(key: Self::Key) -> Self;
    /// Where -0 is level with 0.
    fn level_key(self) -> Self::Key;
}

macro_rules! integers {
    ($($T:ty => $K:ty, $flip:expr;)*) => {$(
        impl Ordered for $T {
            type Key = $K;
            #[inline(always)]
            fn key(self) -> $K {
                self as $K ^ $flip
            }
            #[inline(always)]
            fn of(key: $K) -> $T {
                (key ^ $flip) as $T
            }
            #[inline(always)]
            fn level_key(self) -> $K {
                self.key()
            }
        }
    )*};
}

integers! {
    i64 => u64, 1 << 63;
    i32 => u32, 1 << 31;
    i16 => u16, 1 << 15;
    i8 => u8, 1 << 7;
    u64 => u64, 0;
    u32 => u32, 0;
    u16 => u16, 0;
    u8 => u8, 0;
}

macro_rules! floats {
    ($($T:ty => $K:ty;)*) => {$(
        impl Ordered for $T {
            type Key = $K;
            #[inline(always)]
            fn key(self) -> $K {
                const SIGN: $K = 1 << (<$K>::BITS - 1);
                let bits = self.to_bits();
                if self.is_nan() {
                    <$K>::MAX
                } else if bits & SIGN != 0 {
                    !bits
                } else {
                    bits | SIGN
                }
            }
            #[inline(always)]
            fn of(key: $K) -> $T {
                const SIGN: $K = 1 << (<$K>::BITS - 1);
                <$T>::from_bits(if key & SIGN != 0 { key ^ SIGN } else { !key })
            }
            #[inline(always)]
            fn level_key(self) -> $K {
                const ZERO: $K = 1 << (<$K>::BITS - 1);
                let key = self.key();
                if key == ZERO - 1 { ZERO } else { key }
            }
        }
    )*};
}

floats! {
    f64 => u64;
    f32 => u32;
    f16 => u16;
    bf16 => u16;
}

impl Ordered for Bool {
    type Key = u8;
    fn key(self) -> u8 {
        self.get() as u8
    }
    fn of(key: u8) -> Bool {
        Bool(key)
    }
    fn level_key(self) -> u8 {
        self.key()
    }
}

/// Runs a block with `$T` bound to the Rust type of a dtype, and `$P` to the number that packs its key and a
/// 32-bit index.
macro_rules! with_ordered {
    ($dtype:expr, $T:ident, $P:ident => $body:expr) => {{
        macro_rules! arm {
            ($rust:ty, $packed:ty) => {{
                type $T = $rust;
                type $P = $packed;
                $body
            }};
        }
        match $dtype {
            tonnage_core::DType::F64 => arm!(f64, u128),
            tonnage_core::DType::I64 => arm!(i64, u128),
            tonnage_core::DType::U64 => arm!(u64, u128),
            tonnage_core::DType::F32 => arm!(f32, u64),
            tonnage_core::DType::F16 => arm!(tonnage_core::f16, u64),
            tonnage_core::DType::BF16 => arm!(tonnage_core::bf16, u64),
            tonnage_core::DType::I32 => arm!(i32, u64),
            tonnage_core::DType::I16 => arm!(i16, u64),
            tonnage_core::DType::I8 => arm!(i8, u64),
            tonnage_core::DType::U32 => arm!(u32, u64),
            tonnage_core::DType::U16 => arm!(u16, u64),
            tonnage_core::DType::U8 => arm!(u8, u64),
            tonnage_core::DType::Bool => arm!(tonnage_core::Bool, u64),
        }
    }};
}

/// A key and an index in one number.
pub trait Packed: Ord + Copy + Pod + Send + Sync {
    /// The key above, the index below.
    fn pack(key: u64, index: usize) -> Self;
    /// The index.
    fn index(self) -> usize;
    /// The key.
    fn packed_key(self) -> u64;
}

macro_rules! packed {
    ($($P:ty),*) => {$(
        impl Packed for $P {
            #[inline(always)]
            fn pack(key: u64, index: usize) -> $P {
                (key as $P) << 32 | index as u32 as $P
            }
            #[inline(always)]
            fn index(self) -> usize {
                self as u32 as usize
            }
            #[inline(always)]
            fn packed_key(self) -> u64 {
                (self >> 32) as u64
            }
        }
    )*};
}

packed!(u64, u128);

/// Bytes of a packed element.
pub fn packed_bytes(dtype: tonnage_core::DType) -> usize {
    if dtype.size() == 8 { size_of::<u128>() } else { size_of::<u64>() }
}

pub(super) use with_ordered;

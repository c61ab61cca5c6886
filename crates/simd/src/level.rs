//! What vectors this machine has, found out once.
//!
//! Invariant: a [`Level`] in hand is a proof that the machine has it. The two levels above
//! [`Level::Portable`] carry a token that only detection makes, so a function that takes a `Level`
//! is safe to call with any value there is, and a test forces a lower level by picking one out of
//! [`Level::available`]. All that is special to a vector width sits behind this and
//! [`vectorize`](super::vectorize).

use std::fmt;
use std::sync::OnceLock;

/// Made by detection alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Detected(());

/// How wide the vectors are, and whether there is a fused multiply-add.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// What every machine of this architecture has: SSE2 on x86-64, NEON on AArch64.
    Portable,
    /// AVX2, FMA, F16C: 32 bytes.
    Avx2(Detected),
    /// AVX-512 F, BW, CD, DQ, VL: 64 bytes.
    Avx512(Detected),
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Level::Portable => "portable",
            Level::Avx2(_) => "avx2",
            Level::Avx512(_) => "avx512",
        })
    }
}

static LEVEL: OnceLock<Level> = OnceLock::new();

/// The best level that this machine has. One load after the first call.
///
/// ```
/// use tonnage_simd::{Level, level};
/// assert!(Level::available().contains(&level()));
/// ```
#[inline]
pub fn level() -> Level {
    match LEVEL.get() {
        Some(level) => *level,
        None => *LEVEL.get_or_init(detect),
    }
}

impl Level {
    /// How wide its vectors are, in bytes.
    pub const fn bytes(self) -> usize {
        match self {
            Level::Portable => 16,
            Level::Avx2(_) => 32,
            Level::Avx512(_) => 64,
        }
    }

    /// Every level that this machine has, lowest first. Results may be asked for at any of them.
    pub fn available() -> &'static [Level] {
        const ALL: [Level; 3] =
            [Level::Portable, Level::Avx2(Detected(())), Level::Avx512(Detected(()))];
        match level() {
            Level::Portable => &ALL[..1],
            Level::Avx2(_) => &ALL[..2],
            Level::Avx512(_) => &ALL,
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn detect() -> Level {
    // Each list is that of the functions in `vectorize`, which are entered on this word alone.
    let avx2 = is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("fma")
        && is_x86_feature_detected!("f16c")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt");
    let avx512 = avx2
        && is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512cd")
        && is_x86_feature_detected!("avx512dq")
        && is_x86_feature_detected!("avx512vl");
    match (avx2, avx512) {
        (_, true) => Level::Avx512(Detected(())),
        (true, false) => Level::Avx2(Detected(())),
        (false, false) => Level::Portable,
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn detect() -> Level {
    Level::Portable
}

//! Tiles of products of bytes: some rows of signed bytes by 32 columns of unsigned ones, four steps of K at once.
//!
//! A panel of columns has for each four steps of K those four bytes of each column side by side, which is how the instruction `vpdpbusd` takes them.
//! Products of two bytes and sums of four of them fit 32 bits; sums beyond that wrap, as they do in the plain loops, which give the same bits.

#![allow(unsafe_code, reason = "vector instructions, and the pointers that they load from")]
#![allow(clippy::needless_range_loop, reason = "inner loops index arrays")]

/// The most rows of a tile.
pub const ROWS: usize = 12;

/// Columns of a panel.
pub const COLS: usize = 32;

/// Steps of K at once.
pub const STEP: usize = 4;

/// The sums of a tile.
pub type Sums = [[i32; COLS]; ROWS];

/// Which instructions multiply bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IntegerLevel {
    /// What every machine of the target has.
    Portable,
    /// x86-64 with AVX2.
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// x86-64 with AVX-VNNI: vectors of 32 bytes.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    /// x86-64 with AVX-512 VNNI: vectors of 64 bytes.
    #[cfg(target_arch = "x86_64")]
    Avx512Vnni,
}

impl IntegerLevel {
    /// All that this target can name, the slowest first.
    #[cfg(target_arch = "x86_64")]
    pub const ALL: &[IntegerLevel] = &[
        IntegerLevel::Portable,
        IntegerLevel::Avx2,
        IntegerLevel::AvxVnni,
        IntegerLevel::Avx512Vnni,
    ];
    /// All that this target can name, the slowest first.
    #[cfg(not(target_arch = "x86_64"))]
    pub const ALL: &[IntegerLevel] = &[IntegerLevel::Portable];

    /// True where this machine has it. The standard library caches the answer.
    pub fn is_available(self) -> bool {
        match self {
            IntegerLevel::Portable => true,
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::Avx2 => is_x86_feature_detected!("avx2"),
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::AvxVnni => {
                is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni")
            }
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::Avx512Vnni => {
                is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vnni")
            }
        }
    }

    /// The fastest that this machine has.
    pub fn best() -> IntegerLevel {
        let mut all = IntegerLevel::ALL.iter().rev().copied();
        all.find(|level| level.is_available()).unwrap_or(IntegerLevel::Portable)
    }

    /// The sums of some rows by a panel. `strip` has room for as many rows as a tile has; those beyond `rows` may hold anything, and their sums
    /// mean nothing. Portable loops where the machine lacks the level.
    pub fn tile(self, rows: usize, strip: &[i8], panel: &[u8], sums: &mut Sums) {
        match rows {
            1 => self.of_rows::<1>(strip, panel, sums),
            2 => self.of_rows::<2>(strip, panel, sums),
            3 | 4 => self.of_rows::<4>(strip, panel, sums),
            5..=8 => self.of_rows::<8>(strip, panel, sums),
            _ => self.of_rows::<ROWS>(strip, panel, sums),
        }
    }

    fn of_rows<const R: usize>(self, strip: &[i8], panel: &[u8], sums: &mut Sums) {
        let stride = panel.len() / COLS;
        assert!(
            panel.len() == stride * COLS
                && stride.is_multiple_of(STEP)
                && strip.len() >= R * stride
        );
        match if self.is_available() { self } else { IntegerLevel::Portable } {
            IntegerLevel::Portable => plain::<R>(strip, panel, sums),
            // SAFETY: the machine has the level, and the slices are long enough, as was just seen.
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::Avx2 => unsafe { avx2::<R>(strip, panel, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::AvxVnni => unsafe { avx_vnni::<R>(strip, panel, sums) },
            // SAFETY: as above.
            #[cfg(target_arch = "x86_64")]
            IntegerLevel::Avx512Vnni => unsafe { avx512_vnni::<R>(strip, panel, sums) },
        }
    }
}

/// Four rows of the columns of a panel, those bytes of each column side by side, with the bits of `flip` turned over.
#[inline]
pub fn interleave(rows: [&[u8; COLS]; STEP], flip: u8, out: &mut [u8; STEP * COLS]) {
    #[cfg(target_arch = "x86_64")]
    interleave_vectors(rows, flip, out);
    #[cfg(not(target_arch = "x86_64"))]
    for col in 0..COLS {
        for (step, row) in rows.iter().enumerate() {
            out[col * STEP + step] = row[col] ^ flip;
        }
    }
}

/// By vectors that every machine of the target has.
#[cfg(target_arch = "x86_64")]
#[inline]
fn interleave_vectors(rows: [&[u8; COLS]; STEP], flip: u8, out: &mut [u8; STEP * COLS]) {
    use std::arch::x86_64::{
        _mm_loadu_si128, _mm_set1_epi8, _mm_storeu_si128, _mm_unpackhi_epi8, _mm_unpackhi_epi16,
        _mm_unpacklo_epi8, _mm_unpacklo_epi16, _mm_xor_si128,
    };
    /// Bytes of a vector.
    const BYTES: usize = 16;
    for half in 0..COLS / BYTES {
        let load = |row: &[u8; COLS]| {
            // SAFETY: both halves of a row have 16 bytes; the target has SSE2.
            unsafe {
                let bytes = _mm_loadu_si128(row.as_ptr().add(half * BYTES).cast());
                _mm_xor_si128(bytes, _mm_set1_epi8(flip.cast_signed()))
            }
        };
        let (a, b, c, d) = (load(rows[0]), load(rows[1]), load(rows[2]), load(rows[3]));
        // SAFETY: the target has SSE2; four vectors for each half are what `out` has.
        unsafe {
            let (low, high) = (_mm_unpacklo_epi8(a, b), _mm_unpackhi_epi8(a, b));
            let (more_low, more_high) = (_mm_unpacklo_epi8(c, d), _mm_unpackhi_epi8(c, d));
            let to = out.as_mut_ptr().add(half * STEP * BYTES);
            _mm_storeu_si128(to.cast(), _mm_unpacklo_epi16(low, more_low));
            _mm_storeu_si128(to.add(BYTES).cast(), _mm_unpackhi_epi16(low, more_low));
            _mm_storeu_si128(to.add(2 * BYTES).cast(), _mm_unpacklo_epi16(high, more_high));
            _mm_storeu_si128(to.add(3 * BYTES).cast(), _mm_unpackhi_epi16(high, more_high));
        }
    }
}

#[inline(always)]
fn plain<const R: usize>(strip: &[i8], panel: &[u8], sums: &mut Sums) {
    let stride = panel.len() / COLS;
    for row in 0..R {
        let mut made = [0i32; COLS];
        for step in 0..stride / STEP {
            let a = &strip[row * stride + step * STEP..][..STEP];
            let b = &panel[step * STEP * COLS..][..STEP * COLS];
            for col in 0..COLS {
                for i in 0..STEP {
                    let product = i32::from(a[i]) * i32::from(b[col * STEP + i]);
                    made[col] = made[col].wrapping_add(product);
                }
            }
        }
        sums[row] = made;
    }
}

/// # Safety
/// Needs AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
unsafe fn avx2<const R: usize>(strip: &[i8], panel: &[u8], sums: &mut Sums) {
    plain::<R>(strip, panel, sums);
}

/// # Safety
/// Needs AVX-VNNI; `strip` has `R` rows as long as the panel has steps of K.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,avxvnni")]
unsafe fn avx_vnni<const R: usize>(strip: &[i8], panel: &[u8], sums: &mut Sums) {
    use std::arch::x86_64::{
        __m256i, _mm256_dpbusd_avx_epi32, _mm256_loadu_si256, _mm256_set1_epi32,
        _mm256_setzero_si256, _mm256_storeu_si256,
    };
    /// Vectors of a row of sums.
    const VECTORS: usize = COLS / 8;
    /// Rows whose sums fit the registers.
    const AT_ONCE: usize = 3;
    let stride = panel.len() / COLS;
    for first in (0..R).step_by(AT_ONCE) {
        let mut acc = [[_mm256_setzero_si256(); VECTORS]; AT_ONCE];
        for step in 0..stride / STEP {
            let b: [__m256i; VECTORS] = std::array::from_fn(|i| {
                // SAFETY: the panel has 128 bytes for each step.
                unsafe {
                    _mm256_loadu_si256(panel.as_ptr().add(step * STEP * COLS + 32 * i).cast())
                }
            });
            for (i, acc) in acc.iter_mut().enumerate() {
                // A row beyond the last is the last once more; its sums are not stored.
                let row = (first + i).min(R - 1);
                // SAFETY: row `row` has `stride` bytes.
                let a = unsafe {
                    strip.as_ptr().add(row * stride + step * STEP).cast::<i32>().read_unaligned()
                };
                let a = _mm256_set1_epi32(a);
                for (acc, b) in acc.iter_mut().zip(b) {
                    *acc = _mm256_dpbusd_avx_epi32(*acc, b, a);
                }
            }
        }
        for (sums, acc) in sums[first..R].iter_mut().zip(acc) {
            for (sums, acc) in sums.chunks_exact_mut(8).zip(acc) {
                // SAFETY: eight sums of 4 bytes.
                unsafe { _mm256_storeu_si256(sums.as_mut_ptr().cast(), acc) };
            }
        }
    }
}

/// # Safety
/// Needs AVX-512 VNNI; `strip` has `R` rows as long as the panel has steps of K.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vnni")]
unsafe fn avx512_vnni<const R: usize>(strip: &[i8], panel: &[u8], sums: &mut Sums) {
    use std::arch::x86_64::{
        _mm512_dpbusd_epi32, _mm512_loadu_si512, _mm512_set1_epi32, _mm512_setzero_si512,
        _mm512_storeu_si512,
    };
    let stride = panel.len() / COLS;
    let mut acc = [[_mm512_setzero_si512(); 2]; R];
    let (mut a, mut b) = (strip.as_ptr(), panel.as_ptr());
    for _ in 0..stride / STEP {
        // SAFETY: the panel has 128 bytes for each step.
        let (left, right) =
            unsafe { (_mm512_loadu_si512(b.cast()), _mm512_loadu_si512(b.add(64).cast())) };
        for (row, acc) in acc.iter_mut().enumerate() {
            // SAFETY: row `row` has `stride` bytes, of which the steps so far are behind `a`.
            let x = unsafe { a.add(row * stride).cast::<i32>().read_unaligned() };
            let x = _mm512_set1_epi32(x);
            acc[0] = _mm512_dpbusd_epi32(acc[0], left, x);
            acc[1] = _mm512_dpbusd_epi32(acc[1], right, x);
        }
        a = a.wrapping_add(STEP);
        b = b.wrapping_add(STEP * COLS);
    }
    for (sums, acc) in sums.iter_mut().zip(acc) {
        let (left, right) = sums.split_at_mut(16);
        // SAFETY: sixteen sums of 4 bytes each.
        unsafe {
            _mm512_storeu_si512(left.as_mut_ptr().cast(), acc[0]);
            _mm512_storeu_si512(right.as_mut_ptr().cast(), acc[1]);
        }
    }
}

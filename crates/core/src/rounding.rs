//! Rounding to 16-bit floats once, from numbers that `f32` does not hold.
//!
//! Rounding to `f32` and then to 16 bits rounds twice: a number a little beside the middle of two 16-bit
//! neighbours lands on the middle and goes to the wrong one. Here the way to `f32` rounds *to odd*: what is cut
//! off leaves the last bit set, so the middle is hit by what lies on it and by nothing else. That is right where
//! the wider format has two bits more than the narrower one, also among its subnormal numbers, as f32 has.

use half::{bf16, f16};

/// The nearest `f32` that is the number itself or has its last bit set. NaN stays NaN; what is beyond the
/// largest number is the largest, whose last bit is set.
#[inline(always)]
pub fn to_odd(x: f64) -> f32 {
    let near = x as f32;
    let (bits, back) = (near.to_bits(), near as f64);
    // The neighbour towards zero where it was rounded away from zero.
    let odd = bits.wrapping_sub((back.abs() > x.abs()) as u32) | 1;
    f32::from_bits(if back == x || x.is_nan() { bits } else { odd })
}

/// An integer as an `f64` that is the integer itself, or has its last bit set.
#[inline(always)]
pub fn integer_to_odd(x: i64) -> f64 {
    let size = unsigned_to_odd(x.unsigned_abs());
    if x < 0 { -size } else { size }
}

/// The same, without a sign.
#[inline(always)]
pub fn unsigned_to_odd(x: u64) -> f64 {
    // 53 bits fit. Above, the low 11 go, and leave the lowest of the others set if one of them was.
    let odd = (x & !0x7ff) | (((x & 0x7ff) + 0x7ff) & 0x800);
    (if x >> 53 == 0 { x } else { odd }) as f64
}

/// Rounded once, to nearest, half to even; beyond the largest number: infinity.
///
/// ```
/// use tonnage_core::rounding::to_bf16;
/// // A little above the middle of 1 and the next number; an f32 would hold the middle.
/// let x = 1.0 + 2f64.powi(-8) + 2f64.powi(-40);
/// assert_eq!(to_bf16(x).to_f64(), 1.0 + 2f64.powi(-7));
/// ```
pub fn to_bf16(x: f64) -> bf16 {
    bf16::from_f32(to_odd(x))
}

/// Rounded once, to nearest, half to even; beyond the largest number: infinity.
pub fn to_f16(x: f64) -> f16 {
    f16::from_f32(to_odd(x))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Around the middle of all neighbours, where rounding twice goes wrong: which one is nearer is plain.
    #[test]
    fn sixteen_bits_are_rounded_once_around_every_middle() {
        fn check(of: impl Fn(u16) -> f64, round: impl Fn(f64) -> u16, infinity: u16) {
            for bits in 0..infinity {
                let (low, high) = (of(bits), of(bits + 1));
                // Above the largest number: the middle to what would come next.
                let step = if high.is_finite() { high - low } else { low - of(bits - 1) };
                let middle = low + step / 2.0;
                let even = bits + (bits & 1);
                for (x, nearest) in [
                    (low, bits),
                    (low.next_up(), bits),
                    (middle.next_down(), bits),
                    (middle, even),
                    (middle.next_up(), bits + 1),
                    (middle * (1.0 - 2f64.powi(-40)), bits),
                    (middle * (1.0 + 2f64.powi(-40)), bits + 1),
                ] {
                    assert_eq!(round(x), nearest, "{x:e} between {low:e} and {high:e}");
                    assert_eq!(round(-x), nearest | 0x8000, "{x:e}, negative");
                }
            }
            assert_eq!(round(1e300), infinity);
            assert_eq!(round(f64::INFINITY), infinity);
            assert_eq!(round(1e-300), 0);
        }
        check(|b| f16::from_bits(b).to_f64(), |x| to_f16(x).to_bits(), f16::INFINITY.to_bits());
        check(|b| bf16::from_bits(b).to_f64(), |x| to_bf16(x).to_bits(), bf16::INFINITY.to_bits());
        assert!(to_f16(f64::NAN).is_nan() && to_bf16(f64::NAN).is_nan());
    }

    #[test]
    fn integers_keep_what_was_cut_off_in_their_last_bit() {
        for shift in 0..64 {
            for near in [-3i64, -1, 0, 1, 3, 1 << 20] {
                let x = (1i64 << shift.min(62)).wrapping_add(near << (shift / 2));
                let got = integer_to_odd(x);
                let exact = got as i128 == i128::from(x);
                let neighbours = (got as i128 - i128::from(x)).abs() < 1 << 11;
                assert!(exact || neighbours && got.to_bits() & 1 == 1, "{x}: {got}");
            }
        }
        assert_eq!(integer_to_odd(i64::MIN), -(2f64.powi(63)));
        assert_eq!(unsigned_to_odd(u64::MAX).to_bits(), 2f64.powi(64).next_down().to_bits());
    }
}

//! What is left of a division, as vectors: of `f32` by way of `f64`, where the quotient is near enough that its product with the
//! divisor is exact. Others, which are rare, go to [`Arithmetic::modulo`], a loop of its own for each element.

use super::float;
use super::float::real::select;
use super::number::{Arithmetic, floored};
use super::vectorize::Isa;

/// A number with a fast way for most remainders.
pub trait Remainder: Arithmetic {
    /// True where some are beyond it.
    const FAR: bool = false;

    /// Whether this one is.
    #[inline(always)]
    fn is_far(self, _: Self) -> bool {
        false
    }

    /// [`Arithmetic::modulo`] of all others.
    #[inline(always)]
    fn near_modulo<I: Isa>(self, b: Self) -> Self {
        self.modulo(b)
    }
}

/// Quotients below this have so few bits that 24 more fit an `f64`.
const NEAR: f64 = (1 << 29) as f64;

impl Remainder for f32 {
    const FAR: bool = true;

    #[inline(always)]
    fn is_far(self, b: f32) -> bool {
        // NaN is far, and so is what an infinity or zero divides. The product is exact.
        let near = f64::from(self).abs() < NEAR * f64::from(b).abs();
        !(near & (b.abs() < f32::INFINITY))
    }

    #[inline(always)]
    fn near_modulo<I: Isa>(self, b: f32) -> f32 {
        let (x, y) = (f64::from(self), f64::from(b));
        let quotient = x / y;
        let whole = float::floor::<I, f64>(quotient.abs()).copysign(quotient);
        let left = x - whole * y;
        // Where the quotient was rounded up to an integer, a divisor too much was taken away.
        let over = (left != 0.0) & ((left < 0.0) != (x < 0.0));
        let left = select(over, left + y.abs().copysign(x), left);
        // Exact, as what is left has no more bits than the divisor or what was divided.
        floored(left as f32, b)
    }
}

macro_rules! as_they_are {
    ($($T:ty)*) => {$( impl Remainder for $T {} )*};
}

as_they_are!(f64 u8 i8 u16 i16 u32 i32 u64 i64);

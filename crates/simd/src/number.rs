//! What an element can do by itself: the ten types that tiles compute in.
//!
//! The edges, in one place:
//!
//! * Integers wrap. Division by zero gives 0, as do the remainder by zero and a shift by at least
//!   the width (a negative number shifted right gives -1); nothing panics. A negative power gives
//!   0, except of 1 and -1.
//! * `max` and `min` of a float with NaN are NaN; of two zeros, the second.
//! * `floor_div` rounds down and `modulo` has the divisor's sign, as Python's. For floats the
//!   first is `floor(a / b)`, the second is exact and made of C's `fmod`, element by element.

use bytemuck::Pod;

use super::float::real::select;
use super::float::{self, MathFloat};
use super::vectorize::Isa;

/// An element with arithmetic.
pub trait Arithmetic: Pod + PartialOrd {
    #![allow(missing_docs, reason = "the names say it all")]
    const ZERO: Self;
    const ONE: Self;
    const LEAST: Self;
    const GREATEST: Self;
    /// Whether machines divide vectors of them.
    const QUOTIENTS: bool;
    fn neg(self) -> Self;
    fn abs(self) -> Self;
    fn sign(self) -> Self;
    fn add(self, b: Self) -> Self;
    fn sub(self, b: Self) -> Self;
    fn mul(self, b: Self) -> Self;
    fn div(self, b: Self) -> Self;
    fn floor_div<I: Isa>(self, b: Self) -> Self;
    fn modulo(self, b: Self) -> Self;
    fn pow<I: Isa>(self, b: Self) -> Self;
    fn max(self, b: Self) -> Self;
    fn min(self, b: Self) -> Self;
    fn mul_add<I: Isa>(self, b: Self, c: Self) -> Self;
    fn is_nan(self) -> bool;
}

/// An element with bits of its own.
pub trait Integer: Arithmetic {
    #![allow(missing_docs, reason = "the names say it all")]
    fn not(self) -> Self;
    fn and(self, b: Self) -> Self;
    fn or(self, b: Self) -> Self;
    fn xor(self, b: Self) -> Self;
    fn shl(self, b: Self) -> Self;
    fn shr(self, b: Self) -> Self;
}

/// What is left of a division that cut its quotient off, as of one that rounded it down.
#[inline(always)]
pub(super) fn floored<T: MathFloat>(left: T, b: T) -> T {
    let zero = left == T::ZERO;
    let other = !zero & ((left < T::ZERO) != (b < T::ZERO));
    select(other, left + b, select(zero, left.copysign(b), left))
}

macro_rules! float_number {
    ($($T:ident)*) => {$(
        impl Arithmetic for $T {
            const ZERO: $T = 0.0;
            const ONE: $T = 1.0;
            const LEAST: $T = $T::NEG_INFINITY;
            const GREATEST: $T = $T::INFINITY;
            const QUOTIENTS: bool = true;
            #[inline(always)]
            fn neg(self) -> $T { -self }
            #[inline(always)]
            fn abs(self) -> $T { self.abs() }
            #[inline(always)]
            fn sign(self) -> $T {
                if self > 0.0 { 1.0 } else if self < 0.0 { -1.0 } else { self }
            }
            #[inline(always)]
            fn add(self, b: $T) -> $T { self + b }
            #[inline(always)]
            fn sub(self, b: $T) -> $T { self - b }
            #[inline(always)]
            fn mul(self, b: $T) -> $T { self * b }
            #[inline(always)]
            fn div(self, b: $T) -> $T { self / b }
            #[inline(always)]
            fn floor_div<I: Isa>(self, b: $T) -> $T { float::floor::<I, $T>(self / b) }
            #[inline(always)]
            fn modulo(self, b: $T) -> $T {
                floored(self % b, b)
            }
            #[inline(always)]
            fn pow<I: Isa>(self, b: $T) -> $T { float::pow::Pow::pow::<I>(self, b) }
            #[inline(always)]
            fn max(self, b: $T) -> $T { if self > b || self != self { self } else { b } }
            #[inline(always)]
            fn min(self, b: $T) -> $T { if self < b || self != self { self } else { b } }
            #[inline(always)]
            fn mul_add<I: Isa>(self, b: $T, c: $T) -> $T { MathFloat::fma::<I>(self, b, c) }
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
        }
    )*};
}

macro_rules! integer_number {
    ($($T:ident $Unsigned:ident)*) => {$(
        impl Arithmetic for $T {
            const ZERO: $T = 0;
            const ONE: $T = 1;
            const LEAST: $T = $T::MIN;
            const GREATEST: $T = $T::MAX;
            const QUOTIENTS: bool = false;
            #[inline(always)]
            fn neg(self) -> $T { self.wrapping_neg() }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "the unsigned types share this line")]
            fn abs(self) -> $T { if self < 0 { self.wrapping_neg() } else { self } }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "the unsigned types share this line")]
            fn sign(self) -> $T { ((self > 0) as $T).wrapping_sub((self < 0) as $T) }
            #[inline(always)]
            fn add(self, b: $T) -> $T { self.wrapping_add(b) }
            #[inline(always)]
            fn sub(self, b: $T) -> $T { self.wrapping_sub(b) }
            #[inline(always)]
            fn mul(self, b: $T) -> $T { self.wrapping_mul(b) }
            #[inline(always)]
            fn div(self, b: $T) -> $T { if b == 0 { 0 } else { self.wrapping_div(b) } }
            #[inline(always)]
            fn floor_div<I: Isa>(self, b: $T) -> $T {
                if b == 0 { return 0; }
                let q = self.wrapping_div(b);
                q.wrapping_sub((self.wrapping_sub(q.wrapping_mul(b)) != 0 && opposite(self, b)) as $T)
            }
            #[inline(always)]
            fn modulo(self, b: $T) -> $T {
                if b == 0 { return 0; }
                let r = self.wrapping_rem(b);
                if r != 0 && opposite(r, b) { r.wrapping_add(b) } else { r }
            }
            #[inline(always)]
            #[allow(unused_comparisons, reason = "the unsigned types share this line")]
            fn pow<I: Isa>(self, b: $T) -> $T {
                if b < 0 {
                    // Only 1 and -1 have an inverse; an even power of -1 has the last bit clear.
                    return if self == 1 || (self == !0 && b & 1 == 0) { 1 }
                        else if self == !0 { self } else { 0 };
                }
                let (mut power, mut base, mut left) = (1 as $T, self, b as $Unsigned);
                while left != 0 {
                    power = power.wrapping_mul(if left & 1 == 1 { base } else { 1 });
                    base = base.wrapping_mul(base);
                    left >>= 1;
                }
                power
            }
            #[inline(always)]
            fn max(self, b: $T) -> $T { Ord::max(self, b) }
            #[inline(always)]
            fn min(self, b: $T) -> $T { Ord::min(self, b) }
            #[inline(always)]
            fn mul_add<I: Isa>(self, b: $T, c: $T) -> $T { self.wrapping_mul(b).wrapping_add(c) }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }

        impl Integer for $T {
            #[inline(always)]
            fn not(self) -> $T { !self }
            #[inline(always)]
            fn and(self, b: $T) -> $T { self & b }
            #[inline(always)]
            fn or(self, b: $T) -> $T { self | b }
            #[inline(always)]
            fn xor(self, b: $T) -> $T { self ^ b }
            #[inline(always)]
            fn shl(self, b: $T) -> $T {
                let within = (b as $Unsigned) < $T::BITS as $Unsigned;
                let shifted = self << (b as $Unsigned & ($T::BITS as $Unsigned - 1));
                if within { shifted } else { 0 }
            }
            #[inline(always)]
            fn shr(self, b: $T) -> $T {
                let most = $T::BITS as $Unsigned - 1;
                let b = b as $Unsigned;
                // Shifting a signed number by its width less one leaves its sign alone.
                let shifted = self >> Ord::min(b, most);
                if b <= most || $T::MIN != 0 { shifted } else { 0 }
            }
        }
    )*};
}

/// Signs differ; never so for unsigned numbers.
#[inline(always)]
fn opposite<T: Arithmetic>(a: T, b: T) -> bool {
    (a < T::ZERO) != (b < T::ZERO)
}

float_number!(f32 f64);

integer_number!(i8 u8 i16 u16 i32 u32 i64 u64 u8 u8 u16 u16 u32 u32 u64 u64);

//! The floats that factorizations by reflections and rotations compute in, and the sums that they share.
//!
//! Sums of products run in lanes whose number does not depend on the machine, and in one order.

use std::ops::{Add, Div, Mul, Neg, Sub};

use super::gemm::Compute;
use tonnage_simd::{Isa, SimdKernel, level};

/// `f32` or `f64`.
pub trait Field:
    Compute
    + PartialOrd
    + Add<Output = Self>
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Div<Output = Self>
    + Neg<Output = Self>
{
    /// 1.
    const ONE: Self;
    /// The distance from 1 to the next larger number.
    const STEP: f64;

    /// Rounded from a wider one.
    fn of(x: f64) -> Self;
    /// Widened.
    fn wide(self) -> f64;
    /// `self * a + b`, rounded once where that is an instruction.
    fn fma<I: Isa>(self, a: Self, b: Self) -> Self;
}

macro_rules! fields {
    ($($T:ty),*) => {$(
        impl Field for $T {
            const ONE: $T = 1.0;
            const STEP: f64 = <$T>::EPSILON as f64;
            #[inline(always)]
            fn of(x: f64) -> $T {
                x as $T
            }
            #[inline(always)]
            fn wide(self) -> f64 {
                self.into()
            }
            #[inline(always)]
            fn fma<I: Isa>(self, a: $T, b: $T) -> $T {
                if I::FMA { self.mul_add(a, b) } else { I::element(self) * a + b }
            }
        }
    )*};
}

fields!(f64, f32);

/// Partial sums of a dot product: two vectors of the widest kind.
const LANES: usize = 32;

/// The sum of products; `#[inline(always)]` for kernels.
#[inline(always)]
pub fn dot_in<I: Isa, T: Field>(a: &[T], b: &[T]) -> T {
    let (a_wide, a_rest) = a.as_chunks::<LANES>();
    let (b_wide, b_rest) = b.as_chunks::<LANES>();
    let mut lanes = [T::ZERO; LANES];
    for (a, b) in a_wide.iter().zip(b_wide) {
        for i in 0..LANES {
            lanes[i] = a[i].fma::<I>(b[i], lanes[i]);
        }
    }
    let rest = a_rest.iter().zip(b_rest).fold(T::ZERO, |sum, (a, b)| a.fma::<I>(*b, sum));
    // Halves are added to halves.
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for i in 0..width {
            lanes[i] = lanes[i] + lanes[i + width];
        }
    }
    lanes[0] + rest
}

/// `y += factor * x`; `#[inline(always)]` for kernels.
#[inline(always)]
pub fn add_in<I: Isa, T: Field>(y: &mut [T], factor: T, x: &[T]) {
    y.iter_mut().zip(x).for_each(|(y, x)| *y = factor.fma::<I>(*x, *y));
}

/// The sum of products.
pub fn dot<T: Field>(a: &[T], b: &[T]) -> T {
    struct Dot<'a, T>(&'a [T], &'a [T]);
    impl<T: Field> SimdKernel for Dot<'_, T> {
        type Output = T;
        #[inline(always)]
        fn run<I: Isa>(self) -> T {
            dot_in::<I, T>(self.0, self.1)
        }
    }
    level().run(Dot(a, b))
}

/// The largest absolute value; NaN and infinities come out as infinity.
pub fn largest<T: Field>(x: &[T]) -> f64 {
    x.iter().fold(0.0, |most: f64, x| {
        let size = x.wide().abs();
        if size.is_finite() { most.max(size) } else { f64::INFINITY }
    })
}

/// The length of a vector, without overflow on the way.
pub fn length<T: Field>(x: &[T]) -> f64 {
    let most = largest(x);
    if most == 0.0 || most.is_infinite() {
        return most;
    }
    let sum = x.iter().fold(0.0, |sum, x| sum + (x.wide() / most).powi(2));
    most * sum.sqrt()
}

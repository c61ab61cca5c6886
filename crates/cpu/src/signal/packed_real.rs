//! Between a real row of an even length and the row of half the length that is transformed in its place.

use super::lanes::{ReIm, ReImMut};
use crate::linalg::field::Field;
use tonnage_simd::{Isa, SimdKernel};

/// Even elements apart from odd ones.
pub struct Deinterleave<'a, T> {
    pub from: &'a [T],
    pub to: ReImMut<'a, T>,
}

impl<T: Field> SimdKernel for Deinterleave<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let [even, odd] = self.to;
        let pairs = self.from.as_chunks::<2>().0.iter();
        for (pair, (even, odd)) in pairs.zip(even.iter_mut().zip(odd)) {
            (*even, *odd) = (pair[0], pair[1]);
        }
    }
}

/// Even elements between odd ones.
pub struct Interleave<'a, T> {
    pub from: ReIm<'a, T>,
    pub to: &'a mut [T],
}

impl<T: Field> SimdKernel for Interleave<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let [even, odd] = self.from;
        let pairs = self.to.as_chunks_mut::<2>().0.iter_mut();
        for (pair, (even, odd)) in pairs.zip(even.iter().zip(odd)) {
            *pair = [*even, *odd];
        }
    }
}

/// The first half of a real row's transform, and the element behind it, from that of its even and odd elements together.
pub struct UnpackSpectrum<'a, T> {
    pub from: ReIm<'a, T>,
    pub twiddles: ReIm<'a, T>,
    pub to: ReImMut<'a, T>,
}

impl<T: Field> SimdKernel for UnpackSpectrum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([re, im], [cos, sin], [to_re, to_im]) = (self.from, self.twiddles, self.to);
        let (half, middle) = (re.len(), T::of(0.5));
        // Both ends see the first element alone: its parts are the sums of even and of odd elements.
        (to_re[0], to_re[half]) = (re[0] + im[0], re[0] - im[0]);
        let near = re[1..].iter().zip(&im[1..]);
        let far = re[1..].iter().rev().zip(im[1..].iter().rev());
        let angles = cos[1..].iter().zip(&sin[1..]);
        let to = to_re[1..half].iter_mut().zip(&mut to_im[1..half]);
        for ((to, (cos, sin)), ((x, y), (far_x, far_y))) in to.zip(angles).zip(near.zip(far)) {
            let (even_re, even_im) = (*x + *far_x, *y - *far_y);
            let (odd_re, odd_im) = (*y + *far_y, *far_x - *x);
            let rotated_re = odd_re.fma::<I>(*cos, -(odd_im * *sin));
            let rotated_im = odd_re.fma::<I>(*sin, odd_im * *cos);
            *to.0 = (even_re + rotated_re) * middle;
            *to.1 = (even_im + rotated_im) * middle;
        }
    }
}

/// The other way, times 2: what even and odd elements become together, from the first half of a real row's transform and the
/// element behind it.
pub struct PackSpectrum<'a, T> {
    pub from: ReIm<'a, T>,
    pub twiddles: ReIm<'a, T>,
    pub to: ReImMut<'a, T>,
}

impl<T: Field> SimdKernel for PackSpectrum<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        let ([re, im], [cos, sin], [to_re, to_im]) = (self.from, self.twiddles, self.to);
        let half = to_re.len();
        // Neither end has an imaginary part.
        (to_re[0], to_im[0]) = (re[0] + re[half], re[0] - re[half]);
        let near = re[1..half].iter().zip(&im[1..half]);
        let far = re[1..half].iter().rev().zip(im[1..half].iter().rev());
        let angles = cos[1..].iter().zip(&sin[1..]);
        let to = to_re[1..].iter_mut().zip(&mut to_im[1..]);
        for ((to, (cos, sin)), ((x, y), (far_x, far_y))) in to.zip(angles).zip(near.zip(far)) {
            let (even_re, even_im) = (*x + *far_x, *y - *far_y);
            let (gap_re, gap_im) = (*x - *far_x, *y + *far_y);
            // Rotated the other way.
            let odd_re = gap_re.fma::<I>(*cos, gap_im * *sin);
            let odd_im = gap_im.fma::<I>(*cos, -(gap_re * *sin));
            (*to.0, *to.1) = (even_re - odd_im, even_im + odd_re);
        }
    }
}

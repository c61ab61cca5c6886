//! Transforms of many rows at once, side by side: element `j` of all of them is a row of lanes.
//!
//! Passes in the order of Stockham (Cochran and others, 1967): each reads one buffer and writes another, sorted as the next
//! one wants it. All that is done to a lane is done to its neighbours, so that every load, product and store is one of whole
//! vectors, whatever the length. One loop holds all that a pass does to a lane, and fills an array of its own: so the compiler
//! knows that nothing overlaps, and makes vectors of it.

use super::small::small;
use crate::linalg::field::Field;
use tonnage_simd::{Isa, SimdKernel, level};

/// Rows that are transformed side by side: a vector of the widest kind for `f32`, two for `f64`.
pub const LANES: usize = 16;

/// Real and imaginary parts.
pub type ReIm<'a, T> = [&'a [T]; 2];

/// Real and imaginary parts to write.
pub type ReImMut<'a, T> = [&'a mut [T]; 2];

/// Borrows both parts anew, for a shorter time.
pub fn reborrow<'a, T>([re, im]: &'a mut ReImMut<'_, T>) -> ReImMut<'a, T> {
    [re, im]
}

/// The radices, in the order in which they are tried; what is left of a length must be 1.
const RADICES: [usize; 8] = [8, 4, 2, 3, 5, 7, 11, 13];

/// The next radix of a length, or `None` where it is 1 or has a large prime in it.
fn radix(n: usize) -> Option<usize> {
    // Two passes of 4 rather than one of 8 and one of 2.
    let radices = if n == 16 { &RADICES[1..] } else { &RADICES[..] };
    radices.iter().copied().find(|radix| n > 1 && n.is_multiple_of(*radix))
}

/// Whether passes alone transform that length.
pub fn is_smooth(mut n: usize) -> bool {
    while let Some(radix) = radix(n) {
        n /= radix;
    }
    n == 1
}

/// Rows of lanes, `stride` elements from one to the next.
#[derive(Clone, Copy)]
pub struct LaneSource<'a, T> {
    pub parts: ReIm<'a, T>,
    pub stride: usize,
}

/// The same to write.
pub struct LaneTarget<'a, T> {
    pub parts: ReImMut<'a, T>,
    pub stride: usize,
}

/// Twiddle factors of the results: one for each lane of each row, and one for each row.
#[derive(Clone, Copy)]
pub struct Twiddles<'a, T> {
    pub own: ReIm<'a, T>,
    pub rows: ReIm<'a, T>,
}

/// Transforms as many rows of lanes as the table is long, from a source or from `near`, to a target or to what is
/// returned, which is `near` or `far`: room for that many rows of lanes each.
pub fn transform<'a, T: Field>(
    from: Option<LaneSource<T>>,
    to: Option<LaneTarget<T>>,
    table: ReIm<T>,
    twiddles: Option<Twiddles<T>>,
    mut near: ReImMut<'a, T>,
    mut far: ReImMut<'a, T>,
) -> ReImMut<'a, T> {
    let (mut from, mut to, mut left) = (from, to, table[0].len());
    while let Some(radix) = radix(left) {
        let there = to.take_if(|_| left == radix);
        let elsewhere = there.is_some();
        let from =
            from.take().unwrap_or(LaneSource { parts: [&*near[0], &*near[1]], stride: LANES });
        let to = there.unwrap_or(LaneTarget { parts: reborrow(&mut far), stride: LANES });
        let twiddles = twiddles.filter(|_| left == radix);
        level().run(FftPass { from, to, left, radix, table, twiddles });
        if !elsewhere {
            (near, far) = (far, near);
        }
        left /= radix;
    }
    near
}

/// One pass.
struct FftPass<'a, T> {
    from: LaneSource<'a, T>,
    to: LaneTarget<'a, T>,
    /// The length that is left to transform.
    left: usize,
    radix: usize,
    /// Cosines and sines of all angles, as many as there are rows of lanes.
    table: ReIm<'a, T>,
    /// Of the last pass.
    twiddles: Option<Twiddles<'a, T>>,
}

impl<T: Field> SimdKernel for FftPass<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.radix {
            8 => self.by_width::<I, 8>(),
            4 => self.by_width::<I, 4>(),
            2 => self.by_width::<I, 2>(),
            3 => self.by_width::<I, 3>(),
            5 => self.by_width::<I, 5>(),
            7 => self.by_width::<I, 7>(),
            11 => self.by_width::<I, 11>(),
            _ => self.by_width::<I, 13>(),
        }
    }
}

impl<T: Field> FftPass<'_, T> {
    /// As many lanes at a time as the widest vector has: with more there would be no register for each.
    #[inline(always)]
    fn by_width<I: Isa, const R: usize>(self) {
        if const { size_of::<T>() == 8 } {
            self.of::<I, R, 8>();
        } else {
            self.of::<I, R, LANES>();
        }
    }

    #[inline(always)]
    fn of<I: Isa, const R: usize, const W: usize>(self) {
        let FftPass { from, to, left, table, twiddles, .. } = self;
        let ([from_re, from_im], [to_re, to_im], len) = (from.parts, to.parts, table[0].len());
        let (run, part) = (len / left, len / R);
        let angle = |k: usize| [table[0][k], table[1][k]];
        let roots: [[T; 2]; R] = std::array::from_fn(|k| angle(part * k));
        for first in 0..left / R {
            let angles: [[T; 2]; R] = std::array::from_fn(|k| angle(first * k * run));
            for place in 0..run * (LANES / W) {
                let (within, lane) = (place / (LANES / W), place % (LANES / W) * W);
                let row = |j: usize| (first * run + within + part * j) * from.stride + lane;
                let re: [&[T; W]; R] = std::array::from_fn(|j| lanes(from_re, row(j)));
                let im: [&[T; W]; R] = std::array::from_fn(|j| lanes(from_im, row(j)));
                // A long transform is compiled once, and what follows it in each loop of its own reads what it made. Without vectors
                // every one is long.
                let is_long = const { R == 7 || R > 8 || !I::VECTORS };
                let transform = |i: usize| {
                    small::<I, T, R>(std::array::from_fn(|j| [re[j][i], im[j][i]]), &roots)
                };
                let [long_re, long_im] = match is_long {
                    true => rows::<I, T, R, W>(transform, |_, _| None),
                    false => [[[T::ZERO; W]; R]; 2],
                };
                let transformed = |i: usize| match is_long {
                    true => std::array::from_fn(|k| [long_re[k][i], long_im[k][i]]),
                    false => transform(i),
                };
                let made = match (first, twiddles) {
                    (0, None) => rows::<I, T, R, W>(transformed, |_, _| None),
                    (0, Some(Twiddles { own, rows: each })) => {
                        let row = |k: usize| run * k + within;
                        let cos: [&[T; W]; R] =
                            std::array::from_fn(|k| lanes(own[0], row(k) * LANES + lane));
                        let sin: [&[T; W]; R] =
                            std::array::from_fn(|k| lanes(own[1], row(k) * LANES + lane));
                        let each: [[T; 2]; R] =
                            std::array::from_fn(|k| each.map(|part| part[row(k)]));
                        rows::<I, T, R, W>(transformed, |k, i| {
                            Some(product::<I, T>([cos[k][i], sin[k][i]], each[k]))
                        })
                    }
                    _ => rows::<I, T, R, W>(transformed, |k, _| (k > 0).then_some(angles[k])),
                };
                for (k, (re, im)) in made[0].iter().zip(&made[1]).enumerate() {
                    let at = ((first * R + k) * run + within) * to.stride + lane;
                    to_re[at..][..W].copy_from_slice(re);
                    to_im[at..][..W].copy_from_slice(im);
                }
            }
        }
    }
}

/// Lanes from a place on.
#[inline(always)]
fn lanes<T, const W: usize>(from: &[T], at: usize) -> &[T; W] {
    &from[at..at + W].as_chunks().0[0]
}

/// R rows of lanes from the small transform of each lane, each element times a twiddle factor or as it is.
#[inline(always)]
fn rows<I: Isa, T: Field, const R: usize, const W: usize>(
    transformed: impl Fn(usize) -> [[T; 2]; R],
    angle: impl Fn(usize, usize) -> Option<[T; 2]>,
) -> [[[T; W]; R]; 2] {
    let mut made = [[[T::ZERO; W]; R]; 2];
    let [to_re, to_im] = &mut made;
    for i in 0..W {
        let small = transformed(i);
        for k in 0..R {
            let rotated = angle(k, i).map_or(small[k], |angle| product::<I, T>(small[k], angle));
            [to_re[k][i], to_im[k][i]] = rotated;
        }
    }
    made
}

#[inline(always)]
fn product<I: Isa, T: Field>([x, y]: [T; 2], [cos, sin]: [T; 2]) -> [T; 2] {
    [x.fma::<I>(cos, -(y * sin)), x.fma::<I>(sin, y * cos)]
}

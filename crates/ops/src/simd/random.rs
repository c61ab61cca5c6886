//! Uniform and normal numbers: element `i` of a stream, for any `i`.
//!
//! A block of Philox makes four 32-bit elements or two 64-bit ones. Invariant: an element depends on
//! the stream and its index alone, bit for bit, at every level: any chunking, any thread count and
//! any machine gives the same numbers. So the mathematics under `normal` uses IEEE's basic
//! operations alone ([`Plain`]), where a fused multiply-add would save a fifth of the time on the
//! machines that have it and give others different bits.

use super::float::real::{Real, select};
use super::float::{log, trig};
use super::level::Level;
use super::philox::Stream;
use super::vectorize::{Isa, Kernel, Plain};

/// How a block of four words becomes elements.
trait Recipe {
    type Item: Copy + Default;
    /// As many elements as a block makes.
    type Items: AsRef<[Self::Item]> + AsMut<[Self::Item]>;
    fn make(words: [u32; 4]) -> Self::Items;
}

struct Elements<'a, R: Recipe> {
    stream: Stream,
    first: u64,
    out: &'a mut [R::Items],
}

impl<R: Recipe> Kernel for Elements<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (i, items) in self.out.iter_mut().enumerate() {
            *items = R::make(self.stream.block(self.first.wrapping_add(i as u64)));
        }
    }
}

/// Fills `out` with elements `start`, `start + 1`, ...; the ends may lie inside a block of N.
fn elements<R: Recipe<Items = [T; N]>, T: Copy, const N: usize>(
    level: Level,
    stream: Stream,
    start: u64,
    out: &mut [T],
) {
    let n = N as u64;
    let mut index = start / n;
    let inside = (start % n) as usize;
    let mut rest = out;
    if inside > 0 {
        let (head, tail) = rest.split_at_mut((N - inside).min(rest.len()));
        head.copy_from_slice(&R::make(stream.block(index))[inside..inside + head.len()]);
        rest = tail;
        index += 1;
    }
    let (blocks, tail) = rest.as_chunks_mut::<N>();
    let after = index.wrapping_add(blocks.len() as u64);
    level.run(Elements::<R> { stream, first: index, out: blocks });
    if !tail.is_empty() {
        tail.copy_from_slice(&R::make(stream.block(after))[..tail.len()]);
    }
}

#[inline(always)]
fn pair(words: [u32; 4]) -> [u64; 2] {
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    [join(words[0], words[1]), join(words[2], words[3])]
}

macro_rules! distributions {
    ($($(#[$doc:meta])* $name:ident, $Recipe:ident: $T:ty, $n:literal, |$words:ident| $make:expr;)*) => {$(
        struct $Recipe;
        impl Recipe for $Recipe {
            type Item = $T;
            type Items = [$T; $n];
            #[inline(always)]
            fn make($words: [u32; 4]) -> [$T; $n] { $make }
        }
        $(#[$doc])*
        pub fn $name(level: Level, stream: Stream, start: u64, out: &mut [$T]) {
            elements::<$Recipe, $T, $n>(level, stream, start, out);
        }
    )*};
}

distributions! {
    /// Random words: elements `start` to `start + out.len()` of the stream.
    bits_u32, BitsU32: u32, 4, |words| words;
    /// Random double words.
    bits_u64, BitsU64: u64, 2, |words| pair(words);
    /// Uniform in [0, 1), a multiple of 2^-24.
    ///
    /// ```
    /// use tonnage_ops::simd::{level, philox::Stream, random::uniform_f32};
    /// let (mut whole, mut part) = ([0.0; 100], [0.0; 10]);
    /// uniform_f32(level(), Stream::new(42), 0, &mut whole);
    /// uniform_f32(level(), Stream::new(42), 33, &mut part);
    /// assert_eq!(whole[33..43], part);
    /// ```
    uniform_f32, UniformF32: f32, 4, |words| words.map(|w| (w >> 8) as f32 * (1.0 / (1 << 24) as f32));
    /// Uniform in [0, 1), a multiple of 2^-53.
    uniform_f64, UniformF64: f64, 2, |words| pair(words).map(|w| (w >> 11) as f64 * (1.0 / (1u64 << 53) as f64));
    /// Standard normal; the largest there can be is 6.7.
    normal_f32, NormalF32: f32, 4, |words| {
        let [a, b] = normal_pair_f32(words[0], words[1]);
        let [c, d] = normal_pair_f32(words[2], words[3]);
        [a, b, c, d]
    };
    /// Standard normal; the largest there can be is 8.6.
    normal_f64, NormalF64: f64, 2, |words| {
        let [radius, angle] = pair(words);
        // (0, 1], from the upper 53 bits.
        let u = ((radius >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
        let r = (-2.0 * log::<Plain, f64>(u)).abs().sqrt();
        // A turn in 54 bits: the upper two count quarters, the others lie around 0.
        let n = angle.wrapping_add(1 << 61) >> 62;
        let t = (angle.wrapping_sub(n << 62) as i64 >> 10) as f64;
        let (sin, cos) = quarter::<f64>(t * (std::f64::consts::FRAC_PI_2 / (1u64 << 52) as f64), n as u32);
        [r * cos, r * sin]
    };
}

/// Random whole numbers from 0 up to, without, `below`: the upper half of a double word times that.
pub fn below_u64(level: Level, stream: Stream, start: u64, below: u64, out: &mut [u64]) {
    bits_u64(level, stream, start, out);
    for x in out {
        *x = (u128::from(*x) * u128::from(below) >> 64) as u64;
    }
}

macro_rules! truncated {
    ($($(#[$doc:meta])* $name:ident: $T:ty, $Recipe:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(stream: Stream, start: u64, out: &mut [$T]) {
            for (i, x) in out.iter_mut().enumerate() {
                let index = start.wrapping_add(i as u64);
                // A block of its own for every element and try; of its numbers the first that fits.
                *x = (0..u32::MAX)
                    .flat_map(|again| {
                        let stream = Stream { nonce: [again, 1], ..stream };
                        $Recipe::make(stream.block(index))
                    })
                    .find(|z| z.abs() < 2.0)
                    .unwrap_or_default();
            }
        }
    )*};
}

truncated! {
    /// Standard normal, drawn again where it lies 2 and more from 0.
    truncated_normal_f32: f32, NormalF32;
    /// Standard normal, drawn again where it lies 2 and more from 0.
    truncated_normal_f64: f64, NormalF64;
}

/// Box and Muller's pair, from the 32 bits of a radius and the 32 of an angle.
#[inline(always)]
fn normal_pair_f32(radius: u32, angle: u32) -> [f32; 2] {
    // (0, 1]: the conversion rounds, which is what lets small u reach 2^-33 and z 6.7.
    let u = (radius as f32 + 0.5) * (1.0 / (1u64 << 32) as f32);
    let r = (-2.0 * log::<Plain, f32>(u)).abs().sqrt();
    let n = angle.wrapping_add(1 << 29) >> 30;
    let t = angle.wrapping_sub(n << 30) as i32 as f32;
    let (sin, cos) = quarter::<f32>(t * (std::f32::consts::FRAC_PI_2 / (1 << 30) as f32), n);
    [r * cos, r * sin]
}

/// Sine and cosine of r plus n quarter turns, |r| <= pi/4.
#[inline(always)]
fn quarter<T: Real>(r: T, n: u32) -> (T, T) {
    let (s, c) = trig::sin_cos_reduced::<Plain, T>(r);
    let (sin, cos) = (select(n & 1 == 0, s, c), select(n & 1 == 0, c, s));
    (select(n & 2 == 0, sin, -sin), select(n.wrapping_add(1) & 2 == 0, cos, -cos))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::simd::level;

    /// Mean, variance, skewness and kurtosis.
    fn moments(x: impl Iterator<Item = f64> + Clone) -> [f64; 4] {
        let n = x.clone().count() as f64;
        let mean = x.clone().sum::<f64>() / n;
        let central = |p: i32| x.clone().map(|x| (x - mean).powi(p)).sum::<f64>() / n;
        let variance = central(2);
        [mean, variance, central(3) / variance.powf(1.5), central(4) / variance.powi(2)]
    }

    fn near(got: [f64; 4], expected: [f64; 4], tolerance: f64) {
        for (got, expected) in got.iter().zip(expected) {
            assert!((got - expected).abs() < tolerance, "{got} is far from {expected}");
        }
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        let n = 1 << 20;
        let (mut single, mut double) = (vec![0f32; n], vec![0f64; n]);
        let normal = [0.0, 1.0, 0.0, 3.0];
        normal_f32(level(), Stream::new(3), 0, &mut single);
        near(moments(single.iter().map(|&x| f64::from(x))), normal, 0.02);
        normal_f64(level(), Stream::new(4), 0, &mut double);
        near(moments(double.iter().copied()), normal, 0.02);
        let uniform = [0.5, 1.0 / 12.0, 0.0, 1.8];
        uniform_f32(level(), Stream::new(5), 0, &mut single);
        near(moments(single.iter().map(|&x| f64::from(x))), uniform, 0.005);
        assert!(single.iter().all(|x| (0.0..1.0).contains(x)));
        uniform_f64(level(), Stream::new(6), 0, &mut double);
        near(moments(double.iter().copied()), uniform, 0.005);
        assert!(double.iter().all(|x| (0.0..1.0).contains(x)));
    }

    #[test]
    fn whole_numbers_are_even_and_truncated_normals_stay_inside() {
        let mut x = vec![0u64; 70_000];
        below_u64(level(), Stream::new(7), 0, 7, &mut x);
        for n in 0..7 {
            let count = x.iter().filter(|x| **x == n).count() as f64;
            assert!((count - 10_000.0).abs() < 500.0, "{n} appears {count} times");
        }
        let mut z = vec![0f64; 1 << 17];
        truncated_normal_f64(Stream::new(8), 0, &mut z);
        assert!(z.iter().all(|z| z.abs() < 2.0));
        // Between -2 and 2 the normal distribution has this variance.
        near(moments(z.iter().copied()), [0.0, 0.773_741, 0.0, 2.366], 0.02);
        let mut single = vec![0f32; 1000];
        truncated_normal_f32(Stream::new(8), 5, &mut single[5..]);
        let mut again = vec![0f32; 10];
        truncated_normal_f32(Stream::new(8), 500, &mut again);
        assert_eq!(again, single[500..510]);
    }

    #[test]
    fn normals_have_the_tails_of_the_distribution() {
        let n = 1 << 20;
        let mut x = vec![0f32; n];
        normal_f32(level(), Stream::new(11), 0, &mut x);
        // Two-sided probabilities of the normal distribution.
        for (beyond, p) in
            [(1.0, 0.317_310_5), (2.0, 0.045_500_3), (3.0, 0.002_699_8), (4.0, 6.334e-5)]
        {
            let count = x.iter().filter(|x| x.abs() > beyond).count() as f64;
            let expected = p * n as f64;
            assert!((count - expected).abs() < 5.0 * expected.sqrt(), "{count} beyond {beyond}");
        }
    }

    #[test]
    fn the_extreme_words_give_the_extreme_normals() {
        // Angle 0 and a quarter turn; radius words at both ends.
        let [far, zero] = normal_pair_f32(0, 0);
        assert!((6.7..6.8).contains(&far) && zero == 0.0, "{far} {zero}");
        let [_, far] = normal_pair_f32(1, 1 << 30);
        assert!((6.5..6.7).contains(&far), "{far}");
        assert_eq!(normal_pair_f32(u32::MAX, 12345), [0.0, 0.0]);
        let [far, _] = NormalF64::make([0; 4]);
        assert!((8.5..8.7).contains(&far), "{far}");
    }

    #[test]
    fn the_transform_is_box_and_mullers() {
        for i in 0..10_000 {
            let [radius, angle, ..] = Stream::new(1).block(i);
            let u = (f64::from(radius as f32) + 0.5) / 2f64.powi(32);
            let r = (-2.0 * u.ln()).sqrt();
            let turn = std::f64::consts::TAU * f64::from(angle) / 2f64.powi(32);
            let [x, y] = normal_pair_f32(radius, angle).map(f64::from);
            // Near u = 1 the radius is a small difference, which f32 holds to 2^-25 alone.
            assert!((x - r * turn.cos()).abs() < 1e-6 + 3e-4 * f64::from(u8::from(r < 0.1)));
            assert!((y - r * turn.sin()).abs() < 1e-6 + 3e-4 * f64::from(u8::from(r < 0.1)));
        }
    }

    /// Any piece of the stream, at any level, has the bits of the whole.
    fn check<T: Copy + Default + bytemuck::Pod>(fill: fn(Level, Stream, u64, &mut [T])) {
        let stream = Stream { key: [1, 2], nonce: [3, 4] };
        let mut whole = [T::default(); 1000];
        fill(Level::Portable, stream, 0, &mut whole);
        for &level in Level::available() {
            for (start, len) in [(0, 1000), (1, 998), (2, 3), (3, 1), (5, 777), (333, 64), (4, 0)] {
                let mut piece = vec![T::default(); len];
                fill(level, stream, start as u64, &mut piece);
                let (got, expected): (&[u8], &[u8]) = (
                    bytemuck::cast_slice(&piece),
                    bytemuck::cast_slice(&whole[start..start + len]),
                );
                assert_eq!(got, expected, "{level} from {start}, {len} elements");
            }
        }
    }

    #[test]
    fn an_element_has_the_same_bits_in_any_chunk_and_at_any_level() {
        check(bits_u32);
        check(bits_u64);
        check(uniform_f32);
        check(uniform_f64);
        check(normal_f32);
        check(normal_f64);
    }
}

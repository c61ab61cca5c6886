//! Uniform and normal numbers: element `i` of a stream, for any `i`.
//!
//! A block of Philox makes four 32-bit elements or two 64-bit ones. Invariant: an element depends on
//! the stream and its index alone, bit for bit, at every level: any chunking, any thread count and
//! any machine gives the same numbers. So the mathematics under `normal` uses IEEE's basic
//! operations alone ([`Plain`]), where a fused multiply-add would save a fifth of the time on the
//! machines that have it and give others different bits.

use super::float::real::{MathFloat, select};
use super::float::{log, trig};
use super::level::Level;
use super::philox::Stream;
use super::vectorize::{Isa, Plain, SimdKernel};

/// How a block of four words becomes elements.
trait FromWords {
    type Item: Copy + Default;
    /// As many elements as a block makes.
    type Items: AsRef<[Self::Item]> + AsMut<[Self::Item]>;
    fn make(words: [u32; 4]) -> Self::Items;
}

struct RandomElements<'a, R: FromWords> {
    stream: Stream,
    first: u64,
    out: &'a mut [R::Items],
}

impl<R: FromWords> SimdKernel for RandomElements<'_, R> {
    type Output = ();
    #[inline(always)]
    fn run<I: Isa>(self) {
        for (i, items) in self.out.iter_mut().enumerate() {
            *items = R::make(self.stream.block(self.first.wrapping_add(i as u64)));
        }
    }
}

/// Fills `out` with elements `start`, `start + 1`, ...; the ends may lie inside a block of N.
fn elements<R: FromWords<Items = [T; N]>, T: Copy, const N: usize>(
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
    level.run(RandomElements::<R> { stream, first: index, out: blocks });
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
    ($($(#[$doc:meta])* $name:ident, $FromWords:ident: $T:ty, $n:literal, |$words:ident| $make:expr;)*) => {$(
        struct $FromWords;
        impl FromWords for $FromWords {
            type Item = $T;
            type Items = [$T; $n];
            #[inline(always)]
            fn make($words: [u32; 4]) -> [$T; $n] { $make }
        }
        $(#[$doc])*
        pub fn $name(level: Level, stream: Stream, start: u64, out: &mut [$T]) {
            elements::<$FromWords, $T, $n>(level, stream, start, out);
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
    /// use tonnage_simd::{level, philox::Stream, random::uniform_f32};
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
        normal_pair_f64(radius, angle)
    };
}

/// Box and Muller's pair, from the 64 bits of a radius and the 64 of an angle.
#[inline(always)]
pub fn normal_pair_f64(radius: u64, angle: u64) -> [f64; 2] {
    // (0, 1], from the upper 53 bits.
    let u = ((radius >> 11) as f64 + 0.5) * (1.0 / (1u64 << 53) as f64);
    let r = (-2.0 * log::<Plain, f64>(u)).abs().sqrt();
    // A turn in 54 bits: the upper two count quarters, the others lie around 0.
    let n = angle.wrapping_add(1 << 61) >> 62;
    let t = (angle.wrapping_sub(n << 62) as i64 >> 10) as f64;
    let quarter_turn = std::f64::consts::FRAC_PI_2 / (1u64 << 52) as f64;
    let (sin, cos) = quarter::<f64>(t * quarter_turn, n as u32);
    [r * cos, r * sin]
}

/// Random whole numbers from 0 up to, without, `below`: the upper half of a double word times that.
pub fn below_u64(level: Level, stream: Stream, start: u64, below: u64, out: &mut [u64]) {
    bits_u64(level, stream, start, out);
    for x in out {
        *x = ((u128::from(*x) * u128::from(below)) >> 64) as u64;
    }
}

macro_rules! truncated {
    ($($(#[$doc:meta])* $name:ident: $T:ty, $FromWords:ident;)*) => {$(
        $(#[$doc])*
        pub fn $name(stream: Stream, start: u64, out: &mut [$T]) {
            for (i, x) in out.iter_mut().enumerate() {
                let index = start.wrapping_add(i as u64);
                // A block of its own for every element and try; of its numbers the first that fits.
                *x = (0..u32::MAX)
                    .flat_map(|attempt| {
                        let stream = Stream { nonce: [attempt, 1], ..stream };
                        $FromWords::make(stream.block(index))
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
pub fn normal_pair_f32(radius: u32, angle: u32) -> [f32; 2] {
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
fn quarter<T: MathFloat>(r: T, n: u32) -> (T, T) {
    let (s, c) = trig::sin_cos_reduced::<Plain, T>(r);
    let (sin, cos) = (select(n & 1 == 0, s, c), select(n & 1 == 0, c, s));
    (select(n & 2 == 0, sin, -sin), select(n.wrapping_add(1) & 2 == 0, cos, -cos))
}

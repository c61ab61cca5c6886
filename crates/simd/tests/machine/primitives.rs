//! The primitives against plain loops, at every level, dtype and awkward length.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use tonnage_core::rounding::{to_bf16, to_f16};
use tonnage_core::{Bool, DType, Element, bf16, f16, with_element};

use tonnage_simd::cast::cast;
use tonnage_simd::half::Half;
use tonnage_simd::prim::{Binary, Ternary, Unary};
use tonnage_simd::{Level, level};

/// Lengths around the vector widths and the block of a spread operand.
const LENGTHS: [usize; 8] = [0, 1, 7, 31, 65, 255, 257, 600];

/// Deterministic bits, all exponents and edges among them.
fn samples<T: Pod>(n: usize, seed: u64) -> Vec<T> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut bytes = vec![0u8; n * size_of::<T>()];
    for byte in &mut bytes {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        *byte = (state >> 56) as u8;
    }
    bytes.chunks(size_of::<T>()).map(bytemuck::pod_read_unaligned).collect()
}

/// Floats of moderate size with the edges among them.
fn floats(n: usize, seed: u64) -> Vec<f64> {
    let edges = [0.0, -0.0, 1.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 2.0, -2.5, 0.5];
    samples::<u32>(n, seed)
        .iter()
        .enumerate()
        .map(|(i, &u)| match i % 11 {
            10 => edges[u as usize % edges.len()],
            _ => (f64::from(u) / 2f64.powi(31) - 1.0) * 20.0,
        })
        .collect()
}

fn binary<T: Pod, U: Pod>(
    prim: Binary,
    dtype: DType,
    level: Level,
    n: usize,
    a: &[T],
    b: &[T],
) -> Vec<U> {
    let mut out = vec![U::zeroed(); n];
    let function = prim.function(dtype).expect("the test asks for what there is");
    function(level, cast_slice_mut(&mut out), cast_slice(a), cast_slice(b));
    out
}

/// `prim` equals `expected`, element by element, also where an operand is one element.
fn check<T: Element, U: Element>(prim: Binary, a: &[T], b: &[T], expected: impl Fn(T, T) -> U) {
    let same = |got: &[U], a: &dyn Fn(usize) -> T, b: &dyn Fn(usize) -> T, level: Level| {
        for (i, &got) in got.iter().enumerate() {
            let expected = expected(a(i), b(i));
            // NaN equals NaN here, and the zeros differ.
            let (x, y) = (bytemuck::bytes_of(&got), bytemuck::bytes_of(&expected));
            #[allow(clippy::eq_op, reason = "false for NaN alone")]
            let both_nan = got != got && expected != expected;
            assert!(
                x == y || both_nan,
                "{prim:?} {level}: {:?} {:?} gave {got:?}, not {expected:?}",
                a(i),
                b(i)
            );
        }
    };
    for &level in Level::available() {
        for n in LENGTHS {
            let (a, b) = (&a[..n], &b[..n]);
            same(&binary(prim, T::DTYPE, level, n, a, b), &|i| a[i], &|i| b[i], level);
            if n > 0 {
                same(
                    &binary(prim, T::DTYPE, level, n, a, &b[n / 2..][..1]),
                    &|i| a[i],
                    &|_| b[n / 2],
                    level,
                );
                same(
                    &binary(prim, T::DTYPE, level, n, &a[n / 2..][..1], b),
                    &|_| a[n / 2],
                    &|i| b[i],
                    level,
                );
            }
        }
    }
}

macro_rules! check_integers {
    ($($T:ident)*) => {$({
        let (a, mut b) = (samples::<$T>(600, 1), samples::<$T>(600, 2));
        (b[3], b[8], b[40]) = (0, 1, !0);
        for i in (0..600).step_by(3) { b[i] %= 11; }
        check(Binary::Add, &a, &b, |a, b| a.wrapping_add(b));
        check(Binary::Sub, &a, &b, |a, b| a.wrapping_sub(b));
        check(Binary::Mul, &a, &b, |a, b| a.wrapping_mul(b));
        check(Binary::Div, &a, &b, |a, b| if b == 0 { 0 } else { a.wrapping_div(b) });
        let wide = |f: fn(i128, i128) -> i128| move |a: $T, b: $T| if b == 0 { 0 } else { f(a as i128, b as i128) as $T };
        check(Binary::FloorDiv, &a, &b, wide(|a, b| a.div_euclid(b) - (b < 0 && a.rem_euclid(b) != 0) as i128));
        check(Binary::Mod, &a, &b, wide(|a, b| ((a % b) + b) % b));
        check(Binary::Max, &a, &b, |a, b| if a > b { a } else { b });
        check(Binary::Min, &a, &b, |a, b| if a < b { a } else { b });
        check(Binary::And, &a, &b, |a, b| a & b);
        check(Binary::Or, &a, &b, |a, b| a | b);
        check(Binary::Xor, &a, &b, |a, b| a ^ b);
        let shift = |b: $T| u32::try_from(b).ok().filter(|&b| b < $T::BITS);
        check(Binary::Shl, &a, &b, |a, b| shift(b).map_or(0, |b| a << b));
        #[allow(unused_comparisons, reason = "the unsigned types share this line")]
        check(Binary::Shr, &a, &b, |a, b| shift(b).map_or(if a < 0 { !0 } else { 0 }, |b| a >> b));
        #[allow(unused_comparisons, reason = "the unsigned types share this line")]
        check(Binary::Pow, &a, &b, |a, b| match b {
            b if b < 0 => match a as i128 { 1 => 1, -1 if b % 2 == 0 => 1, -1 => !0, _ => 0 },
            b => (0..b as u128 % 64).fold(1 as $T, |p, _| p.wrapping_mul(a)).wrapping_mul(
                // a^64 times as often as 64 fits.
                wrapping_power((0..6).fold(a, |p, _| p.wrapping_mul(p)), b as u128 / 64)),
        });
        check(Binary::Less, &a, &b, |a, b| Bool::from(a < b));
        check(Binary::GreaterEqual, &a, &b, |a, b| Bool::from(a >= b));
        check(Binary::Equal, &a, &b, |a, b| Bool::from(a == b));
    })*};
}

/// x^n by repeated squaring, for numbers that any of the integer types wraps to.
fn wrapping_power<T>(x: T, n: u128) -> T
where
    T: tonnage_simd::number::Integer + Copy + From<u8> + Pod,
{
    let (mut out, mut base, mut n) = (T::from(1u8), x, n);
    while n > 0 {
        if n & 1 == 1 {
            out = out.mul(base);
        }
        base = base.mul(base);
        n >>= 1;
    }
    out
}

#[test]
fn integer_arithmetic_wraps_and_divides_by_zero_without_panic() {
    check_integers!(i16 i32 i64 u8 u16 u32 u64);
}

#[test]
fn float_arithmetic_is_rusts_own_and_nan_spreads_through_max_and_min() {
    let (a, b) = (floats(600, 3), floats(600, 4));
    check(Binary::Add, &a, &b, |a, b| a + b);
    check(Binary::Sub, &a, &b, |a, b| a - b);
    check(Binary::Mul, &a, &b, |a, b| a * b);
    check(Binary::Div, &a, &b, |a, b| a / b);
    check(Binary::FloorDiv, &a, &b, |a, b| (a / b).floor());
    let nan = |a: f64, b: f64, x: f64| if a.is_nan() || b.is_nan() { f64::NAN } else { x };
    check(Binary::Max, &a, &b, |a, b| nan(a, b, if a > b { a } else { b }));
    check(Binary::Min, &a, &b, |a, b| nan(a, b, if a < b { a } else { b }));
    check(Binary::Mod, &a, &b, |a, b| {
        let r = a % b;
        if r == 0.0 {
            0f64.copysign(b)
        } else if (r < 0.0) != (b < 0.0) {
            r + b
        } else {
            r
        }
    });
    check(Binary::Equal, &a, &b, |a, b| Bool::from(a == b));
    check(Binary::NotEqual, &a, &b, |a, b| Bool::from(a != b));
    check(Binary::Less, &a, &b, |a, b| Bool::from(a < b));
    check(Binary::LessEqual, &a, &b, |a, b| Bool::from(a <= b));
    check(Binary::Greater, &a, &b, |a, b| Bool::from(a > b));
    check(Binary::GreaterEqual, &a, &b, |a, b| Bool::from(a >= b));
    let single = |x: &[f64]| x.iter().map(|&x| x as f32).collect::<Vec<_>>();
    let (a, b) = (single(&a), single(&b));
    check(Binary::Add, &a, &b, |a, b| a + b);
    check(Binary::Div, &a, &b, |a, b| a / b);
}

/// All exponents, and quotients that are an integer but for the last bit.
#[test]
fn what_is_left_of_a_division_in_f32_is_exact() {
    let floored = |a: f32, b: f32| {
        let r = a % b;
        match r == 0.0 {
            true => 0f32.copysign(b),
            false if (r < 0.0) != (b < 0.0) => r + b,
            false => r,
        }
    };
    for seed in 0..200 {
        let (mut a, b) = (samples::<f32>(600, seed), samples::<f32>(600, seed + 1000));
        let times = samples::<i32>(600, seed + 2000);
        for (i, a) in a.iter_mut().enumerate() {
            // Products of any size with the divisor, exact or next to it.
            let near = (b[i] as f64 * f64::from(times[i] >> (i % 32))) as f32;
            *a = [*a, near, near.next_up(), near.next_down()][i % 4];
        }
        check(Binary::Mod, &a, &b, floored);
    }
}

#[test]
fn booleans_take_every_byte_but_zero_for_true() {
    let (a, b) = (samples::<Bool>(600, 7), samples::<Bool>(600, 8));
    let a: Vec<Bool> = a.iter().map(|x| Bool(if x.0 < 100 { 0 } else { x.0 })).collect();
    let truth = |f: fn(bool, bool) -> bool| move |a: Bool, b: Bool| Bool::from(f(a.get(), b.get()));
    check(Binary::And, &a, &b, truth(|a, b| a & b));
    check(Binary::Or, &a, &b, truth(|a, b| a | b));
    check(Binary::Xor, &a, &b, truth(|a, b| a ^ b));
    check(Binary::Max, &a, &b, truth(|a, b| a | b));
    check(Binary::Equal, &a, &b, truth(|a, b| a == b));
    check(Binary::Less, &a, &b, truth(|a, b| !a & b));
    let not = Unary::Not.function(DType::Bool).expect("there is one");
    let mut out = vec![Bool(9); 600];
    not(level(), cast_slice_mut(&mut out), cast_slice(&a));
    assert!(out.iter().zip(&a).all(|(out, a)| out.0 == u8::from(!a.get())));
}

#[test]
fn unary_arithmetic_of_integers_wraps() {
    for &level in Level::available() {
        let a = [i8::MIN, -3, 0, 5, i8::MAX];
        for (prim, expected) in [
            (Unary::Neg, [i8::MIN, 3, 0, -5, -127]),
            (Unary::Abs, [i8::MIN, 3, 0, 5, 127]),
            (Unary::Sign, [-1, -1, 0, 1, 1]),
            (Unary::Square, [0, 9, 0, 25, 1]),
            (Unary::Not, [127, 2, -1, -6, -128]),
        ] {
            let mut out = [0i8; 5];
            let function = prim.function(DType::I8).expect("the test asks for what there is");
            function(level, cast_slice_mut(&mut out), cast_slice(&a));
            assert_eq!(out, expected, "{prim:?}");
        }
    }
}

#[test]
fn select_picks_by_the_first_operand_and_any_operand_may_be_one_element() {
    let select = Ternary::Select.function(DType::F32).expect("for every dtype");
    for &level in Level::available() {
        for n in [0, 5, 300] {
            let c: Vec<u8> = (0..n).map(|i| (i % 3) as u8).collect();
            let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
            let mut out = vec![0f32; n];
            select(level, cast_slice_mut(&mut out), &c, cast_slice(&a), cast_slice(&[-1f32]));
            for (i, x) in out.into_iter().enumerate() {
                assert_eq!(x, if i % 3 == 0 { -1.0 } else { i as f32 });
            }
        }
    }
}

#[test]
fn mul_add_is_within_one_rounding_of_exact() {
    let (a, b, c) = (floats(300, 1), floats(300, 2), floats(300, 3));
    for dtype in [DType::F64, DType::F32, DType::I32, DType::U8] {
        assert!(Ternary::MulAdd.function(dtype).is_some());
    }
    // 16 bits compute in f32.
    assert!(Ternary::MulAdd.function(DType::F16).is_none());
    let mul_add = Ternary::MulAdd.function(DType::F64).expect("for every number");
    for &level in Level::available() {
        let mut out = vec![0f64; 300];
        mul_add(level, cast_slice_mut(&mut out), cast_slice(&a), cast_slice(&b), cast_slice(&c));
        for i in 0..300 {
            let (plain, fused) = (a[i] * b[i] + c[i], a[i].mul_add(b[i], c[i]));
            assert!(out[i] == plain || out[i] == fused || plain.is_nan() && out[i].is_nan());
        }
    }
}

#[test]
fn sixteen_bit_conversions_agree_with_the_half_crate_on_every_pattern() {
    for bits in 0..=u16::MAX {
        let (f, b) = (f16::from_bits(bits), bf16::from_bits(bits));
        assert_eq!(f.widen().to_bits(), f.to_f32().to_bits(), "f16 {bits:#x}");
        assert_eq!(b.widen().to_bits(), b.to_f32().to_bits(), "bf16 {bits:#x}");
        assert_eq!(f16::narrow(f.to_f32()).to_bits(), f16::from_f32(f.to_f32()).to_bits());
    }
    let mut bits = 0u32;
    while let Some(next) = bits.checked_add(9973) {
        let x = f32::from_bits(bits);
        assert_eq!(f16::narrow(x).to_bits(), f16::from_f32(x).to_bits(), "{x:e}");
        assert_eq!(bf16::narrow(x).to_bits(), bf16::from_f32(x).to_bits(), "{x:e}");
        bits = next;
    }
}

#[test]
fn sixteen_bits_are_rounded_once_from_every_dtype() {
    // Beside the middle of two neighbours, by less than an f32 sees; the exact rounding is tested in core.
    let mut doubles = Vec::new();
    for bits in (0..0x7c00u16).step_by(7) {
        for (low, high) in [
            (f16::from_bits(bits).to_f64(), f16::from_bits(bits + 1).to_f64()),
            (bf16::from_bits(bits).to_f64(), bf16::from_bits(bits + 1).to_f64()),
        ] {
            let middle = low + (high - low) / 2.0;
            doubles.extend([middle.next_down(), -middle, middle.next_up(), middle * (1.0 + 1e-12)]);
        }
    }
    fn check<T: Element>(from: DType, x: &[T], exact: impl Fn(T) -> [f64; 2]) {
        for &level in Level::available() {
            let (mut f, mut b) = (vec![f16::ZERO; x.len()], vec![bf16::ZERO; x.len()]);
            cast(from, DType::F16)(level, cast_slice_mut(&mut f), cast_slice(x));
            cast(from, DType::BF16)(level, cast_slice_mut(&mut b), cast_slice(x));
            for ((f, b), &x) in f.iter().zip(&b).zip(x) {
                assert_eq!([f.to_f64(), b.to_f64()], exact(x), "{level} {from} {x:?}");
            }
        }
    }
    check(DType::F64, &doubles, |x| [to_f16(x).to_f64(), to_bf16(x).to_f64()]);
    let longs: Vec<i64> = (1..54)
        .flat_map(|n| [257i64, 259, 2049, 2051].map(|m| m << n >> 1))
        .flat_map(|x| [x - 1, x, x + 1, -x - 1])
        .collect();
    let integer = |x: i128| {
        let single = nearest(x, 11);
        [
            if single.abs() > 65504.0 { single.signum() * f64::INFINITY } else { single },
            nearest(x, 8),
        ]
    };
    check(DType::I64, &longs, |x| integer(x.into()));
    let unsigned: Vec<u64> = longs.iter().map(|x| x.unsigned_abs() << 1 | 1).collect();
    check(DType::U64, &unsigned, |x| integer(x.into()));
    let ints: Vec<i32> = longs.iter().filter_map(|x| i32::try_from(*x).ok()).collect();
    check(DType::I32, &ints, |x| integer(x.into()));
}

/// An integer rounded to this many binary digits: to nearest, half to even.
fn nearest(x: i128, digits: u32) -> f64 {
    let size = x.unsigned_abs();
    let shift = (128 - size.leading_zeros()).saturating_sub(digits);
    let (kept, cut, half) = (size >> shift, size & ((1 << shift) - 1), (1u128 << shift) >> 1);
    let up = cut > half || cut == half && shift > 0 && kept & 1 == 1;
    let rounded = ((kept + u128::from(up)) << shift) as f64;
    if x < 0 { -rounded } else { rounded }
}

/// A number of any dtype, as the widest of its kind.
trait Wide: Element {
    fn from_wide(x: f64) -> Self;
    fn wide(self) -> f64;
}
macro_rules! wide {
    ($($T:ident)*) => {$(impl Wide for $T {
        fn from_wide(x: f64) -> $T { x as $T }
        fn wide(self) -> f64 { self as f64 }
    })*};
}
wide!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);
impl Wide for f16 {
    fn from_wide(x: f64) -> f16 {
        to_f16(x)
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
}
impl Wide for bf16 {
    fn from_wide(x: f64) -> bf16 {
        to_bf16(x)
    }
    fn wide(self) -> f64 {
        self.to_f64()
    }
}
impl Wide for Bool {
    fn from_wide(x: f64) -> Bool {
        (x != 0.0).into()
    }
    fn wide(self) -> f64 {
        f64::from(u8::from(self.get()))
    }
}

#[test]
fn casts_between_all_dtypes_follow_rusts_as() {
    // Numbers that every dtype's f64 image holds exactly, so that f64 is the reference for them.
    let values = [0.0, 1.0, -1.0, 2.75, -2.75, 127.0, 200.0, -129.0, 65504.0, 70000.0, 1e9, 3e9];
    let edges = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, 1e30, -1e30];
    for from in DType::ALL {
        for to in DType::ALL {
            with_element!(from, F => with_element!(to, T => {
                let mut a: Vec<F> = values.iter().map(|&x| F::from_wide(x)).collect();
                if from.is_float() {
                    a.extend(edges.iter().map(|&x| F::from_wide(x)));
                }
                let a: Vec<F> = a.iter().copied().cycle().take(300).collect();
                for &level in Level::available() {
                    let mut out = vec![T::from_wide(9.0); a.len()];
                    cast(from, to)(level, cast_slice_mut(&mut out), cast_slice(&a));
                    for (&got, &x) in out.iter().zip(&a) {
                        // An integer to a narrower one keeps its low bits; f64 would hold it.
                        let expected = if to.is_integer() && !from.is_float() {
                            let low = (x.wide() as i128).to_le_bytes();
                            bytemuck::pod_read_unaligned(&low[..size_of::<T>()])
                        } else {
                            T::from_wide(x.wide())
                        };
                        let (p, q) = (got.wide(), expected.wide());
                        assert!(p == q || p.is_nan() && q.is_nan(), "{from} {x:?} to {to}: {got:?}");
                    }
                }
            }));
        }
    }
}

#[test]
fn the_available_levels_rise_from_portable_to_the_best() {
    let all = Level::available();
    assert_eq!(all.first(), Some(&Level::Portable));
    assert_eq!(all.last(), Some(&level()));
    assert!(all.is_sorted());
}

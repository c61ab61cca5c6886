//! Reductions of a slice to one element.
//!
//! Invariant: the tree depends on the slice's length alone, never on level or thread count, so a sum
//! has the same bits everywhere. Element `i` of a leaf of [`LEAF`] goes to lane `i % LANES`; the lanes
//! are joined by halves; leaves are joined in pairs, the left side of each a power of two of them.
//! So rounding errors grow with the logarithm of the length, where a plain loop's grow with the
//! length.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use serde::{Deserialize, Serialize};
use tonnage_core::DType;

use super::elementwise::{Add, Max, Min, Mul};
use super::level::Level;
use super::map::Map2;
use super::number::Number;
use super::prim::UnaryFn;
use super::vectorize::{Isa, Kernel};

/// Sums that run side by side: two vectors of `f32` at the widest level.
pub const LANES: usize = 32;
/// Elements of a leaf of the tree.
pub const LEAF: usize = 1024;

/// Reductions of a slice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Reduce {
    /// The sum; integers wrap; 0 of nothing.
    Sum,
    /// The product; integers wrap; 1 of nothing.
    Prod,
    /// The largest; NaN where there is one; the dtype's least of nothing.
    Max,
    /// The smallest; NaN where there is one; the dtype's greatest of nothing.
    Min,
    /// Whether any is not 0.
    Any,
    /// Whether none is 0.
    All,
    /// Where the largest is first met, as `i64`; a NaN counts as largest; 0 of nothing.
    ArgMax,
    /// Where the smallest is first met, as `i64`; a NaN counts as smallest; 0 of nothing.
    ArgMin,
}

struct Leaf<'a, T, M>(T, &'a [T], std::marker::PhantomData<M>);

impl<T: Pod, M: Map2<T, Out = T>> Kernel for Leaf<'_, T, M> {
    type Output = T;
    #[inline(always)]
    fn run<I: Isa>(self) -> T {
        let mut lanes = [self.0; LANES];
        let (whole, rest) = self.1.as_chunks::<LANES>();
        for chunk in whole {
            for (lane, &x) in lanes.iter_mut().zip(chunk) {
                *lane = M::apply::<I>(*lane, x);
            }
        }
        for (lane, &x) in lanes.iter_mut().zip(rest) {
            *lane = M::apply::<I>(*lane, x);
        }
        let mut width = LANES / 2;
        while width > 0 {
            for i in 0..width {
                lanes[i] = M::apply::<I>(lanes[i], lanes[i + width]);
            }
            width /= 2;
        }
        lanes[0]
    }
}

/// The slice's elements joined by `M`, from `start`, which must change nothing.
///
/// ```
/// use tonnage_ops::simd::{elementwise::Add, level, reduce::reduce};
/// assert_eq!(reduce::<f32, Add>(level(), 0.0, &[0.5; 10_000]), 5000.0);
/// ```
pub fn reduce<T: Pod, M: Map2<T, Out = T>>(level: Level, start: T, x: &[T]) -> T {
    if x.len() <= LEAF {
        return level.run(Leaf::<T, M>(start, x, std::marker::PhantomData));
    }
    let leaves = x.len().div_ceil(LEAF);
    let (left, right) = x.split_at(leaves.next_power_of_two() / 2 * LEAF);
    M::apply::<super::Plain>(
        reduce::<T, M>(level, start, left),
        reduce::<T, M>(level, start, right),
    )
}

struct Find<'a, T>(T, &'a [T]);

impl<T: Number> Kernel for Find<'_, T> {
    type Output = Option<usize>;
    #[inline(always)]
    fn run<I: Isa>(self) -> Option<usize> {
        let Find(wanted, slice) = self;
        let hit = |x: T| (x == wanted) | (x.is_nan() & wanted.is_nan());
        // Whole chunks first: a search that may end at any element does not vectorize.
        let chunks = slice.chunks(64);
        let (i, chunk) = chunks
            .enumerate()
            .find(|(_, chunk)| chunk.iter().fold(false, |any, &x| any | hit(x)))?;
        chunk.iter().position(|&x| hit(x)).map(|j| i * 64 + j)
    }
}

fn fold<T: Number, M: Map2<T, Out = T>, S: Start<T>>(level: Level, out: &mut [u8], a: &[u8]) {
    let out: &mut [T] = cast_slice_mut(out);
    out.fill(reduce::<T, M>(level, S::START, cast_slice(a)));
}

fn find<T: Number, M: Map2<T, Out = T>, S: Start<T>>(level: Level, out: &mut [u8], a: &[u8]) {
    let (out, a): (&mut [i64], &[T]) = (cast_slice_mut(out), cast_slice(a));
    let wanted = reduce::<T, M>(level, S::START, a);
    out.fill(level.run(Find(wanted, a)).unwrap_or(0) as i64);
}

/// Bytes, any of which but 0 is true: the largest decides on `any`, the smallest on `all`.
fn truth<M: Map2<u8, Out = u8>, S: Start<u8>>(level: Level, out: &mut [u8], a: &[u8]) {
    out.fill((reduce::<u8, M>(level, S::START, a) != 0) as u8);
}

/// What a reduction starts from.
trait Start<T> {
    const START: T;
}

macro_rules! starts {
    ($($Name:ident $constant:ident;)*) => {$(
        struct $Name;
        impl<T: Number> Start<T> for $Name {
            const START: T = T::$constant;
        }
    )*};
}

starts! { Zero ZERO; One ONE; Least LEAST; Greatest GREATEST; }

macro_rules! by_dtype {
    ($dtype:expr, $f:ident, $M:ty, $S:ty) => {
        match $dtype {
            DType::F64 => Some($f::<f64, $M, $S>),
            DType::F32 => Some($f::<f32, $M, $S>),
            DType::I64 => Some($f::<i64, $M, $S>),
            DType::I32 => Some($f::<i32, $M, $S>),
            DType::I16 => Some($f::<i16, $M, $S>),
            DType::I8 => Some($f::<i8, $M, $S>),
            DType::U64 => Some($f::<u64, $M, $S>),
            DType::U32 => Some($f::<u32, $M, $S>),
            DType::U16 => Some($f::<u16, $M, $S>),
            DType::U8 => Some($f::<u8, $M, $S>),
            DType::F16 | DType::BF16 | DType::Bool => None,
        }
    };
}

impl Reduce {
    /// All of them.
    pub const ALL: &[Reduce] = &[
        Reduce::Sum,
        Reduce::Prod,
        Reduce::Max,
        Reduce::Min,
        Reduce::Any,
        Reduce::All,
        Reduce::ArgMax,
        Reduce::ArgMin,
    ];

    /// The function for a dtype: `f(level, out, a)`, with one element of `out`. `None` where it has
    /// no meaning there, and for 16-bit floats: those are cast to `f32` first, as the partial
    /// results are held in it.
    pub fn function(self, dtype: DType) -> Option<UnaryFn> {
        match (self, dtype) {
            (Reduce::Any | Reduce::Max, DType::Bool) => Some(truth::<Max, Least>),
            (Reduce::All | Reduce::Min, DType::Bool) => Some(truth::<Min, Greatest>),
            (Reduce::Any | Reduce::All, _) => None,
            (Reduce::Sum, _) => by_dtype!(dtype, fold, Add, Zero),
            (Reduce::Prod, _) => by_dtype!(dtype, fold, Mul, One),
            (Reduce::Max, _) => by_dtype!(dtype, fold, Max, Least),
            (Reduce::Min, _) => by_dtype!(dtype, fold, Min, Greatest),
            (Reduce::ArgMax, _) => by_dtype!(dtype, find, Max, Least),
            (Reduce::ArgMin, _) => by_dtype!(dtype, find, Min, Greatest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run<T: Pod, U: Pod>(reduce: Reduce, dtype: DType, level: Level, x: &[T]) -> U {
        let mut out = [U::zeroed()];
        let function = reduce.function(dtype).expect("the test asks for what there is");
        function(level, cast_slice_mut(&mut out), cast_slice(x));
        out[0]
    }

    fn waves(n: usize) -> Vec<f32> {
        (0..n).map(|i| (i as f32 * 0.7).sin() + 0.01).collect()
    }

    #[test]
    fn sums_are_near_the_exact_one_and_have_the_same_bits_at_every_level() {
        for n in [0, 1, 31, 32, 33, 1023, 1024, 1025, 5000, 100_003] {
            let x = waves(n);
            let exact: f64 = x.iter().map(|&x| f64::from(x)).sum();
            let size: f64 = x.iter().map(|&x| f64::from(x.abs())).sum();
            let portable: f32 = run(Reduce::Sum, DType::F32, Level::Portable, &x);
            assert!((f64::from(portable) - exact).abs() <= 4e-7 * size, "{portable} {exact}");
            for &level in Level::available() {
                let sum: f32 = run(Reduce::Sum, DType::F32, level, &x);
                assert_eq!(sum.to_bits(), portable.to_bits(), "{level} {n}");
            }
        }
    }

    #[test]
    fn integers_wrap_and_products_multiply() {
        for &level in Level::available() {
            let x: Vec<i8> = (0..1000).map(|i| (i % 7) as i8 + 1).collect();
            let sum = x.iter().fold(0i8, |s, &x| s.wrapping_add(x));
            assert_eq!(run::<i8, i8>(Reduce::Sum, DType::I8, level, &x), sum);
            let product = x.iter().take(100).fold(1i8, |s, &x| s.wrapping_mul(x));
            assert_eq!(run::<i8, i8>(Reduce::Prod, DType::I8, level, &x[..100]), product);
            assert_eq!(run::<f64, f64>(Reduce::Prod, DType::F64, level, &[2.0; 40]), 2f64.powi(40));
        }
    }

    #[test]
    fn the_first_extreme_is_found_and_nan_wins_over_all() {
        let mut x = waves(3000);
        (x[700], x[2500]) = (9.0, 9.0);
        (x[40], x[41]) = (-9.0, -9.0);
        for &level in Level::available() {
            assert_eq!(run::<_, f32>(Reduce::Max, DType::F32, level, &x), 9.0);
            assert_eq!(run::<_, f32>(Reduce::Min, DType::F32, level, &x), -9.0);
            assert_eq!(run::<_, i64>(Reduce::ArgMax, DType::F32, level, &x), 700);
            assert_eq!(run::<_, i64>(Reduce::ArgMin, DType::F32, level, &x), 40);
            let mut y = x.clone();
            (y[1234], y[2000]) = (f32::NAN, f32::NAN);
            assert!(run::<_, f32>(Reduce::Max, DType::F32, level, &y).is_nan());
            assert!(run::<_, f32>(Reduce::Min, DType::F32, level, &y).is_nan());
            assert_eq!(run::<_, i64>(Reduce::ArgMax, DType::F32, level, &y), 1234);
            assert_eq!(run::<_, i64>(Reduce::ArgMin, DType::F32, level, &y), 1234);
            assert_eq!(run::<u8, u8>(Reduce::Max, DType::U8, level, &[3, 200, 7]), 200);
            assert_eq!(run::<f32, f32>(Reduce::Max, DType::F32, level, &[]), f32::NEG_INFINITY);
            assert_eq!(run::<f32, i64>(Reduce::ArgMax, DType::F32, level, &[]), 0);
        }
    }

    #[test]
    fn any_and_all_take_every_byte_but_zero_for_true() {
        for &level in Level::available() {
            let check = |x: &[u8], any: u8, all: u8| {
                assert_eq!(run::<u8, u8>(Reduce::Any, DType::Bool, level, x), any);
                assert_eq!(run::<u8, u8>(Reduce::All, DType::Bool, level, x), all);
            };
            check(&[], 0, 1);
            check(&[0; 77], 0, 0);
            check(&[2; 77], 1, 1);
            let mut one = [0; 2000];
            one[1999] = 128;
            check(&one, 1, 0);
        }
    }
}

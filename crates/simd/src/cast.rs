//! Casts between all dtypes, by the rule of Rust's `as`.
//!
//! A float to an integer is cut off towards zero and held at the ends, NaN gives 0; an integer to a
//! narrower one keeps its low bits; anything to `bool` is whether it is not 0 (NaN is true); `bool`
//! to anything is 0 or 1. Rounding is to nearest, half to even, and once: on its way to 16 bits a number
//! goes through `f32` rounded to odd (see [`tonnage_core::rounding`]).
//!
//! Integers of one width share their loops: the low bits are the same whatever the sign.

use bytemuck::{Pod, cast_slice, cast_slice_mut};
use half::{bf16, f16};
use tonnage_core::rounding::{integer_to_odd, to_odd, unsigned_to_odd};
use tonnage_core::{Bool, DType};

use super::half::{Half, NarrowMap, Widen};
use super::level::Level;
use super::map::{Map1, bytes1, map1};
use super::prim::UnaryFn;
use super::vectorize::Isa;

/// One element's cast.
trait CastElement<U> {
    fn cast(self) -> U;
}

macro_rules! casts {
    ($($T:ident)*) => {$(
        casts!(@to $T: u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);
        impl CastElement<Bool> for $T {
            #[inline(always)]
            fn cast(self) -> Bool { (self != 0 as $T).into() }
        }
        impl CastElement<$T> for Bool {
            #[inline(always)]
            fn cast(self) -> $T { self.get() as u8 as $T }
        }
    )*};
    (@to $T:ident: $($U:ident)*) => {$(
        impl CastElement<$U> for $T {
            #[inline(always)]
            fn cast(self) -> $U { self as $U }
        }
    )*};
}

casts!(u8 i8 u16 i16 u32 i32 u64 i64 f32 f64);

impl CastElement<Bool> for Bool {
    #[inline(always)]
    fn cast(self) -> Bool {
        self.get().into()
    }
}

/// The cast to U as a map.
struct CastTo<U>(std::marker::PhantomData<U>);

impl<T: CastElement<U> + Pod, U: Pod> Map1<T> for CastTo<U> {
    type Out = U;
    #[inline(always)]
    fn apply<I: Isa>(x: T) -> U {
        x.cast()
    }
}

/// An element on its way to 16 bits.
trait Odd {
    fn odd(self) -> f32;
}

macro_rules! odd {
    ($($T:ident |$x:ident| $odd:expr;)*) => {$(
        impl Odd for $T {
            #[inline(always)]
            fn odd(self) -> f32 { let $x = self; $odd }
        }
    )*};
}

odd! {
    f64 |x| to_odd(x);
    i64 |x| to_odd(integer_to_odd(x));
    u64 |x| to_odd(unsigned_to_odd(x));
    i32 |x| to_odd(x.into());
    u32 |x| to_odd(x.into());
    // These fit.
    i16 |x| x.into();
    u16 |x| x.into();
    i8 |x| x.into();
    u8 |x| x.into();
    Bool |x| x.cast();
}

/// [`Odd`] as a map.
struct ToOdd;

impl<T: Odd + Pod> Map1<T> for ToOdd {
    type Out = f32;
    #[inline(always)]
    fn apply<I: Isa>(x: T) -> f32 {
        x.odd()
    }
}

fn copy(_: Level, out: &mut [u8], a: &[u8]) {
    out.copy_from_slice(a);
}

/// Elements that are held as `f32` at a time, on the stack.
const BLOCK: usize = 256;

fn from_half<H: Half, U: Pod>(level: Level, out: &mut [u8], a: &[u8])
where
    f32: CastElement<U>,
{
    let (out, a): (&mut [U], &[H]) = (cast_slice_mut(out), cast_slice(a));
    let mut wide = [0.0; BLOCK];
    for (out, a) in out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)) {
        map1::<H, Widen>(level, &mut wide[..a.len()], a);
        map1::<f32, CastTo<U>>(level, out, &wide[..a.len()]);
    }
}

fn to_half<T: Odd + Pod, H: Half>(level: Level, out: &mut [u8], a: &[u8]) {
    let (out, a): (&mut [H], &[T]) = (cast_slice_mut(out), cast_slice(a));
    let mut wide = [0.0; BLOCK];
    for (out, a) in out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)) {
        map1::<T, ToOdd>(level, &mut wide[..a.len()], a);
        map1::<f32, NarrowMap<H>>(level, out, &wide[..a.len()]);
    }
}

fn half_to_half<G: Half, H: Half>(level: Level, out: &mut [u8], a: &[u8]) {
    let (out, a): (&mut [H], &[G]) = (cast_slice_mut(out), cast_slice(a));
    let mut wide = [0.0; BLOCK];
    for (out, a) in out.chunks_mut(BLOCK).zip(a.chunks(BLOCK)) {
        map1::<G, Widen>(level, &mut wide[..a.len()], a);
        map1::<f32, NarrowMap<H>>(level, out, &wide[..a.len()]);
    }
}

/// From an integer or boolean of Rust type `$T`.
macro_rules! from_integer {
    ($T:ident, $to:expr) => {
        match $to {
            DType::F64 => bytes1::<$T, CastTo<f64>>,
            DType::F32 => bytes1::<$T, CastTo<f32>>,
            DType::F16 => to_half::<$T, f16>,
            DType::BF16 => to_half::<$T, bf16>,
            DType::I64 | DType::U64 => bytes1::<$T, CastTo<u64>>,
            DType::I32 | DType::U32 => bytes1::<$T, CastTo<u32>>,
            DType::I16 | DType::U16 => bytes1::<$T, CastTo<u16>>,
            DType::I8 | DType::U8 => bytes1::<$T, CastTo<u8>>,
            DType::Bool => bytes1::<$T, CastTo<Bool>>,
        }
    };
}

/// From a float, where the sign of the target matters: its ends are where the value is held.
macro_rules! from_float {
    ($to:expr, $($from:ident)::+ <$T:ident, $($wrap:ident)?>, $f16:expr, $bf16:expr) => {
        match $to {
            DType::F16 => $f16,
            DType::BF16 => $bf16,
            DType::F64 => from_float!(@ $($from)::+, $T, $($wrap)?, f64),
            DType::F32 => from_float!(@ $($from)::+, $T, $($wrap)?, f32),
            DType::I64 => from_float!(@ $($from)::+, $T, $($wrap)?, i64),
            DType::I32 => from_float!(@ $($from)::+, $T, $($wrap)?, i32),
            DType::I16 => from_float!(@ $($from)::+, $T, $($wrap)?, i16),
            DType::I8 => from_float!(@ $($from)::+, $T, $($wrap)?, i8),
            DType::U64 => from_float!(@ $($from)::+, $T, $($wrap)?, u64),
            DType::U32 => from_float!(@ $($from)::+, $T, $($wrap)?, u32),
            DType::U16 => from_float!(@ $($from)::+, $T, $($wrap)?, u16),
            DType::U8 => from_float!(@ $($from)::+, $T, $($wrap)?, u8),
            DType::Bool => from_float!(@ $($from)::+, $T, $($wrap)?, Bool),
        }
    };
    (@ $($from:ident)::+, $T:ident, CastTo, $U:ident) => { $($from)::+::<$T, CastTo<$U>> };
    (@ $($from:ident)::+, $T:ident, , $U:ident) => { $($from)::+::<$T, $U> };
}

/// The cast from one dtype to another, over bytes.
///
/// ```
/// use tonnage_core::DType;
/// use tonnage_simd::{cast::cast, level};
/// let (from, mut to) = ([-1.5f32, 300.0, f32::NAN], [0u8; 3]);
/// cast(DType::F32, DType::U8)(level(), &mut to, bytemuck::cast_slice(&from));
/// assert_eq!(to, [0, 255, 0]);
/// ```
pub fn cast(from: DType, to: DType) -> UnaryFn {
    if from == to && from != DType::Bool {
        return copy;
    }
    match from {
        DType::F64 => {
            from_float!(to, bytes1<f64, CastTo>, to_half::<f64, f16>, to_half::<f64, bf16>)
        }
        DType::F32 => {
            from_float!(to, bytes1<f32, CastTo>, bytes1::<f32, NarrowMap<f16>>, bytes1::<f32, NarrowMap<bf16>>)
        }
        DType::F16 => from_float!(to, from_half<f16,>, copy, half_to_half::<f16, bf16>),
        DType::BF16 => from_float!(to, from_half<bf16,>, half_to_half::<bf16, f16>, copy),
        DType::I64 => from_integer!(i64, to),
        DType::I32 => from_integer!(i32, to),
        DType::I16 => from_integer!(i16, to),
        DType::I8 => from_integer!(i8, to),
        DType::U64 => from_integer!(u64, to),
        DType::U32 => from_integer!(u32, to),
        DType::U16 => from_integer!(u16, to),
        DType::U8 => from_integer!(u8, to),
        DType::Bool => from_integer!(Bool, to),
    }
}

//! Partial results of a reduction: wide enough that nothing is lost on the way, whatever the dtype.
//!
//! Floats are accumulated in f64 above blocks, signed integers in i64, unsigned ones and booleans in u64. Integers
//! wrap around; cutting off the wide result gives what wrapping in the narrow dtype would.

use bytemuck::{bytes_of, cast_slice};
use tonnage_core::tile::Reduction;
use tonnage_core::{Bool, Class, DType};

use tonnage_simd::{Isa, SimdKernel, level};

/// Elements that are reduced at once; partial results of blocks are joined in order.
pub const BLOCK: usize = 512;

/// The bits of a partial result.
pub type Bits = u64;

/// A wide number that partial results are held in.
trait Accumulator: Copy {
    fn identity(reduction: Reduction) -> Self;
    fn join(reduction: Reduction, a: Self, b: Self) -> Self;
    fn bits(self) -> Bits;
    fn of(bits: Bits) -> Self;
}

macro_rules! wide_integer {
    ($($T:ty),*) => {$(
        impl Accumulator for $T {
            fn identity(reduction: Reduction) -> $T {
                match reduction {
                    Reduction::Sum | Reduction::Mean | Reduction::Any => 0,
                    Reduction::Prod | Reduction::All => 1,
                    Reduction::Max => <$T>::MIN,
                    Reduction::Min => <$T>::MAX,
                }
            }
            #[inline(always)]
            fn join(reduction: Reduction, a: $T, b: $T) -> $T {
                match reduction {
                    Reduction::Sum | Reduction::Mean => a.wrapping_add(b),
                    Reduction::Prod => a.wrapping_mul(b),
                    Reduction::Max | Reduction::Any => a.max(b),
                    Reduction::Min | Reduction::All => a.min(b),
                }
            }
            fn bits(self) -> Bits { self as Bits }
            fn of(bits: Bits) -> $T { bits as $T }
        }
    )*};
}

wide_integer!(i64, u64);

impl Accumulator for f64 {
    fn identity(reduction: Reduction) -> f64 {
        match reduction {
            Reduction::Sum | Reduction::Mean | Reduction::Any => 0.0,
            Reduction::Prod | Reduction::All => 1.0,
            Reduction::Max => f64::NEG_INFINITY,
            Reduction::Min => f64::INFINITY,
        }
    }
    #[inline(always)]
    fn join(reduction: Reduction, a: f64, b: f64) -> f64 {
        match reduction {
            Reduction::Sum | Reduction::Mean => a + b,
            Reduction::Prod => a * b,
            Reduction::Max | Reduction::Any => higher(a, b),
            Reduction::Min | Reduction::All => -higher(-a, -b),
        }
    }
    fn bits(self) -> Bits {
        self.to_bits()
    }
    fn of(bits: Bits) -> f64 {
        f64::from_bits(bits)
    }
}

/// The larger; NaN wins.
#[inline(always)]
fn higher(a: f64, b: f64) -> f64 {
    if b > a || b.is_nan() { b } else { a }
}

/// An element, reduced in lanes of its own width within a block.
trait LaneElement: bytemuck::Pod {
    type Wide: Accumulator;
    /// False for signed integers, whose sums and products unsigned ones of the width stand for: see [`unsigned`].
    const SUMS: bool = true;
    /// Whether sums of some columns stay in registers from row to row: loops of their own, which only what most sums are of is worth.
    /// (Measured: of 16 columns they take a fifth longer than through memory, of 32 and 64 two thirds to nine tenths as long.)
    const IN_REGISTERS: bool = false;
    /// What lanes are held in.
    type Lane: Copy;
    fn lane(reduction: Reduction) -> Self::Lane;
    fn put(reduction: Reduction, lane: Self::Lane, x: Self) -> Self::Lane;
    fn widen(lane: Self::Lane) -> Self::Wide;
    fn wide(self) -> Self::Wide;
}

macro_rules! narrow_integer {
    ($($T:ty => $W:ty, sums $sums:literal, |$x:ident| $value:expr;)*) => {$(
        impl LaneElement for $T {
            type Wide = $W;
            const SUMS: bool = $sums;
            type Lane = $W;
            #[inline(always)]
            fn lane(reduction: Reduction) -> $W { <$W>::identity(reduction) }
            #[inline(always)]
            fn put(reduction: Reduction, lane: $W, x: $T) -> $W { <$W>::join(reduction, lane, x.wide()) }
            #[inline(always)]
            fn widen(lane: $W) -> $W { lane }
            #[inline(always)]
            fn wide(self) -> $W { let $x = self; $value as $W }
        }
    )*};
}

narrow_integer! {
    i64 => i64, sums false, |x| x;
    i32 => i64, sums false, |x| x;
    i16 => i64, sums false, |x| x;
    i8 => i64, sums false, |x| x;
    u64 => u64, sums true, |x| x;
    u32 => u64, sums true, |x| x;
    u16 => u64, sums true, |x| x;
    u8 => u64, sums true, |x| x;
    Bool => u64, sums true, |x| x.get();
    f64 => f64, sums true, |x| x;
}

impl LaneElement for f32 {
    type Wide = f64;
    const IN_REGISTERS: bool = true;
    type Lane = f32;
    #[inline(always)]
    fn lane(reduction: Reduction) -> f32 {
        f64::identity(reduction) as f32
    }
    #[inline(always)]
    fn put(reduction: Reduction, lane: f32, x: f32) -> f32 {
        match reduction {
            Reduction::Sum | Reduction::Mean => lane + x,
            Reduction::Prod => lane * x,
            Reduction::Max | Reduction::Any => {
                if x > lane || x.is_nan() {
                    x
                } else {
                    lane
                }
            }
            Reduction::Min | Reduction::All => {
                if x < lane || x.is_nan() {
                    x
                } else {
                    lane
                }
            }
        }
    }
    #[inline(always)]
    fn widen(lane: f32) -> f64 {
        lane as f64
    }
    #[inline(always)]
    fn wide(self) -> f64 {
        self as f64
    }
}

const LANES: usize = 32;

struct ReduceBlock<'a, T> {
    reduction: Reduction,
    x: &'a [T],
}

impl<T: LaneElement> SimdKernel for ReduceBlock<'_, T> {
    type Output = T::Wide;

    #[inline(always)]
    fn run<I: Isa>(self) -> T::Wide {
        // One loop for each way to join: the choice stays out of the inner loop.
        match self.reduction {
            Reduction::Sum | Reduction::Mean if T::SUMS => self.lanes::<I>(Reduction::Sum),
            Reduction::Prod if T::SUMS => self.lanes::<I>(Reduction::Prod),
            Reduction::Min | Reduction::All => self.lanes::<I>(Reduction::Min),
            _ => self.lanes::<I>(Reduction::Max),
        }
    }
}

impl<T: LaneElement> ReduceBlock<'_, T> {
    /// `joined` is a reduction that joins two numbers as this one does.
    #[inline(always)]
    fn lanes<I: Isa>(self, joined: Reduction) -> T::Wide {
        let mut lanes = [T::lane(self.reduction); LANES];
        let (chunks, rest) = self.x.as_chunks::<LANES>();
        for chunk in chunks {
            for (lane, x) in lanes.iter_mut().zip(chunk) {
                *lane = T::put(joined, *lane, I::element(*x));
            }
        }
        finish_lanes(self.reduction, lanes, rest)
    }
}

/// The last elements of a block into their lanes, and all lanes in order. Once for all vector widths: there is nothing to do
/// side by side.
#[inline(never)]
fn finish_lanes<T: LaneElement>(
    reduction: Reduction,
    mut lanes: [T::Lane; LANES],
    rest: &[T],
) -> T::Wide {
    for (lane, x) in lanes.iter_mut().zip(rest) {
        *lane = T::put(reduction, *lane, *x);
    }
    let none = T::Wide::identity(reduction);
    lanes.into_iter().fold(none, |sum, lane| T::Wide::join(reduction, sum, T::widen(lane)))
}

struct ReduceRows<'a, T> {
    reduction: Reduction,
    x: &'a [T],
    sums: &'a mut [Bits],
}

impl<T: LaneElement> SimdKernel for ReduceRows<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        match self.reduction {
            Reduction::Sum | Reduction::Mean if T::SUMS => {
                match (T::IN_REGISTERS, self.sums.len()) {
                    (true, 32) => self.columns::<I, 32>(),
                    (true, 64) => self.columns::<I, 64>(),
                    _ => self.rows::<I>(Reduction::Sum),
                }
            }
            Reduction::Prod if T::SUMS => self.rows::<I>(Reduction::Prod),
            Reduction::Min | Reduction::All => self.rows::<I>(Reduction::Min),
            _ => self.rows::<I>(Reduction::Max),
        }
    }
}

impl<T: LaneElement> ReduceRows<'_, T> {
    /// Sums of so many columns, in registers meanwhile.
    #[inline(always)]
    fn columns<I: Isa, const COLUMNS: usize>(self) {
        let mut held = [T::Wide::of(0); COLUMNS];
        for (held, sum) in held.iter_mut().zip(&*self.sums) {
            *held = T::Wide::of(*sum);
        }
        for row in self.x.as_chunks::<COLUMNS>().0 {
            for (held, x) in held.iter_mut().zip(row) {
                *held = T::Wide::join(Reduction::Sum, *held, I::element(*x).wide());
            }
        }
        for (sum, held) in self.sums.iter_mut().zip(held) {
            *sum = held.bits();
        }
    }

    #[inline(always)]
    fn rows<I: Isa>(self, reduction: Reduction) {
        for row in self.x.chunks_exact(self.sums.len()) {
            for (sum, x) in self.sums.iter_mut().zip(row) {
                *sum = T::Wide::join(reduction, T::Wide::of(*sum), I::element(*x).wide()).bits();
            }
        }
    }
}

macro_rules! with_narrow {
    ($dtype:expr, $T:ident => $body:expr) => {
        match $dtype {
            DType::F64 => {
                type $T = f64;
                $body
            }
            // Registers hold 16-bit floats as f32.
            DType::F32 | DType::F16 | DType::BF16 => {
                type $T = f32;
                $body
            }
            DType::I64 => {
                type $T = i64;
                $body
            }
            DType::I32 => {
                type $T = i32;
                $body
            }
            DType::I16 => {
                type $T = i16;
                $body
            }
            DType::I8 => {
                type $T = i8;
                $body
            }
            DType::U64 => {
                type $T = u64;
                $body
            }
            DType::U32 => {
                type $T = u32;
                $body
            }
            DType::U16 => {
                type $T = u16;
                $body
            }
            DType::U8 => {
                type $T = u8;
                $body
            }
            DType::Bool => {
                type $T = Bool;
                $body
            }
        }
    };
}

/// The partial result of nothing.
pub fn identity(reduction: Reduction, dtype: DType) -> Bits {
    with_narrow!(dtype, T => <T as LaneElement>::Wide::identity(reduction).bits())
}

/// Two partial results as one.
pub fn join(reduction: Reduction, dtype: DType, a: Bits, b: Bits) -> Bits {
    with_narrow!(dtype, T => {
        type W = <T as LaneElement>::Wide;
        W::join(reduction, W::of(a), W::of(b)).bits()
    })
}

/// The dtype whose loop gives that reduction. The low bits of sums and products are the same whatever the sign, and more
/// than those is never kept of them.
fn unsigned(reduction: Reduction, dtype: DType) -> DType {
    match (reduction, dtype) {
        (Reduction::Max | Reduction::Min | Reduction::Any | Reduction::All, _) => dtype,
        (_, DType::I64) => DType::U64,
        (_, DType::I32) => DType::U32,
        (_, DType::I16) => DType::U16,
        (_, DType::I8) => DType::U8,
        _ => dtype,
    }
}

/// The elements of at most one block as a partial result.
pub fn block(reduction: Reduction, dtype: DType, bytes: &[u8]) -> Bits {
    let dtype = unsigned(reduction, dtype);
    with_narrow!(dtype, T => level().run(ReduceBlock::<T> { reduction, x: cast_slice(bytes) }).bits())
}

/// Rows of as many elements as there are sums, each added to its sum.
pub fn rows(reduction: Reduction, dtype: DType, bytes: &[u8], sums: &mut [Bits]) {
    let dtype = unsigned(reduction, dtype);
    with_narrow!(dtype, T => level().run(ReduceRows::<T> { reduction, x: cast_slice(bytes), sums }));
}

/// The final result of `count` elements, in the output's dtype.
pub fn finish(reduction: Reduction, dtype: DType, bits: Bits, count: usize, out: &mut [u8]) {
    use tonnage_core::rounding::{to_bf16, to_f16};
    let float = || match reduction {
        Reduction::Mean => f64::from_bits(bits) / count as f64,
        _ => f64::from_bits(bits),
    };
    // The largest of nothing is the least there is: a wide limit is held to the narrow one.
    let clamped = |low: i128, high: i128| {
        let value = match dtype.class() {
            Class::Signed => bits as i64 as i128,
            _ => bits as i128,
        };
        match reduction {
            Reduction::Max | Reduction::Min => value.clamp(low, high) as u64,
            _ => bits,
        }
    };
    match dtype {
        DType::F64 => out.copy_from_slice(bytes_of(&float())),
        DType::F32 => out.copy_from_slice(bytes_of(&(float() as f32))),
        DType::F16 => out.copy_from_slice(bytes_of(&to_f16(float()))),
        DType::BF16 => out.copy_from_slice(bytes_of(&to_bf16(float()))),
        DType::I64 | DType::U64 => out.copy_from_slice(bytes_of(&bits)),
        DType::I32 => narrow(out, clamped(i32::MIN.into(), i32::MAX.into())),
        DType::I16 => narrow(out, clamped(i16::MIN.into(), i16::MAX.into())),
        DType::I8 => narrow(out, clamped(i8::MIN.into(), i8::MAX.into())),
        DType::U32 => narrow(out, clamped(0, u32::MAX.into())),
        DType::U16 => narrow(out, clamped(0, u16::MAX.into())),
        DType::U8 => narrow(out, clamped(0, u8::MAX.into())),
        DType::Bool => out[0] = (bits != 0) as u8,
    }
}

fn narrow(out: &mut [u8], bits: Bits) {
    let size = out.len();
    match size {
        4 => out.copy_from_slice(bytes_of(&(bits as u32))),
        2 => out.copy_from_slice(bytes_of(&(bits as u16))),
        _ => out[0] = bits as u8,
    }
}

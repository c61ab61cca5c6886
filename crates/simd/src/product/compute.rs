//! The dtypes that products are computed in, and how other dtypes are read into and rounded from them.
//!
//! `f32`, `f64` and the integers compute as themselves; `f16` and `bf16` are widened to `f32` when they
//! are read, and a result is rounded once, when its sum is complete. Integers wrap.

use tonnage_core::{Element, bf16, f16};

use super::transpose::PanelTranspose;
use super::widened::stream_widened;
use super::{GemmLevel, GemvStream, MicroKernel, portable};
use crate::half::Half;
use crate::{Isa, SimdKernel, level};

#[cfg(target_arch = "x86_64")]
use super::wide;

mod sealed {
    pub trait Sealed {}
}

/// A dtype with micro-kernels.
pub trait Compute: Element + sealed::Sealed {
    /// What sums start from.
    const ZERO: Self;

    /// `x + y`.
    #[doc(hidden)]
    fn add(x: Self, y: Self) -> Self;

    /// `x * y + z`, rounded once where `FUSED` (floats only).
    #[doc(hidden)]
    fn mul_add<const FUSED: bool>(x: Self, y: Self, z: Self) -> Self;

    /// The micro-kernel for a level.
    #[doc(hidden)]
    fn kernel(level: GemmLevel) -> &'static MicroKernel<Self>;

    /// Transposes, the fastest way there is here.
    #[doc(hidden)]
    fn transpose(block: &PanelTranspose<'_, Self>, out: &mut [Self]);
}

macro_rules! floats {
    ($($t:ty, $width:ident);*) => {$(
        impl sealed::Sealed for $t {}
        impl Compute for $t {
            const ZERO: Self = 0.0;

            #[inline(always)]
            fn add(x: Self, y: Self) -> Self {
                x + y
            }

            #[inline(always)]
            fn mul_add<const FUSED: bool>(x: Self, y: Self, z: Self) -> Self {
                if FUSED { x.mul_add(y, z) } else { x * y + z }
            }

                    fn kernel(level: GemmLevel) -> &'static MicroKernel<Self> {
                static PORTABLE: MicroKernel<$t> = portable::kernel();
                match level {
                    GemmLevel::Portable => &PORTABLE,
                    #[cfg(target_arch = "x86_64")]
                    GemmLevel::Avx2 => &super::avx2::$width::KERNEL,
                    #[cfg(target_arch = "x86_64")]
                    GemmLevel::Avx512 | GemmLevel::Amx => &super::avx512::$width::KERNEL,
                }
            }

                    fn transpose(block: &PanelTranspose<'_, Self>, out: &mut [Self]) {
                #[cfg(target_arch = "x86_64")]
                super::transpose::$width(block, out);
                #[cfg(not(target_arch = "x86_64"))]
                block.plain(0, out);
            }
        }
    )*};
}

floats!(f32, single; f64, double);

macro_rules! integers {
    ($($t:ty),*) => {$(
        impl sealed::Sealed for $t {}
        impl Compute for $t {
            const ZERO: Self = 0;

            #[inline(always)]
            fn add(x: Self, y: Self) -> Self {
                x.wrapping_add(y)
            }

            #[inline(always)]
            fn mul_add<const FUSED: bool>(x: Self, y: Self, z: Self) -> Self {
                x.wrapping_mul(y).wrapping_add(z)
            }

                    fn kernel(level: GemmLevel) -> &'static MicroKernel<Self> {
                static PORTABLE: MicroKernel<$t> = portable::kernel();
                #[cfg(target_arch = "x86_64")]
                static AVX2: MicroKernel<$t> = wide::kernel(GemmLevel::Avx2);
                #[cfg(target_arch = "x86_64")]
                static AVX512: MicroKernel<$t> = wide::kernel(GemmLevel::Avx512);
                match level {
                    GemmLevel::Portable => &PORTABLE,
                    #[cfg(target_arch = "x86_64")]
                    GemmLevel::Avx2 => &AVX2,
                    #[cfg(target_arch = "x86_64")]
                    GemmLevel::Avx512 | GemmLevel::Amx => &AVX512,
                }
            }

                    fn transpose(block: &PanelTranspose<'_, Self>, out: &mut [Self]) {
                block.plain(0, out);
            }
        }
    )*};
}

integers!(i64, i32, i16, i8);

/// A dtype that an operand may be stored in where the product is computed in `C`.
pub trait Reads<C: Compute>: Element {
    /// The same value in `C`.
    fn read(self) -> C;

    /// The same elements, where no conversion is needed.
    fn as_computed(data: &[Self]) -> Option<&[C]>;

    /// The same elements, where they are `bf16`.
    fn as_bf16(_: &[Self]) -> Option<&[bf16]> {
        None
    }

    /// Adds up multiples of rows, which are widened as they are read; false where there is nothing to widen.
    #[doc(hidden)]
    fn stream(_: GemmLevel, _: &GemvStream<'_, C, Self>, _: &mut [C]) -> bool {
        false
    }
}

impl<C: Compute> Reads<C> for C {
    #[inline(always)]
    fn read(self) -> C {
        self
    }

    fn as_computed(data: &[C]) -> Option<&[C]> {
        Some(data)
    }
}

impl Reads<f32> for bf16 {
    #[inline(always)]
    fn read(self) -> f32 {
        f32::from_bits((self.to_bits() as u32) << 16)
    }

    fn as_computed(_: &[bf16]) -> Option<&[f32]> {
        None
    }

    fn stream(level: GemmLevel, rows: &GemvStream<'_, f32, bf16>, sums: &mut [f32]) -> bool {
        stream_widened(level, rows, sums);
        true
    }

    fn as_bf16(data: &[bf16]) -> Option<&[bf16]> {
        Some(data)
    }
}

impl Reads<f32> for f16 {
    /// Moves the exponent by an exact multiplication: branch-free, so that loops over it vectorize, which
    /// `f16::to_f32` (it asks the machine each time) does not.
    #[inline(always)]
    fn read(self) -> f32 {
        const MOVE_EXPONENT: f32 = f32::from_bits((127 + 112) << 23);
        let bits = self.to_bits() as u32;
        let value = (f32::from_bits((bits & 0x7fff) << 13) * MOVE_EXPONENT).to_bits();
        let special = if bits & 0x7c00 == 0x7c00 { 0x7f80_0000 } else { 0 };
        f32::from_bits(value | special | (bits & 0x8000) << 16)
    }

    fn as_computed(_: &[f16]) -> Option<&[f32]> {
        None
    }

    fn stream(level: GemmLevel, rows: &GemvStream<'_, f32, f16>, sums: &mut [f32]) -> bool {
        stream_widened(level, rows, sums);
        true
    }
}

/// A dtype that a result may be stored in.
pub trait GemmOutput: Element {
    /// What it is computed in.
    type Compute: Compute;

    /// True where the two are one type: sums may then be kept in the result itself.
    const IS_COMPUTE: bool;

    /// True for `bf16`: where the operands are too, and the machine can, they are multiplied by dot-product instructions.
    const HAS_BF16_DOT: bool;

    /// Widens a row.
    fn load(row: &[Self], sums: &mut [Self::Compute]);

    /// Rounds a row, to nearest even.
    fn store(sums: &[Self::Compute], row: &mut [Self]) {
        Self::store_rows(std::iter::once((sums, row)));
    }

    /// Rounds some rows.
    fn store_rows<'a>(rows: impl Iterator<Item = (&'a [Self::Compute], &'a mut [Self])>);
}

impl<C: Compute> GemmOutput for C {
    type Compute = C;
    const IS_COMPUTE: bool = true;
    const HAS_BF16_DOT: bool = false;

    fn load(row: &[C], sums: &mut [C]) {
        sums.copy_from_slice(row);
    }

    fn store_rows<'a>(rows: impl Iterator<Item = (&'a [C], &'a mut [C])>) {
        rows.for_each(|(sums, row)| row.copy_from_slice(sums));
    }
}

/// 16-bit floats, and where they go as `f32`.
struct Widened<'a, H>(&'a [H], &'a mut [f32]);

impl<H: Half> SimdKernel for Widened<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        self.1.iter_mut().zip(self.0).for_each(|(to, from)| *to = from.widen());
    }
}

/// Rows of sums, and where they go as 16-bit floats.
struct Rounded<R>(R);

impl<'a, H: Half + 'a, R: Iterator<Item = (&'a [f32], &'a mut [H])>> SimdKernel for Rounded<R> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self) {
        for (sums, row) in self.0 {
            row.iter_mut().zip(sums).for_each(|(to, from)| *to = H::narrow(*from));
        }
    }
}

macro_rules! rounded {
    ($($t:ty, $bf16_dot:literal;)*) => {$(
        impl GemmOutput for $t {
            type Compute = f32;
            const IS_COMPUTE: bool = false;
            const HAS_BF16_DOT: bool = $bf16_dot;

            fn load(row: &[$t], sums: &mut [f32]) {
                level().run(Widened(row, sums));
            }

            fn store_rows<'a>(rows: impl Iterator<Item = (&'a [f32], &'a mut [$t])>) {
                level().run(Rounded(rows));
            }
        }
    )*};
}

rounded!(f16, false; bf16, true;);

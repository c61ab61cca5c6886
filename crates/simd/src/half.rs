//! The two 16-bit floats: conversion to and from `f32`. Tiles hold them as `f32` and compute in that.
//!
//! Rounding is to nearest, half to even; subnormal numbers are kept; a NaN stays one, with its sign
//! and the upper bits of its payload. All by integer operations that vectorize at every level: a
//! loop over the `half` crate's own functions calls one per element.

use bytemuck::Pod;
use half::{bf16, f16};

use super::float::real::select;
use super::map::Map1;
use super::vectorize::Isa;

/// A 16-bit float.
pub trait Half: Pod {
    /// Exactly.
    fn widen(self) -> f32;
    /// To nearest, half to even.
    fn narrow(x: f32) -> Self;
}

impl Half for f16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let size = bits & 0x7fff;
        // As an f32's bits the number is 2^-112 too small, also where it is subnormal.
        let scaled = (f32::from_bits(size << 13) * f32::from_bits(239 << 23)).to_bits();
        // Infinity and NaN; a signalling NaN becomes a quiet one.
        let quiet = select(size > 0x7c00, 0x0040_0000, 0);
        let special = (size << 13) | 0x7f80_0000 | quiet;
        f32::from_bits(select(size >= 0x7c00, special, scaled) | (bits & 0x8000) << 16)
    }
    #[inline(always)]
    fn narrow(x: f32) -> f16 {
        let bits = x.to_bits();
        let size = bits & 0x7fff_ffff;
        // The bias changes by 112; carries run into the exponent and on to infinity.
        let rounded = size.wrapping_add(0xfff + (size >> 13 & 1)).wrapping_sub(112 << 23) >> 13;
        // Below 2^-14: the unit of a number around 1/2 is that of the subnormal numbers.
        let subnormal = (f32::from_bits(size) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
        let nan = 0x7e00 | (size >> 13 & 0x3ff);
        let out = select(size < 0x3880_0000, subnormal, rounded);
        let out = select(size >= 0x4780_0000, 0x7c00, out);
        let out = select(size > 0x7f80_0000, nan, out);
        f16::from_bits((out | (bits >> 16 & 0x8000)) as u16)
    }
}

impl Half for bf16 {
    #[inline(always)]
    fn widen(self) -> f32 {
        let bits = u32::from(self.to_bits());
        let quiet = select(bits & 0x7fff > 0x7f80, 0x0040_0000, 0);
        f32::from_bits(bits << 16 | quiet)
    }
    #[inline(always)]
    fn narrow(x: f32) -> bf16 {
        let bits = x.to_bits();
        let rounded = bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16;
        bf16::from_bits(select(x.is_nan(), bits >> 16 | 0x40, rounded) as u16)
    }
}

/// [`Half::widen`] as a map.
#[derive(Debug)]
pub struct Widen;

impl<H: Half> Map1<H> for Widen {
    type Out = f32;
    #[inline(always)]
    fn apply<I: Isa>(x: H) -> f32 {
        x.widen()
    }
}

/// [`Half::narrow`] as a map.
#[derive(Debug)]
pub struct NarrowMap<H>(std::marker::PhantomData<H>);

impl<H: Half> Map1<f32> for NarrowMap<H> {
    type Out = H;
    #[inline(always)]
    fn apply<I: Isa>(x: f32) -> H {
        H::narrow(x)
    }
}

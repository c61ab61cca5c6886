//! Functions of one number, branch-free, for `f32` and `f64`.
//!
//! Each is an `#[inline(always)]` generic function of an [`Isa`](super::Isa) and a [`MathFloat`]: inside
//! a [`SimdKernel`](super::SimdKernel) LLVM makes vector code of a loop over it. There is no lookup table
//! and no branch on data, so an element costs the same whatever its value and its neighbours.
//!
//! Errors are in units in the last place (ULP) of the exact result. The figures for `f32` are the
//! worst over all 2^32 bit patterns at any level (`tests/machine/accuracy`); those for `f64` over
//! samples. With and without fused multiply-add a result may differ in its last bits.
//!
//! Decision: `docs/decisions/own-float-functions.md`.

mod constants;
pub mod curves;
pub mod erf;
pub mod exp;
pub mod gamma;
mod gamma_single;
pub mod gelu;
pub mod inverse;
pub mod log;
pub mod pow;
pub mod real;
pub mod round;
pub mod sigmoid;
pub mod trig;

pub use erf::erfc;
pub use exp::{cosh, exp, expm1, silu, sinh, tanh};
pub use inverse::{acos, asin, atan, atan2, hypot};
pub use log::{acosh, asinh, atanh, log, log1p, softplus};
pub use real::MathFloat;
pub use round::{ceil, floor, round, rsqrt, sqrt};
pub use trig::{cos, sin, tan};

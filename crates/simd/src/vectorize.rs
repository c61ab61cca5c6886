//! One safe loop, compiled three times and entered by [`Level`].
//!
//! A [`SimdKernel`] is a plain safe loop, generic over a marker [`Isa`]. [`Level::run`] has one function
//! per level that differs in its target features only; the kernel is inlined into each, and LLVM
//! vectorizes it there. A trait and not a macro: a macro would write `unsafe` at every use, while
//! here the two calls below are all there is, for every kernel of the crate.
//!
//! The marker tells the loop what it may use where the *choice* of instructions, not their width,
//! matters: a fused multiply-add is one instruction or a slow library call.

#![allow(unsafe_code, reason = "entering a function that was compiled for a wider vector")]

use super::level::Level;

/// What a loop may rely on. Code that must give the same bits on every machine names [`Plain`]
/// instead of taking the marker that it is handed.
pub trait Isa: Copy + Send + Sync + 'static {
    /// A fused multiply-add is one instruction.
    const FMA: bool;
    /// Rounding to an integral value is one instruction.
    const ROUND: bool;
    /// A loop over elements is worth vectors.
    const VECTORS: bool = true;
    /// An element on its way into a loop's function: of a level without vectors the optimizer takes each for itself.
    #[inline(always)]
    fn element<T>(x: T) -> T {
        if Self::VECTORS { x } else { std::hint::black_box(x) }
    }
}

/// Nothing but IEEE's basic operations.
#[derive(Debug, Clone, Copy)]
pub struct Plain;

/// Fused multiply-add and rounding are instructions.
#[derive(Debug, Clone, Copy)]
pub struct Fused;

impl Isa for Plain {
    const FMA: bool = false;
    const ROUND: bool = false;
}

impl Isa for Fused {
    const FMA: bool = true;
    const ROUND: bool = true;
}

/// A loop with its arguments. `run` must be `#[inline(always)]`, and so must all that it calls in
/// the loop: a function that is not inlined keeps the vectors of the lowest level.
pub trait SimdKernel {
    /// What it returns.
    type Output;
    /// False for a loop that no level has vectors for: it is compiled once.
    const VECTORS: bool = true;
    /// The loop.
    fn run<I: Isa>(self) -> Self::Output;
}

impl Level {
    /// Runs a kernel compiled for this level: one branch, then the loop.
    ///
    /// ```
    /// use tonnage_simd::{Isa, SimdKernel, Level};
    /// struct Halve<'a>(&'a mut [f32]);
    /// impl SimdKernel for Halve<'_> {
    ///     type Output = ();
    ///     #[inline(always)]
    ///     fn run<I: Isa>(self) {
    ///         for x in self.0 {
    ///             *x *= 0.5;
    ///         }
    ///     }
    /// }
    /// for &level in Level::available() {
    ///     let mut x = [3.0; 100];
    ///     level.run(Halve(&mut x));
    ///     assert_eq!(x, [1.5; 100]);
    /// }
    /// ```
    #[inline]
    pub fn run<K: SimdKernel>(self, kernel: K) -> K::Output {
        if const { !K::VECTORS } {
            return kernel.portable();
        }
        match self {
            Level::Portable => kernel.portable(),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: the token in `Avx2` says that `detect` found these features on this machine.
            Level::Avx2(_) => unsafe { kernel.avx2() },
            #[cfg(target_arch = "x86_64")]
            // SAFETY: as above, for `Avx512`.
            Level::Avx512(_) => unsafe { kernel.avx512() },
            #[cfg(not(target_arch = "x86_64"))]
            Level::Avx2(_) | Level::Avx512(_) => kernel.portable(),
        }
    }
}

// AArch64 has the fused multiply-add and the rounding instructions at its base level.
#[cfg(target_arch = "aarch64")]
type Base = Fused;

#[cfg(not(any(target_arch = "aarch64", target_arch = "x86_64")))]
type Base = Plain;

/// x86-64 without AVX2, which processors have had since 2013. Loops go element by element there: vectors of SSE2 have neither a choice
/// between two values nor most integer operations, and would be a sixth of what building the loops takes.
#[cfg(target_arch = "x86_64")]
#[derive(Debug, Clone, Copy)]
struct Base;

#[cfg(target_arch = "x86_64")]
impl Isa for Base {
    const FMA: bool = false;
    const ROUND: bool = false;
    const VECTORS: bool = false;
}

/// A kernel as it is compiled for each level. Methods of the kernel and not functions: the compiler puts a function's
/// instances into the unit of the function, so that all kernels of a crate were one unit, compiled anew whenever one
/// of them changed.
trait Compiled: SimdKernel {
    fn portable(self) -> Self::Output;

    /// # Safety
    ///
    /// The machine has these features.
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx2(self) -> Self::Output;

    /// # Safety
    ///
    /// The machine has these features.
    #[cfg(target_arch = "x86_64")]
    unsafe fn avx512(self) -> Self::Output;
}

impl<K: SimdKernel> Compiled for K {
    #[inline(never)]
    fn portable(self) -> K::Output {
        self.run::<Base>()
    }

    // SAFETY: `Level::run` enters it with the token of `Avx2` alone.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt")]
    unsafe fn avx2(self) -> K::Output {
        self.run::<Fused>()
    }

    // LLVM uses 64-byte vectors here: the preference for 32 bytes belongs to the tuning of some CPU
    // models, and the target is the generic one.
    // SAFETY: `Level::run` enters it with the token of `Avx512` alone.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(
        enable = "avx512f,avx512bw,avx512cd,avx512dq,avx512vl,avx2,fma,f16c,bmi1,bmi2,lzcnt,popcnt"
    )]
    unsafe fn avx512(self) -> K::Output {
        self.run::<Fused>()
    }
}

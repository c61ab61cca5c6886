//! Subnormal numbers as zeros, while products are summed.
//!
//! Gradients that shrink from step to step of a long loop end as numbers too small for a full exponent, and stay such: rounding
//! keeps the smallest one from ever becoming 0. x86-64 takes a hundred times as long for a multiplication of those, unless it is
//! told to read and write them as zeros. Products do that, at every level and on every path, so that bits do not depend on
//! which one is taken. Elementwise ops, of which there are few to an element, keep them.
//!
//! Decision: `docs/decisions/subnormals-are-zero-in-products.md`.

#![allow(unsafe_code, reason = "the register of the float unit is read and written")]

/// While it lives, this thread's vector instructions read subnormal numbers as zeros and write zeros for them. On other
/// machines, which are not slower for them, it does nothing.
pub struct Flushed {
    #[cfg(target_arch = "x86_64")]
    before: u32,
}

impl Flushed {
    /// From here on.
    #[inline(always)]
    pub fn begin() -> Flushed {
        #[cfg(target_arch = "x86_64")]
        {
            let before = read();
            write(before | ZEROS);
            Flushed { before }
        }
        #[cfg(not(target_arch = "x86_64"))]
        Flushed {}
    }
}

#[cfg(target_arch = "x86_64")]
impl Drop for Flushed {
    #[inline(always)]
    fn drop(&mut self) {
        write(self.before);
    }
}

/// Results to zero, inputs as zero: bits 15 and 6 of the register.
#[cfg(target_arch = "x86_64")]
const ZEROS: u32 = 1 << 15 | 1 << 6;

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn read() -> u32 {
    let mut bits = 0u32;
    // SAFETY: the instruction writes these four bytes and nothing else; SSE is part of the architecture.
    unsafe {
        std::arch::asm!("stmxcsr [{}]", in(reg) &raw mut bits, options(nostack, preserves_flags));
    }
    bits
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn write(bits: u32) {
    // SAFETY: the instruction reads these four bytes. The compiler takes it that rounding is as always, and so it is; of
    // subnormal numbers it could only know constants, and what lies between two writes are calls, through pointers, of kernels
    // that compute on memory. An assembly block that may touch memory is not moved across those, nor they across it.
    unsafe {
        std::arch::asm!("ldmxcsr [{}]", in(reg) &raw const bits, options(nostack, preserves_flags));
    }
}

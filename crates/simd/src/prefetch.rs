//! Bringing bytes nearer before they are needed: hints, which change nothing but time.
//!
//! A tile is as long as a page, and the machine's own prefetching stops at a page's end. So while a tile of
//! something large is computed the next one is asked for.

#![allow(unsafe_code, reason = "the instruction is an intrinsic that takes a pointer")]

/// Asks for bytes that are about to be read.
#[inline]
pub fn to_read(bytes: &[u8]) {
    cache_lines::<false>(bytes);
}

/// Asks for bytes that are about to be written.
#[inline]
pub fn to_write(bytes: &[u8]) {
    cache_lines::<true>(bytes);
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn cache_lines<const WRITE: bool>(bytes: &[u8]) {
    use std::arch::x86_64::{_MM_HINT_ET0, _MM_HINT_T0, _mm_prefetch};
    for cache_line in bytes.chunks(64) {
        let at = cache_line.as_ptr().cast::<i8>();
        // SAFETY: a prefetch reads nothing, whatever the pointer; SSE is part of the architecture, and where
        // prefetching to write is unknown it does nothing.
        unsafe {
            match WRITE {
                true => _mm_prefetch::<_MM_HINT_ET0>(at),
                false => _mm_prefetch::<_MM_HINT_T0>(at),
            }
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn cache_lines<const WRITE: bool>(_: &[u8]) {}

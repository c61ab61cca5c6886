//! Writing past the caches: for results that are larger than those are, so that nothing of them would be there when
//! they are read.
//!
//! A plain store reads a line before it changes it. Of a line that is overwritten as a whole, that is a third of all
//! traffic of a pass from one array to another; streaming stores do without. Where caches do hold the result they lose:
//! the next reader has to go to memory.
//!
//! Decision: `docs/decisions/streaming-stores.md`.

#![allow(unsafe_code, reason = "the instructions are intrinsics that take a pointer")]

use std::marker::PhantomData;

/// Copies bytes past the caches. Only [`streaming`] makes one.
pub struct NonTemporalCopy<'a>(PhantomData<&'a mut [u8]>);

/// Runs `f`, and ends when what it streamed is as visible to other threads as what it stored.
///
/// ```
/// use tonnage_simd::stream::streaming;
/// let mut far = [0; 100];
/// streaming(|stream| stream.copy(&mut far, &[7; 100]));
/// assert_eq!(far, [7; 100]);
/// ```
pub fn streaming<'a, R>(f: impl FnOnce(&NonTemporalCopy<'a>) -> R) -> R {
    // Dropped where `f` panics, too.
    let stream = NonTemporalCopy(PhantomData);
    f(&stream)
}

impl Drop for NonTemporalCopy<'_> {
    fn drop(&mut self) {
        #[cfg(target_arch = "x86_64")]
        // SAFETY: a fence touches nothing, and SSE is part of the architecture. Streamed bytes are in no order with
        // anything, locks included, up to here.
        unsafe {
            std::arch::x86_64::_mm_sfence();
        }
    }
}

impl<'a> NonTemporalCopy<'a> {
    /// Copies as much as both have. Nobody can read `to` before [`streaming`] has ended: it is borrowed for longer.
    #[inline]
    pub fn copy(&self, to: &'a mut [u8], from: &[u8]) {
        let len = to.len().min(from.len());
        let (to, from) = (&mut to[..len], &from[..len]);
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};
            const VECTOR: usize = size_of::<__m128i>();
            let head = to.as_ptr().align_offset(VECTOR).min(len);
            let (first, rest) = to.split_at_mut(head);
            first.copy_from_slice(&from[..head]);
            let (whole, last) = rest.as_chunks_mut::<VECTOR>();
            let (vectors, tail) = from[head..].as_chunks::<VECTOR>();
            for (to, from) in whole.iter_mut().zip(vectors) {
                // SAFETY: both are 16 bytes, and `to` lies at a multiple of 16: it starts at one. SSE2 is part of the
                // architecture. `to` is borrowed for `'a`, which ends after the fence of `drop`.
                unsafe {
                    let value = _mm_loadu_si128(from.as_ptr().cast());
                    _mm_stream_si128(to.as_mut_ptr().cast(), value);
                }
            }
            last.copy_from_slice(tail);
        }
        #[cfg(not(target_arch = "x86_64"))]
        to.copy_from_slice(from);
    }
}

//! Blocks from Rust's own allocator: small ones everywhere, all of them where pages cannot be mapped.
//!
//! The allocator is asked for its own alignment and a line more, and the block starts on the first line
//! behind it: asking for aligned bytes takes common allocators off their fast path, which shows in every
//! small op. What lies before the block says where the allocation starts. Large blocks start on a page
//! here too, so that a range of one starts where a plan says; they are asked for as they are.
#![allow(unsafe_code, reason = "asks the allocator for raw bytes")]

use std::alloc::{self, Layout};
use std::ptr::NonNull;

use tonnage_core::bytes::{ALIGN, LARGE, PAGE};

/// What every allocator gives without being asked.
const OWN: usize = 16;

fn is_large(len: usize) -> bool {
    len as u64 >= LARGE
}

fn layout(len: usize) -> Option<Layout> {
    match is_large(len) {
        true => Layout::from_size_align(len, PAGE as usize).ok(),
        false => Layout::from_size_align(len + ALIGN, OWN).ok(),
    }
}

/// That many bytes, zeroed and aligned to a cache line.
#[inline]
pub(super) fn obtain(len: usize) -> Option<NonNull<u8>> {
    let layout = layout(len)?;
    if is_large(len) {
        // SAFETY: the layout's size is not zero.
        return NonNull::new(unsafe { alloc::alloc_zeroed(layout) });
    }
    // SAFETY: the layout has at least a line.
    let start = NonNull::new(unsafe { alloc::alloc(layout) })?;
    let gap = ALIGN - start.addr().get() % ALIGN;
    // SAFETY: the gap is 16 to 64 bytes, and the allocation has a cache line more than `len`; so the block
    // lies in it, and so does the pointer in front of the block, which is aligned to 8.
    unsafe {
        let block = start.add(gap);
        block.cast::<NonNull<u8>>().sub(1).write(start);
        block.write_bytes(0, len);
        Some(block)
    }
}

/// Gives them back.
///
/// # Safety
/// They were got by [`obtain`] with this length, and nobody uses them any more.
#[inline]
pub(super) unsafe fn free(block: NonNull<u8>, len: usize) {
    let Some(layout) = layout(len) else { return };
    if is_large(len) {
        // SAFETY: got with this layout, which is a function of `len` alone.
        return unsafe { alloc::dealloc(block.as_ptr(), layout) };
    }
    // SAFETY: `obtain` wrote the start of the allocation in front of the block, and got it with this
    // layout.
    unsafe {
        let start = block.cast::<NonNull<u8>>().sub(1).read();
        alloc::dealloc(start.as_ptr(), layout);
    }
}

//! Blocks from Rust's own allocator: every small block on every system, and large ones where pages
//! cannot be mapped. Such a block goes back whole or not at all.
#![allow(unsafe_code, reason = "asks the allocator for raw bytes")]

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::ptr::NonNull;

use tonnage_core::bytes::{ALIGN, LARGE, PAGE};

/// Large blocks start on a page here too, so that a range of one starts where a plan says.
fn layout(len: usize) -> Option<Layout> {
    let align = if len as u64 >= LARGE { PAGE as usize } else { ALIGN };
    Layout::from_size_align(len, align).ok().filter(|layout| layout.size() > 0)
}

/// So many zeroed bytes; `None` where the allocator has none, and for no bytes at all.
#[inline]
pub(super) fn obtain(len: usize) -> Option<NonNull<u8>> {
    let layout = layout(len)?;
    // SAFETY: the layout's size is not zero.
    NonNull::new(unsafe { alloc_zeroed(layout) })
}

/// Gives back what [`obtain`] gave.
///
/// # Safety
/// `ptr` came from [`obtain`] with the same `len`, was not freed since, and nobody reads it any more.
pub(super) unsafe fn free(ptr: NonNull<u8>, len: usize) {
    if let Some(layout) = layout(len) {
        // SAFETY: the caller vouches for the pointer; the layout is a function of `len` alone.
        unsafe { dealloc(ptr.as_ptr(), layout) }
    }
}

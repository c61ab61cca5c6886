//! Pages mapped from the system: zeroed, counted by the page, and given back by the page.
#![allow(unsafe_code, reason = "calls the system's mmap and munmap")]

use std::ptr::{self, NonNull};
use std::sync::OnceLock;

use tonnage_core::Bytes;
use tonnage_core::bytes::PAGE;

/// A huge page. From one on the system is asked for them.
#[cfg(target_os = "linux")]
const HUGE: usize = 2 << 20;

/// Maps that many zeroed bytes, or `None` where the system refuses. Pages become resident when they are
/// first touched.
pub(super) fn map(len: usize) -> Option<NonNull<u8>> {
    // Measured on 256 MiB: the first touch takes 60 ms instead of 175, giving back 0.6 instead of 14,
    // and the resident size is the same, also after a part of it went back. (The kernel keeps a huge
    // page that was cut until it runs short: at most one at each end of what is retained.)
    #[cfg(target_os = "linux")]
    if len >= HUGE {
        let at = huge(len).or_else(|| pages(len))?;
        // SAFETY: advice on the pages just mapped; the answer does not matter.
        unsafe { libc::madvise(at.as_ptr().cast(), len, libc::MADV_HUGEPAGE) };
        return Some(at);
    }
    pages(len)
}

/// Pages that start where a huge page can: the system would place them anywhere, and then what lies at their ends has
/// small pages, which fall on each other in caches by chance. `None` where the ends cannot go back, or a limit leaves no room
/// for them meanwhile.
#[cfg(target_os = "linux")]
fn huge(len: usize) -> Option<NonNull<u8>> {
    if !page_by_page() {
        return None;
    }
    let whole = pages(len.checked_add(HUGE)?)?;
    let before = whole.as_ptr().align_offset(HUGE);
    // SAFETY: the parts lie in the mapping and nobody has them yet.
    unsafe {
        let at = whole.add(before);
        if before > 0 {
            unmap(whole, before);
        }
        if before < HUGE {
            unmap(at.add(len), HUGE - before);
        }
        Some(at)
    }
}

fn pages(len: usize) -> Option<NonNull<u8>> {
    let protection = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANON;
    // SAFETY: a new private anonymous mapping at an address of the system's choice touches nothing
    // that exists.
    let at = unsafe { libc::mmap(ptr::null_mut(), len, protection, flags, -1, 0) };
    if at == libc::MAP_FAILED {
        return None;
    }
    NonNull::new(at.cast())
}

/// Gives pages back, all or part of what [`map`] gave.
///
/// # Safety
/// The range lies in a mapping of [`map`], starts on a page, and nobody reads it any more.
pub(super) unsafe fn unmap(ptr: NonNull<u8>, len: usize) {
    // SAFETY: the caller vouches for the range.
    let refused = unsafe { libc::munmap(ptr.as_ptr().cast(), len) } != 0;
    if refused {
        // Cutting a mapping in two can fail where the process has its full number of mappings. The
        // memory is given back all the same; what stays is a range of addresses.
        // SAFETY: as above; the bytes may be lost.
        unsafe { libc::madvise(ptr.as_ptr().cast(), len, libc::MADV_DONTNEED) };
    }
}

/// Gives pages back that stay mapped: they are zeros when they are touched next. `false` where the system has no such call.
///
/// # Safety
/// The range lies in a mapping of [`map`], starts on a page, and nobody else reads it meanwhile.
pub(super) unsafe fn discard(ptr: NonNull<u8>, len: usize) -> bool {
    // Elsewhere the bytes may stay for as long as nobody else wants memory.
    #[cfg(target_os = "linux")]
    // SAFETY: the caller vouches for the range; its bytes are zeros then.
    return unsafe { libc::madvise(ptr.as_ptr().cast(), len, libc::MADV_DONTNEED) } == 0;
    #[cfg(not(target_os = "linux"))]
    {
        let _ = (ptr, len);
        false
    }
}

/// Can one page of ours go back alone? Not where the system's pages are larger than ours.
pub(super) fn page_by_page() -> bool {
    static ANSWER: OnceLock<bool> = OnceLock::new();
    *ANSWER.get_or_init(|| page_size().is_some_and(|page| PAGE.is_multiple_of(page)))
}

/// The system's own page.
pub(super) fn page_size() -> Option<u64> {
    constant(libc::_SC_PAGESIZE)
}

/// What the machine has.
pub(super) fn physical_memory() -> Option<Bytes> {
    Bytes::new(constant(libc::_SC_PHYS_PAGES)?).checked_mul(page_size()?)
}

fn constant(name: libc::c_int) -> Option<u64> {
    // SAFETY: reads a constant of the system.
    let value = unsafe { libc::sysconf(name) };
    u64::try_from(value).ok().filter(|value| *value > 0)
}

/// Free pages of the C allocator go back to the system.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
pub(super) fn trim() {
    // SAFETY: takes no pointer; what is allocated stays.
    unsafe { libc::malloc_trim(0) };
}

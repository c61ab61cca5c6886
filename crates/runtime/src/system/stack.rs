//! How much of its stack a thread has left. A stack that overflows ends the process, so what calls back into the program
//! asks before it does. Where the system does not say how large stacks are, they never count as low.
#![allow(unsafe_code, reason = "asks the system where a thread's stack lies")]

use std::ops::Range;

/// What a call may need before it asks again: tracing, planning and running a function.
const RESERVE: usize = 1 << 20;

thread_local! {
    /// The addresses of this thread's stack.
    static STACK: Option<Range<usize>> = addresses();
}

/// Whether less of this thread's stack is left than a call may need: 1 MiB, or an eighth of a small stack.
pub fn is_stack_low() -> bool {
    let here = 0u8;
    let here = (&raw const here).addr();
    STACK.with(|stack| match stack {
        Some(stack) => here.saturating_sub(stack.start) < RESERVE.min(stack.len() / 8),
        None => false,
    })
}

#[cfg(target_os = "linux")]
fn addresses() -> Option<Range<usize>> {
    let (mut low, mut size) = (std::ptr::null_mut(), 0);
    // SAFETY: the attributes are filled in by the first call, read by the second and given back by the third; each gets
    // pointers to locals that outlive it.
    let known = unsafe {
        let mut attributes: libc::pthread_attr_t = std::mem::zeroed();
        if libc::pthread_getattr_np(libc::pthread_self(), &raw mut attributes) != 0 {
            return None;
        }
        let known = libc::pthread_attr_getstack(&raw const attributes, &raw mut low, &raw mut size);
        libc::pthread_attr_destroy(&raw mut attributes);
        known
    };
    (known == 0).then(|| low.addr()..low.addr().saturating_add(size))
}

#[cfg(target_vendor = "apple")]
fn addresses() -> Option<Range<usize>> {
    // SAFETY: both ask for a number of the calling thread and touch nothing.
    let (high, size) = unsafe {
        let own = libc::pthread_self();
        (libc::pthread_get_stackaddr_np(own).addr(), libc::pthread_get_stacksize_np(own))
    };
    Some(high.saturating_sub(size)..high)
}

#[cfg(not(any(target_os = "linux", target_vendor = "apple")))]
fn addresses() -> Option<Range<usize>> {
    None
}

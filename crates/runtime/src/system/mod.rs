//! The one place that gets memory, and gives it back: from the system, or from a device ([`Memory`]).
//!
//! A `MemoryBlock` is an address, a length and the memory that it is of. It owns its bytes alone, always initialized: zeroed, or what
//! an earlier owner left. Only blocks of host memory give slices. There, blocks of `LARGE` bytes and more are pages of their own, mapped and unmapped, so that
//! the resident size falls when they are dropped; a range of one can go back alone. Smaller ones come
//! from the allocator. Where pages cannot be mapped, `Backing::Plain` serves all, without partial
//! release. The rest of the crate builds on `MemoryBlock` in safe code.
#![allow(unsafe_code, reason = "owns raw memory from the system")]

pub(crate) mod cores;
mod figures;
mod files;
mod folders;
#[cfg(unix)]
mod mapping;
mod memory;
mod plain;
mod stack;
#[cfg(unix)]
mod unix;

use std::mem;
use std::num::NonZero;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use tonnage_core::Bytes;
use tonnage_core::bytes::ALIGN;
#[cfg(unix)]
use tonnage_core::bytes::{LARGE, PAGE};

pub use figures::{available_memory, group_limit, machine_memory, process_name, resident};
pub use files::open_to_write;
#[cfg(unix)]
pub use files::{read_ahead, read_at};
pub(crate) use files::{reserve, write_at};
pub use folders::cache_folder;
#[cfg(unix)]
pub use mapping::Mapping;
pub use memory::{HostPin, Memory};
pub use stack::is_stack_low;

/// How large blocks are got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Backing {
    /// Mapped from the system.
    #[cfg(unix)]
    Pages,
    /// From Rust's allocator.
    #[cfg_attr(unix, allow(dead_code, reason = "only tests take it where pages can be mapped"))]
    Plain,
}

impl Backing {
    /// The best that this system has.
    #[cfg(unix)]
    pub(crate) const NATIVE: Backing = Backing::Pages;
    /// The best that this system has.
    #[cfg(not(unix))]
    pub(crate) const NATIVE: Backing = Backing::Plain;
}

/// Bytes that are owned alone. Dropping it gives them back to the system.
#[derive(Debug)]
pub(crate) struct MemoryBlock {
    ptr: NonNull<u8>,
    len: usize,
    hold: Hold,
}

/// A device's memory behind a pointer of one word: a block is moved for every buffer of the host too, and stays as small as it was
/// without devices.
#[derive(Debug)]
pub(crate) struct DeviceMemory(pub(crate) Arc<dyn Memory>);

#[derive(Debug)]
enum Hold {
    /// No bytes, or bytes that have moved on.
    Nothing,
    /// From the allocator.
    Heap,
    /// Mapped pages.
    #[cfg(unix)]
    Mapped,
    /// Mapped pages that a device copies at full speed.
    #[cfg(unix)]
    Pinned { _pin: Box<Pin> },
    /// A range of a block that can only go back whole, which it does with its last part.
    Part { _whole: Arc<MemoryBlock> },
    /// A device's.
    Device(Arc<DeviceMemory>),
    /// A range of a device's block, which goes back whole.
    DevicePart { whole: Arc<MemoryBlock> },
}

/// What keeps pages where they are, behind a pointer of one word, as above.
#[cfg(unix)]
#[derive(Debug)]
struct Pin {
    _of: Box<dyn HostPin>,
}

// SAFETY: a block owns its bytes alone, as a boxed slice would.
unsafe impl Send for MemoryBlock {}
// SAFETY: `&MemoryBlock` gives `&[u8]` and nothing else.
unsafe impl Sync for MemoryBlock {}

impl Default for MemoryBlock {
    /// No bytes, aligned like any other block.
    fn default() -> MemoryBlock {
        let align = NonZero::new(ALIGN).unwrap_or(NonZero::<usize>::MIN);
        MemoryBlock { ptr: NonNull::without_provenance(align), len: 0, hold: Hold::Nothing }
    }
}

impl MemoryBlock {
    /// That many bytes, rounded as all buffers are; `None` where the system refuses.
    #[inline]
    pub(crate) fn obtain(backing: Backing, bytes: Bytes) -> Option<MemoryBlock> {
        let bytes = bytes.rounded();
        if bytes.is_zero() {
            return Some(MemoryBlock::default());
        }
        let len = usize::try_from(bytes.get()).ok()?;
        #[cfg(unix)]
        if bytes.get() >= LARGE && backing == Backing::Pages {
            return Some(MemoryBlock { ptr: unix::map(len)?, len, hold: Hold::Mapped });
        }
        let _ = backing;
        Some(MemoryBlock { ptr: plain::obtain(len)?, len, hold: Hold::Heap })
    }

    /// That many bytes of a device's memory; `None` where it refuses.
    pub(crate) fn obtain_from(memory: &Arc<DeviceMemory>, bytes: Bytes) -> Option<MemoryBlock> {
        if bytes.is_zero() {
            return Some(MemoryBlock::default());
        }
        let len = usize::try_from(memory.0.block(bytes).get()).ok()?;
        let ptr = NonNull::without_provenance(memory.0.obtain(len)?);
        Some(MemoryBlock { ptr, len, hold: Hold::Device(memory.clone()) })
    }

    /// How many bytes.
    pub(crate) fn len(&self) -> usize {
        self.len
    }

    /// Where they start, in the addresses of their memory.
    pub(crate) fn address(&self) -> usize {
        self.ptr.addr().get()
    }

    /// Where they start, for whoever makes slices of addresses; none of a device's.
    pub(crate) fn expose(&self) -> Option<usize> {
        self.is_host().then(|| self.ptr.as_ptr().expose_provenance())
    }

    /// The device's memory that it is of; none for host memory.
    pub(crate) fn memory(&self) -> Option<&dyn Memory> {
        match &self.hold {
            Hold::Device(memory) => Some(&*memory.0),
            Hold::DevicePart { whole } => whole.memory(),
            Hold::Nothing | Hold::Heap | Hold::Part { .. } => None,
            #[cfg(unix)]
            Hold::Mapped | Hold::Pinned { .. } => None,
        }
    }

    /// Whether it is of host memory.
    #[inline]
    pub(crate) fn is_host(&self) -> bool {
        !matches!(self.hold, Hold::Device(_) | Hold::DevicePart { .. })
    }

    /// Whether a device copies its bytes at full speed.
    pub(crate) fn is_pinned(&self) -> bool {
        match self.hold {
            #[cfg(unix)]
            Hold::Pinned { .. } => true,
            _ => false,
        }
    }

    /// Pins its pages, where it has pages of its own, until they go back to the system: whoever has them next copies at full speed too.
    /// What is refused is copied all the same, by way of the driver's memory.
    pub(crate) fn pin(&mut self, pin: impl FnOnce(&mut [u8]) -> Option<Box<dyn HostPin>>) {
        #[cfg(unix)]
        if matches!(self.hold, Hold::Mapped)
            && let Some(pinned) = self.bytes_mut().and_then(pin)
        {
            self.hold = Hold::Pinned { _pin: Box::new(Pin { _of: pinned }) };
        }
        #[cfg(not(unix))]
        let _ = pin;
    }

    /// True where the bytes go back to the system only with those of its neighbours.
    pub(crate) fn is_part(&self) -> bool {
        matches!(self.hold, Hold::Part { .. } | Hold::DevicePart { .. })
    }

    /// The bytes; none of a device's.
    #[inline]
    pub(crate) fn bytes(&self) -> Option<&[u8]> {
        // SAFETY: a block of host memory owns `len` initialized bytes at `ptr`, borrowed as long as it is.
        self.is_host().then(|| unsafe { slice::from_raw_parts(self.ptr.as_ptr(), self.len) })
    }

    /// The bytes, to write; none of a device's.
    #[inline]
    pub(crate) fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        // SAFETY: as in `bytes`; the block is borrowed mutably and owns its bytes alone.
        self.is_host().then(|| unsafe { slice::from_raw_parts_mut(self.ptr.as_ptr(), self.len) })
    }

    /// Gives a range of whole pages back to the system, which reads as zeros from then on and is taken again page by page as it is
    /// written; `false` where that cannot be.
    pub(crate) fn give_back(&mut self, range: std::ops::Range<usize>) -> bool {
        #[cfg(unix)]
        if let Hold::Mapped = self.hold {
            let whole = [range.start, range.end].iter().all(|at| at.is_multiple_of(PAGE as usize));
            let inside = range.start < range.end && range.end <= self.len;
            // SAFETY: the range is inside of pages that the block owns, and it is borrowed mutably.
            return whole
                && inside
                && unix::page_by_page()
                && unsafe { unix::discard(self.ptr.add(range.start), range.len()) };
        }
        let _ = range;
        false
    }

    /// Two blocks for one, the first of `at` bytes (at most all). Mapped pages are then free of each
    /// other where `at` is a whole number of pages; otherwise both are parts.
    pub(crate) fn split(mut self, at: usize) -> (MemoryBlock, MemoryBlock) {
        let at = at.min(self.len);
        if at == 0 {
            return (MemoryBlock::default(), self);
        }
        if at == self.len {
            return (self, MemoryBlock::default());
        }
        let (ptr, len) = (self.ptr, self.len);
        // An address, not a pointer that is followed: of a device's memory there is none. It is not 0, since the block's is not.
        let tail = NonNull::new(ptr.as_ptr().wrapping_add(at)).unwrap_or(ptr);
        let holds = match mem::replace(&mut self.hold, Hold::Nothing).without_pin() {
            #[cfg(unix)]
            Hold::Mapped if unix::page_by_page() && at.is_multiple_of(PAGE as usize) => {
                (Hold::Mapped, Hold::Mapped)
            }
            Hold::Part { _whole } => {
                (Hold::Part { _whole: Arc::clone(&_whole) }, Hold::Part { _whole })
            }
            hold @ Hold::Device(_) => {
                let whole = Arc::new(MemoryBlock { ptr, len, hold });
                (Hold::DevicePart { whole: Arc::clone(&whole) }, Hold::DevicePart { whole })
            }
            Hold::DevicePart { whole } => {
                (Hold::DevicePart { whole: Arc::clone(&whole) }, Hold::DevicePart { whole })
            }
            hold => {
                let _whole = Arc::new(MemoryBlock { ptr, len, hold });
                (Hold::Part { _whole: Arc::clone(&_whole) }, Hold::Part { _whole })
            }
        };
        (
            MemoryBlock { ptr, len: at, hold: holds.0 },
            MemoryBlock { ptr: tail, len: len - at, hold: holds.1 },
        )
    }
}

impl Hold {
    /// The same, of pages that nobody pins.
    fn without_pin(self) -> Hold {
        match self {
            #[cfg(unix)]
            Hold::Pinned { .. } => Hold::Mapped,
            other => other,
        }
    }
}

impl Drop for MemoryBlock {
    #[inline]
    fn drop(&mut self) {
        match &self.hold {
            Hold::Nothing | Hold::Part { .. } | Hold::DevicePart { .. } => {}
            Hold::Device(memory) => memory.0.release(self.ptr.addr(), self.len),
            // SAFETY: the block owns the bytes, got with this very length: heap blocks are never cut
            // but as parts.
            Hold::Heap => unsafe { plain::free(self.ptr, self.len) },
            // SAFETY: the block owns these pages; a cut happens at whole pages.
            #[cfg(unix)]
            Hold::Mapped => unsafe { unix::unmap(self.ptr, self.len) },
            #[cfg(unix)]
            Hold::Pinned { .. } => {
                self.hold = mem::replace(&mut self.hold, Hold::Nothing).without_pin();
                // SAFETY: as above; nobody pins them any more.
                unsafe { unix::unmap(self.ptr, self.len) }
            }
        }
    }
}

/// Asks the allocator of small things to give free pages back to the system, where it can be asked.
pub fn give_back_heap() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    unix::trim();
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonnage_core::bytes::{LARGE, PAGE};

    const BACKINGS: &[Backing] = &[Backing::NATIVE, Backing::Plain];

    #[test]
    fn blocks_are_zeroed_aligned_and_rounded() {
        for backing in BACKINGS {
            for asked in [1, 64, 65, 4096, LARGE - 1, LARGE, LARGE + 1, 5_000_000] {
                let mut block = MemoryBlock::obtain(*backing, Bytes::new(asked)).unwrap();
                assert_eq!(Bytes::of(block.len()), Bytes::new(asked).rounded());
                assert!(block.bytes().unwrap().iter().all(|byte| *byte == 0));
                let align = if block.len() as u64 >= LARGE { PAGE as usize } else { ALIGN };
                assert!(block.bytes().unwrap().as_ptr().addr().is_multiple_of(align));
                block.bytes_mut().unwrap().fill(1);
            }
        }
    }

    #[test]
    fn no_bytes_take_nothing_and_more_than_there_is_is_refused() {
        for backing in BACKINGS {
            let block = MemoryBlock::obtain(*backing, Bytes::ZERO).unwrap();
            assert!(block.bytes().unwrap().is_empty());
            assert!(block.bytes().unwrap().as_ptr().addr().is_multiple_of(ALIGN));
            assert!(MemoryBlock::obtain(*backing, Bytes::new(u64::MAX)).is_none());
            assert!(MemoryBlock::obtain(*backing, Bytes::new(1 << 62)).is_none());
        }
    }

    #[test]
    fn the_parts_of_a_block_outlive_each_other() {
        for backing in BACKINGS {
            for at in [4096, 40_960, 81_920 - 4096] {
                for first_goes in [true, false] {
                    let mut block = MemoryBlock::obtain(*backing, Bytes::new(81_920)).unwrap();
                    block.bytes_mut().unwrap()[..at].fill(1);
                    block.bytes_mut().unwrap()[at..].fill(2);
                    let (first, second) = block.split(at);
                    assert_eq!((first.len(), second.len()), (at, 81_920 - at));
                    let (mut stays, byte) = if first_goes { (second, 2) } else { (first, 1) };
                    assert!(stays.bytes().unwrap().iter().all(|b| *b == byte));
                    stays.bytes_mut().unwrap().fill(3);
                }
            }
        }
    }

    #[test]
    fn a_cut_that_is_no_page_makes_parts_of_one_whole() {
        for backing in BACKINGS {
            let block = MemoryBlock::obtain(*backing, Bytes::new(81_920)).unwrap();
            let (first, second) = block.split(1000);
            assert!(first.is_part() && second.is_part());
            let (mut left, mut right) = second.split(50_000);
            drop(first);
            left.bytes_mut().unwrap().fill(1);
            right.bytes_mut().unwrap().fill(2);
            assert!(left.bytes().unwrap().iter().all(|b| *b == 1));
        }
    }
}

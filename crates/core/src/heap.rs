//! What a value takes on the heap: how graphs and plans count their own bytes.
//!
//! Figures are bytes asked of the allocator, to the byte where the standard library tells its capacities
//! and never less where it does not. What several share (an `Arc`) is counted once, by whoever is asked
//! first with the same [`Seen`].
//!
//! Decision: `docs/decisions/graphs-are-counted-apart.md`.

use std::collections::HashSet;
use std::sync::Arc;

use smallvec::{Array, SmallVec};

/// What was counted already.
#[derive(Debug, Default)]
pub struct Seen(HashSet<usize>);

impl Seen {
    /// Whether something shared is new here; from now on it is not.
    pub fn is_new<T: ?Sized>(&mut self, shared: &Arc<T>) -> bool {
        self.0.insert(Arc::as_ptr(shared) as *const () as usize)
    }
}

/// The counts in front of what is shared.
pub(crate) const COUNTS: usize = 2 * size_of::<usize>();

/// Something that may own memory on the heap.
pub trait Heap {
    /// Bytes on the heap that it owns; its own size is its holder's.
    fn heap(&self, seen: &mut Seen) -> usize;
}

impl<T: Heap> Heap for Vec<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.capacity() * size_of::<T>() + self.iter().map(|item| item.heap(seen)).sum::<usize>()
    }
}

impl<A: Array> Heap for SmallVec<A>
where
    A::Item: Heap,
{
    fn heap(&self, seen: &mut Seen) -> usize {
        let own = if self.spilled() { self.capacity() * size_of::<A::Item>() } else { 0 };
        own + self.iter().map(|item| item.heap(seen)).sum::<usize>()
    }
}

impl<T: Heap> Heap for Box<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        size_of::<T>() + (**self).heap(seen)
    }
}

impl<T: Heap + ?Sized> Heap for Arc<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        match seen.is_new(self) {
            true => {
                let own = COUNTS + size_of_val(&**self);
                own.next_multiple_of(size_of::<usize>()) + (**self).heap(seen)
            }
            false => 0,
        }
    }
}

impl<T: Heap> Heap for Option<T> {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.as_ref().map_or(0, |inner| inner.heap(seen))
    }
}

impl<A: Heap, B: Heap> Heap for (A, B) {
    fn heap(&self, seen: &mut Seen) -> usize {
        self.0.heap(seen) + self.1.heap(seen)
    }
}

macro_rules! nothing {
    ($($T:ty),*) => {$(
        impl $crate::heap::Heap for $T {
            fn heap(&self, _: &mut $crate::heap::Seen) -> usize {
                0
            }
        }
    )*};
}

nothing!(bool, u16, u64, usize, isize, str);
pub(crate) use nothing;

//! Small blocks in pages of the driver: what is obtained is counted in whole pages, and a small tensor costs no call of the driver.
//!
//! A block goes to the first place that is large enough, in the order of addresses, so that pages at the end become empty. One empty page
//! stays: a loop that makes and drops one small tensor asks the driver once.

use std::collections::BTreeMap;
use std::num::NonZero;
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError};

use tonnage_core::Bytes;

use crate::target::{PAGE, SMALL};

/// Pages by their addresses, each with its free places.
#[derive(Debug, Default)]
pub struct Slots {
    pages: Mutex<BTreeMap<usize, FreePlaces>>,
}

/// Free places of a page as offsets, in order; no two touch.
#[derive(Debug)]
struct FreePlaces(Vec<Range<usize>>);

const PAGE_LEN: usize = PAGE as usize;

impl FreePlaces {
    fn bytes(&self) -> usize {
        self.0.iter().map(ExactSizeIterator::len).sum()
    }

    fn is_empty_page(&self) -> bool {
        self.bytes() == PAGE_LEN
    }

    /// Takes the front of the first place that is large enough.
    fn take(&mut self, len: usize) -> Option<usize> {
        let at = self.0.iter().position(|place| place.len() >= len)?;
        let start = self.0[at].start;
        self.0[at].start += len;
        if self.0[at].is_empty() {
            self.0.remove(at);
        }
        Some(start)
    }

    /// Frees a place, and joins it with those that it touches.
    fn put(&mut self, place: Range<usize>) {
        let at = self.0.partition_point(|other| other.end <= place.start);
        self.0.insert(at, place);
        if at + 1 < self.0.len() && self.0[at].end == self.0[at + 1].start {
            self.0[at].end = self.0.remove(at + 1).end;
        }
        if at > 0 && self.0[at - 1].end == self.0[at].start {
            self.0[at - 1].end = self.0.remove(at).end;
        }
    }
}

impl Slots {
    /// Whether a block of that length lies in a page with others.
    pub fn holds(len: usize) -> bool {
        (len as u64) < SMALL
    }

    /// A place for a small block; `page` obtains a page where none has room.
    pub fn obtain(
        &self,
        len: usize,
        page: impl FnOnce() -> Option<NonZero<usize>>,
    ) -> Option<NonZero<usize>> {
        let mut pages = self.lock();
        for (page, places) in pages.iter_mut() {
            if let Some(at) = places.take(len) {
                return NonZero::new(page + at);
            }
        }
        let page = page()?;
        let mut places = FreePlaces(Vec::new());
        places.put(len..PAGE_LEN);
        pages.insert(page.get(), places);
        Some(page)
    }

    /// Frees a place; says which page is to be given back, if one is.
    pub fn release(&self, address: NonZero<usize>, len: usize) -> Option<NonZero<usize>> {
        let mut pages = self.lock();
        let (page, places) = pages.range_mut(..=address.get()).next_back()?;
        let at = address.get() - page;
        places.put(at..at + len);
        if !places.is_empty_page() {
            return None;
        }
        // The last of two empty pages goes.
        let empty = pages.iter().filter(|(_, places)| places.is_empty_page());
        let empty: Vec<usize> = empty.map(|(page, _)| *page).collect();
        match empty[..] {
            [_, .., last] => {
                pages.remove(&last);
                NonZero::new(last)
            }
            _ => None,
        }
    }

    /// What its pages have that no block takes.
    pub fn idle(&self) -> Bytes {
        Bytes::of(self.lock().values().map(FreePlaces::bytes).sum())
    }

    /// Forgets the page that is empty, which is to be given back.
    pub fn give_up(&self) -> Option<NonZero<usize>> {
        let mut pages = self.lock();
        let page = *pages.iter().find(|(_, places)| places.is_empty_page())?.0;
        pages.remove(&page);
        NonZero::new(page)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<usize, FreePlaces>> {
        // Nothing between two writes that belong together panics.
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::target::block;

    /// A driver that counts its pages.
    #[derive(Default)]
    struct Driver {
        next: usize,
        pages: Vec<usize>,
    }

    impl Driver {
        fn page(&mut self) -> Option<NonZero<usize>> {
            self.next += 3 * PAGE_LEN;
            self.pages.push(self.next);
            NonZero::new(self.next)
        }

        fn give_back(&mut self, page: Option<NonZero<usize>>) {
            if let Some(page) = page {
                let at = self.pages.iter().position(|other| *other == page.get());
                self.pages.swap_remove(at.expect("a page that was obtained"));
            }
        }
    }

    #[test]
    fn blocks_never_overlap_and_every_byte_of_a_page_is_counted() {
        let (slots, mut driver) = (Slots::default(), Driver::default());
        let mut held: Vec<(usize, usize)> = Vec::new();
        let mut state = 1u64;
        let mut draw = |below: usize| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize % below
        };
        for round in 0..4000 {
            // Grows for a while, then shrinks.
            if draw(100) < if round < 2000 { 65 } else { 35 } || held.is_empty() {
                let asked = if draw(4) == 0 { draw(SMALL as usize - 512) } else { draw(9000) };
                let len = block(Bytes::of(asked + 1)).as_usize();
                assert!(Slots::holds(len));
                let at = slots.obtain(len, || driver.page()).expect("room").get();
                let page =
                    driver.pages.iter().find(|page| (**page..**page + PAGE_LEN).contains(&at));
                assert!(page.is_some_and(|page| at + len <= page + PAGE_LEN));
                assert!(held.iter().all(|(other, l)| at + len <= *other || other + l <= at));
                held.push((at, len));
            } else {
                let (at, len) = held.swap_remove(draw(held.len()));
                let page = slots.release(NonZero::new(at).expect("an address"), len);
                driver.give_back(page);
            }
            let taken: usize = held.iter().map(|(_, len)| len).sum();
            assert_eq!(driver.pages.len() * PAGE_LEN, taken + slots.idle().as_usize());
        }
        for (at, len) in held {
            driver.give_back(slots.release(NonZero::new(at).expect("an address"), len));
        }
        // One page stays warm until it is given up.
        assert_eq!(driver.pages.len(), 1);
        driver.give_back(slots.give_up());
        assert_eq!((driver.pages.len(), slots.idle(), slots.give_up()), (0, Bytes::ZERO, None));
    }

    #[test]
    fn a_block_is_in_slots_or_a_whole_number_of_pages() {
        let around = |at: u64| at - 600..at + 600;
        for bytes in around(SMALL).chain(around(PAGE)).chain(1..1200) {
            let len = block(Bytes::new(bytes)).as_usize();
            assert!(len as u64 >= bytes);
            assert!(Slots::holds(len) || len.is_multiple_of(PAGE_LEN), "{bytes} take {len}");
        }
    }

    #[test]
    fn without_memory_there_is_no_block() {
        let slots = Slots::default();
        assert_eq!(slots.obtain(512, || None), None);
        assert_eq!(slots.idle(), Bytes::ZERO);
    }
}

//! Lends parts of blocks: what a plan places in an arena, a kernel is lent as a [`Region`], which gives `&[u8]` and `&mut [u8]` of host
//! memory alone.
//!
//! A [`Lender`] holds the borrows of all blocks that a call works on, so their owners can neither free
//! nor touch them. Each [`Lender::lend`] hands out the regions of one kernel call and borrows the lender
//! itself, so the regions of one call are gone before the next is made. Within a call no written byte
//! is lent twice; that is checked always and on every device, because the byte ranges are few and a wrong plan would otherwise
//! be undefined behaviour. Debug builds also know which buffers live ([`Lender::begin`]).
//!
//! What works beside the kernels (the lane that spills) gets a [`Loan`], which lives across their calls: until it is given
//! back, no call is lent bytes that it writes, nor to write bytes that it reads.

mod region;

use std::ops::Range;
use std::ptr;

use smallvec::SmallVec;
use tonnage_core::bytes::ALIGN;
use tonnage_core::{Result, Source};

use crate::backend::{Backend, CPU};
pub use crate::byte_range::ByteRange;
use crate::byte_range::wrong;
pub use crate::loan::Loan;
pub use region::{LendBase, Region, RegionMut, Regions};

/// Lends byte ranges of the blocks that it was given.
///
/// ```
/// use tonnage_runtime::lend::{Lender, ByteRange};
/// let weights = [1u8; 64];
/// let mut arena = [0u8; 256];
/// let mut lender = Lender::default();
/// let weights = lender.add(&weights[..]);
/// let arena = lender.add(&mut arena[..]);
/// let x = ByteRange { base: weights, offset: 8, len: 8, align: 1 };
/// let y = ByteRange { base: arena, offset: 128, len: 8, align: 1 };
/// let mut lent = lender.lend(&[x], &[y])?;
/// let to = lent.writes.remove(0).into_bytes()?;
/// to.copy_from_slice(lent.reads[0].bytes()?);
/// drop(lent);
/// assert_eq!(lender.lend(&[y], &[])?.reads[0].bytes()?, [1; 8]);
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// The regions of two calls never live together:
///
/// ```compile_fail,E0499
/// # use tonnage_runtime::lend::{Lender, ByteRange};
/// # let mut arena = [0u8; 64];
/// # let mut lender = Lender::default();
/// # let base = lender.add(&mut arena[..]);
/// # let x = ByteRange { base, offset: 0, len: 8, align: 1 };
/// let mut first = lender.lend(&[], &[x])?;
/// let second = lender.lend(&[x], &[])?;
/// first.writes.remove(0).into_bytes()?[0] = second.reads[0].bytes()?[0];
/// # Ok::<(), tonnage_core::Error>(())
/// ```
///
/// And no block is touched by its owner meanwhile:
///
/// ```compile_fail,E0505
/// # use tonnage_runtime::lend::{Lender, ByteRange};
/// let arena = vec![0u8; 64];
/// let mut lender = Lender::default();
/// let base = lender.add(&arena[..]);
/// drop(arena);
/// lender.lend(&[ByteRange { base, offset: 0, len: 8, align: 1 }], &[])?;
/// # Ok::<(), tonnage_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Lender<'a> {
    /// What runs on what is lent.
    backend: &'a dyn Backend,
    /// The line of what it is lent to.
    source: Option<Source>,
    bases: SmallVec<[LendBase<'a>; 8]>,
    /// Buffers that live; empty in release builds.
    live: Vec<ByteRange>,
    /// Addresses of the loans, and whether they are written.
    loans: SmallVec<[(Range<usize>, bool); 4]>,
}

impl Default for Lender<'_> {
    /// One for host memory.
    fn default() -> Self {
        Lender::new(&CPU)
    }
}

impl<'a> Lender<'a> {
    /// One for the memory of that device.
    pub fn new(backend: &'a dyn Backend) -> Lender<'a> {
        let (bases, live, loans) = (SmallVec::new(), Vec::new(), SmallVec::new());
        Lender { backend, source: None, bases, live, loans }
    }

    /// What is lent from here on is for an op of that line: an error that comes late names it.
    pub fn lend_for(&mut self, source: Option<Source>) {
        self.source = source;
    }

    /// What runs on what it lends.
    pub fn backend(&self) -> &'a dyn Backend {
        self.backend
    }

    /// Takes a block to lend of, and says its number. The first is 0.
    pub fn add(&mut self, base: impl Into<LendBase<'a>>) -> usize {
        self.bases.push(base.into());
        self.bases.len() - 1
    }

    /// Where each block lies, in the order of their numbers.
    pub fn addresses(&self) -> impl Iterator<Item = usize> {
        self.bases.iter().map(|base| base.start.addr())
    }

    /// The regions for one launch.
    ///
    /// # Errors
    /// Where a byte range leaves its base or is not aligned, where a base that is only read should be
    /// written, where a written byte range overlaps any other, and, in debug builds, where a write leaves
    /// the live buffers of its base. All of these are bugs in a plan.
    pub fn lend(&mut self, reads: &[ByteRange], writes: &[ByteRange]) -> Result<Regions<'_>> {
        let mut taken: SmallVec<[Range<usize>; 10]> = SmallVec::new();
        let source = self.source.as_ref();
        let mut lent = Regions { reads: SmallVec::new(), writes: SmallVec::new(), source };
        for byte_range in writes {
            let (start, host) = self.start(byte_range, true)?;
            self.check_live(byte_range)?;
            let range = start.addr()..start.addr() + byte_range.len;
            if taken.iter().any(|other| overlap(other, &range)) {
                return Err(wrong(byte_range, "is written twice by one call"));
            }
            self.check_loans(byte_range, &range, true)?;
            taken.push(range);
            let region = Region::of(start, byte_range.len, host);
            lent.writes.push(RegionMut(region));
        }
        for byte_range in reads {
            let (start, host) = self.start(byte_range, false)?;
            let range = start.addr()..start.addr() + byte_range.len;
            if taken.iter().any(|other| overlap(other, &range)) {
                return Err(wrong(byte_range, "is read and written by one call"));
            }
            self.check_loans(byte_range, &range, false)?;
            lent.reads.push(Region::of(start, byte_range.len, host));
        }
        Ok(lent)
    }

    /// Lends a byte range until [`Lender::take_back`], across the calls of kernels.
    ///
    /// ```
    /// use tonnage_runtime::lend::{Lender, ByteRange};
    /// let mut arena = [7u8; 64];
    /// let mut lender = Lender::default();
    /// let base = lender.add(&mut arena[..]);
    /// let x = ByteRange { base, offset: 0, len: 8, align: 1 };
    /// let loan = lender.loan(x, false)?;
    /// assert_eq!(lender.lend(&[x], &[])?.reads[0].bytes()?, loan.bytes()?);
    /// assert!(lender.lend(&[], &[x]).is_err());
    /// lender.take_back(loan);
    /// assert!(lender.lend(&[], &[x]).is_ok());
    /// # Ok::<(), tonnage_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Lender::lend`].
    pub fn loan(&mut self, byte_range: ByteRange, write: bool) -> Result<Loan<'a>> {
        let (start, host) = self.start(&byte_range, write)?;
        let range = start.addr()..start.addr() + byte_range.len;
        self.check_loans(&byte_range, &range, write)?;
        // The bytes lie in a base that is borrowed for 'a, whether the lender lives or not. No region of a kernel's call exists while
        // `self` is borrowed here; no loan that is written overlaps them, and from here on `check_loans` refuses whatever would.
        let region = Region::of(start, byte_range.len, host);
        let loan = match write {
            true => {
                self.check_live(&byte_range)?;
                Loan::to_write(RegionMut(region))
            }
            false => Loan::to_read(region),
        };
        if byte_range.len > 0 {
            self.loans.push((range, write));
        }
        Ok(loan)
    }

    /// Takes a loan back: its bytes can be lent again.
    ///
    /// Its addresses are the proof that it is one of this lender's: bytes that are written belong to one borrow, so to
    /// one lender.
    pub fn take_back(&mut self, loan: Loan<'_>) {
        let given = (loan.range(), loan.is_written());
        if let Some(at) = self.loans.iter().position(|out| *out == given) {
            self.loans.swap_remove(at);
        }
    }

    /// No loan is written where anybody else reads or writes, nor read where somebody writes.
    fn check_loans(&self, byte_range: &ByteRange, range: &Range<usize>, write: bool) -> Result<()> {
        let crossed =
            |(out, written): &(Range<usize>, bool)| (write || *written) && overlap(out, range);
        match self.loans.iter().any(crossed) {
            true => Err(wrong(byte_range, "is on loan to the lane that spills")),
            false => Ok(()),
        }
    }

    /// Says that a buffer lives from here on. It may overlap no other that lives. Release builds do
    /// not look.
    ///
    /// # Errors
    /// Where it overlaps one that lives, or leaves its base.
    pub fn begin(&mut self, byte_range: ByteRange) -> Result<()> {
        if !cfg!(debug_assertions) || byte_range.len == 0 {
            return Ok(());
        }
        self.start(&byte_range, false)?;
        let range = range_of(&byte_range);
        let same =
            |other: &&ByteRange| other.base == byte_range.base && overlap(&range_of(other), &range);
        if let Some(other) = self.live.iter().find(same) {
            return Err(wrong(&byte_range, &format!("overlaps {other}, which lives")));
        }
        self.live.push(byte_range);
        Ok(())
    }

    /// Says that a buffer is dead: its bytes may serve another.
    pub fn end(&mut self, byte_range: ByteRange) {
        self.live.retain(|other| *other != byte_range);
    }

    /// Where a byte range starts, if all of it lies in its base, and whether that is host memory.
    fn start(&self, byte_range: &ByteRange, write: bool) -> Result<(*mut u8, bool)> {
        let Some(base) = self.bases.get(byte_range.base) else {
            return Err(wrong(byte_range, "is of a base that is not there"));
        };
        if write && !base.writable {
            return Err(wrong(byte_range, "is written, but its base is only lent to read"));
        }
        if byte_range.len == 0 {
            // No bytes, wherever that is, at an address that suits any element: a cast of them must not fail.
            return Ok((ptr::without_provenance_mut(ALIGN), true));
        }
        if byte_range.offset.checked_add(byte_range.len).is_none_or(|end| end > base.len) {
            return Err(wrong(byte_range, &format!("leaves its base of {} bytes", base.len)));
        }
        // The offset lies in the base. An address alone, where that is a device's.
        let start = base.start.wrapping_add(byte_range.offset);
        if !byte_range.align.is_power_of_two() || !start.addr().is_multiple_of(byte_range.align) {
            return Err(wrong(
                byte_range,
                &format!("is not aligned to {} bytes", byte_range.align),
            ));
        }
        Ok((start, base.host))
    }

    /// In a base with live buffers, a write belongs into one of them.
    fn check_live(&self, byte_range: &ByteRange) -> Result<()> {
        let range = range_of(byte_range);
        let mut live = self.live.iter().filter(|other| other.base == byte_range.base).peekable();
        if live.peek().is_none() || byte_range.len == 0 {
            return Ok(());
        }
        let inside = |other: &ByteRange| {
            let other = range_of(other);
            other.start <= range.start && range.end <= other.end
        };
        if live.any(inside) {
            Ok(())
        } else {
            Err(wrong(byte_range, "is written, but lives nowhere"))
        }
    }
}

fn overlap(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// Bases hold less than 2^63 bytes, and a byte range was found inside of its base: no overflow.
fn range_of(byte_range: &ByteRange) -> Range<usize> {
    byte_range.offset..byte_range.offset.saturating_add(byte_range.len)
}

#[cfg(test)]
#[allow(unsafe_code, reason = "makes bytes of words")]
mod tests {
    use std::slice;

    use super::*;
    use crate::{Arena, Buffer, Ledger, Owner};
    use tonnage_core::{Bytes, Kind};

    fn byte_range(base: usize, offset: usize, len: usize) -> ByteRange {
        ByteRange { base, offset, len, align: 1 }
    }

    fn refused(reads: &[ByteRange], writes: &[ByteRange]) -> String {
        let (shared, mut own) = ([0u64; 8], [0u64; 8]);
        let mut lender = Lender::default();
        lender.add(bytes_of(&shared));
        lender.add(bytes_of_mut(&mut own));
        match lender.lend(reads, writes) {
            Ok(_) => "lent".to_string(),
            Err(error) => error.to_string(),
        }
    }

    fn bytes_of(words: &[u64; 8]) -> &[u8] {
        // SAFETY: 8 words are 64 initialized bytes.
        unsafe { slice::from_raw_parts(words.as_ptr().cast(), 64) }
    }

    fn bytes_of_mut(words: &mut [u64; 8]) -> &mut [u8] {
        // SAFETY: as above, and any byte makes a word.
        unsafe { slice::from_raw_parts_mut(words.as_mut_ptr().cast(), 64) }
    }

    /// The regions of a launch as slices.
    fn slices(regions: Regions<'_>) -> (Vec<&[u8]>, Vec<&mut [u8]>) {
        let reads = regions.reads.iter().map(|region| region.bytes().unwrap());
        let writes = regions.writes.into_iter().map(|region| region.into_bytes().unwrap());
        (reads.collect(), writes.collect())
    }

    #[test]
    fn regions_of_arena_arguments_and_outputs_are_lent_side_by_side() {
        let ledger = Ledger::new(None);
        let owner = || Owner::new(Kind::Activation, "test");
        let mut arena = Arena::obtain(&ledger, Bytes::new(100_000), owner()).unwrap();
        let mut argument = Buffer::obtain(&ledger, Bytes::new(100), owner()).unwrap();
        let mut output = Buffer::obtain(&ledger, Bytes::new(200), owner()).unwrap();
        argument.bytes_mut().unwrap().fill(3);
        {
            let mut lender = Lender::default();
            let (a, x) = (lender.add(arena.buffer_mut()), lender.add(&argument));
            // The same argument twice is two bases over the same bytes: both are only read.
            let (again, out) = (lender.add(&argument), lender.add(&mut output));
            let first = byte_range(a, 4096, 100);
            let last = byte_range(a, 99_900, 100);
            let reads = [byte_range(x, 0, 100), byte_range(again, 0, 100)];
            let (reads, writes) = slices(lender.lend(&reads, &[first, last]).unwrap());
            for (i, write) in writes.into_iter().enumerate() {
                for (to, from) in write.iter_mut().zip(reads[i]) {
                    *to = from + i as u8;
                }
            }
            let out = byte_range(out, 100, 100);
            let (reads, mut writes) = slices(lender.lend(&[first, last], &[out]).unwrap());
            for (i, to) in writes[0].iter_mut().enumerate() {
                *to = reads[0][i] * reads[1][i];
            }
        }
        assert!(output.bytes().unwrap()[100..].iter().all(|b| *b == 12));
        assert!(output.bytes().unwrap()[..100].iter().all(|b| *b == 0));
    }

    #[test]
    fn what_leaves_its_base_or_is_not_aligned_is_refused() {
        assert_eq!(refused(&[byte_range(0, 0, 64)], &[byte_range(1, 0, 64)]), "lent");
        assert!(refused(&[byte_range(0, 1, 64)], &[]).contains("leaves its base of 64 bytes"));
        assert!(refused(&[], &[byte_range(1, usize::MAX, 2)]).contains("leaves its base"));
        assert!(refused(&[byte_range(2, 0, 1)], &[]).contains("a base that is not there"));
        let aligned = ByteRange { base: 1, offset: 8, len: 8, align: 8 };
        assert_eq!(refused(&[], &[aligned]), "lent");
        let off = ByteRange { offset: 12, ..aligned };
        assert!(refused(&[], &[off]).contains("is not aligned to 8 bytes"));
        assert!(refused(&[], &[ByteRange { align: 0, ..aligned }]).contains("is not aligned"));
    }

    #[test]
    fn a_written_byte_is_lent_once() {
        assert!(refused(&[], &[byte_range(0, 0, 4)]).contains("only lent to read"));
        let twice = refused(&[], &[byte_range(1, 0, 9), byte_range(1, 8, 8)]);
        assert!(twice.contains("is written twice by one call"), "{twice}");
        let both = refused(&[byte_range(1, 15, 1)], &[byte_range(1, 8, 8)]);
        assert!(both.contains("is read and written by one call"), "{both}");
        assert_eq!(
            refused(&[byte_range(1, 0, 8), byte_range(1, 4, 4)], &[byte_range(1, 8, 8)]),
            "lent"
        );
    }

    #[test]
    fn no_bytes_are_lent_at_an_address_that_suits_every_element() {
        let mut bytes = [1u8; 3];
        let mut lender = Lender::default();
        let base = lender.add(&mut bytes[..]);
        let lent = lender.lend(&[byte_range(base, 3, 0)], &[byte_range(base, 1, 0)]).unwrap();
        let (reads, writes) = slices(lent);
        assert!(reads[0].is_empty() && writes[0].is_empty());
        assert!(reads[0].as_ptr().addr().is_multiple_of(ALIGN));
        assert!(writes[0].as_ptr().addr().is_multiple_of(ALIGN));
    }

    #[cfg(debug_assertions)]
    #[test]
    fn live_buffers_neither_overlap_nor_are_written_from_outside() {
        let mut bytes = [0u8; 256];
        let mut lender = Lender::default();
        let base = lender.add(&mut bytes[..]);
        lender.begin(byte_range(base, 0, 64)).unwrap();
        lender.begin(byte_range(base, 64, 64)).unwrap();
        let error = lender.begin(byte_range(base, 127, 10)).unwrap_err().to_string();
        assert!(error.contains("overlaps the byte range of 64 B at 64 of base 0"), "{error}");
        assert!(lender.lend(&[], &[byte_range(base, 70, 10)]).is_ok());
        let error = lender.lend(&[], &[byte_range(base, 120, 10)]).unwrap_err().to_string();
        assert!(error.contains("lives nowhere"), "{error}");
        lender.end(byte_range(base, 64, 64));
        lender.begin(byte_range(base, 120, 16)).unwrap();
        assert!(lender.lend(&[], &[byte_range(base, 120, 10)]).is_ok());
    }

    #[test]
    fn loans_live_across_calls_on_another_thread_and_cross_nothing() {
        let mut bytes = vec![0u8; 1000];
        let mut lender = Lender::default();
        let base = lender.add(&mut bytes[..]);
        let [left, right] = [byte_range(base, 0, 500), byte_range(base, 500, 500)];
        std::thread::scope(|scope| {
            let mut loan = lender.loan(left, true).unwrap();
            let lane = scope.spawn(move || {
                loan.bytes_mut().unwrap().fill(1);
                loan
            });
            slices(lender.lend(&[], &[right]).unwrap()).1[0].fill(2);
            for (reads, writes) in [(vec![left], vec![]), (vec![], vec![byte_range(base, 499, 2)])]
            {
                let error = lender.lend(&reads, &writes).unwrap_err().to_string();
                assert!(error.contains("on loan"), "{error}");
            }
            assert!(lender.loan(byte_range(base, 0, 1), false).is_err());
            lender.take_back(lane.join().unwrap());
            // Two that only read may cross.
            let (a, b) = (lender.loan(left, false).unwrap(), lender.loan(left, false).unwrap());
            assert_eq!(slices(lender.lend(&[left], &[]).unwrap()).0[0], b.bytes().unwrap());
            lender.take_back(a);
            assert!(lender.lend(&[], &[left]).is_err());
            lender.take_back(b);
            assert!(lender.lend(&[], &[left]).is_ok());
        });
        drop(lender);
        assert_eq!(bytes.iter().map(|b| u32::from(*b)).sum::<u32>(), 1500);
    }

    #[test]
    fn a_lender_moves_to_the_threads_that_run_the_call() {
        let mut bytes = vec![0u8; 1000];
        let mut lender = Lender::default();
        let base = lender.add(&mut bytes[..]);
        let pool = crate::WorkerPool::new(2).unwrap();
        pool.inside(|| {
            let halves = [byte_range(base, 0, 500), byte_range(base, 500, 500)];
            let (_, mut writes) = slices(lender.lend(&[], &halves).unwrap());
            let (left, right) = writes.split_at_mut(1);
            rayon_core::join(|| left[0].fill(1), || right[0].fill(2));
        });
        drop(lender);
        assert_eq!(bytes.iter().map(|b| u32::from(*b)).sum::<u32>(), 1500);
    }
}

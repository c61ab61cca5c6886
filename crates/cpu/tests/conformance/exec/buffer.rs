//! Bytes as the runtime lends them: aligned, and with guards on both sides that a kernel must not touch.

use tonnage_core::bytes::ALIGN;

/// What guards hold.
const CANARY: u8 = 0xA5;
/// What fresh bytes hold: a kernel that leaves some unwritten gives odd numbers.
const JUNK: u8 = 0xEE;

/// Aligned bytes between two guards.
#[derive(Clone)]
pub struct Buffer {
    all: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    /// That many bytes of junk.
    pub fn new(len: usize) -> Buffer {
        let mut all = vec![CANARY; len + 3 * ALIGN];
        let start = ALIGN + all.as_ptr().align_offset(ALIGN);
        all[start..start + len].fill(JUNK);
        Buffer { all, start, len }
    }

    /// The bytes.
    pub fn bytes(&self) -> &[u8] {
        &self.all[self.start..self.start + self.len]
    }

    /// The bytes, to write.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.all[self.start..self.start + self.len]
    }

    /// Panics where a guard was written to.
    #[track_caller]
    pub fn check(&self) {
        let (before, after) = (&self.all[..self.start], &self.all[self.start + self.len..]);
        let intact = before.iter().chain(after).all(|b| *b == CANARY);
        assert!(intact, "bytes around a buffer of {} were written to", self.len);
    }
}

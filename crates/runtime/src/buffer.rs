//! A buffer: bytes with an entry in the ledger. Nothing else in the project owns tensor bytes.

use std::fmt;
use std::mem;
use std::sync::Arc;

use tonnage_core::{Bytes, Device, Error, ErrorKind, Result};

use crate::backend::Backend;
use crate::ledger::{Id, Ledger, Owner};
use crate::system::MemoryBlock;

/// Owned bytes, aligned to a cache line (large ones to a page) and always initialized: zeros, or what
/// an earlier owner left. Dropping it frees them.
///
/// ```
/// use tonnage_core::{Bytes, Kind};
/// use tonnage_runtime::{Buffer, Ledger, Owner};
/// let ledger = Ledger::new(None);
/// let mut buffer = Buffer::obtain(&ledger, Bytes::new(100), Owner::new(Kind::Input, "x"))?;
/// buffer.bytes_mut()?.fill(7);
/// assert_eq!(buffer.bytes()?, [7; 100]);
/// assert_eq!(buffer.reserved(), Bytes::new(128));
/// # Ok::<(), tonnage_core::Error>(())
/// ```
pub struct Buffer {
    block: MemoryBlock,
    len: usize,
    /// `None` for no bytes, which take no entry.
    held: Option<LedgerClaim>,
}

struct LedgerClaim {
    ledger: Ledger,
    id: Id,
    /// What it goes back to the system with, where it cannot go alone.
    rest: Option<Arc<BlockRemainder>>,
}

/// The bytes of a block that no part of it holds. They stay counted until the last part is dropped.
pub(crate) struct BlockRemainder {
    ledger: Ledger,
    id: Id,
}

impl Buffer {
    /// That many bytes for that owner.
    ///
    /// # Errors
    /// `NeverFits`, `OverBudget` or `SystemRefused`, with the figures and the largest holders. Nothing
    /// has changed then but that the cache may be smaller.
    pub fn obtain(ledger: &Ledger, bytes: Bytes, owner: Owner) -> Result<Buffer> {
        if bytes.is_zero() {
            return Ok(Buffer::default());
        }
        let (block, id) = ledger.obtain(bytes, &owner)?;
        let held = Some(LedgerClaim { ledger: ledger.clone(), id, rest: None });
        Ok(Buffer { block, len: bytes.as_usize(), held })
    }

    /// The bytes, which are in host memory.
    ///
    /// # Errors
    /// Where they are a device's.
    #[inline]
    pub fn bytes(&self) -> Result<&[u8]> {
        match self.host_bytes() {
            Some(bytes) => Ok(bytes),
            None => Err(self.not_host()),
        }
    }

    /// The bytes, where they are in host memory.
    #[inline]
    pub(crate) fn host_bytes(&self) -> Option<&[u8]> {
        self.block.bytes().map(|bytes| &bytes[..self.len])
    }

    /// The bytes, which are in host memory, to write.
    ///
    /// # Errors
    /// Where they are a device's.
    #[inline]
    pub fn bytes_mut(&mut self) -> Result<&mut [u8]> {
        if !self.block.is_host() {
            return Err(self.not_host());
        }
        let len = self.len;
        Ok(self.block.bytes_mut().map(|bytes| &mut bytes[..len]).unwrap_or_default())
    }

    #[cold]
    fn not_host(&self) -> Error {
        let (left, right) = (Device::CPU, self.device());
        ErrorKind::DeviceMismatch { op: "read", left, right }.into()
    }

    /// Copies bytes of the host into it, to where they start.
    ///
    /// # Errors
    /// Where it has fewer from there on, or its device failed.
    pub fn copy_in(&mut self, at: usize, from: &[u8]) -> Result<()> {
        let to = self.address_of(at, from.len())?;
        match self.block.memory() {
            Some(memory) => memory.copy_in(from, to),
            None => {
                self.bytes_mut()?[at..at + from.len()].copy_from_slice(from);
                Ok(())
            }
        }
    }

    /// Copies bytes of it to the host, from where they start.
    ///
    /// # Errors
    /// Where it has fewer from there on, or its device failed.
    pub fn copy_out(&self, at: usize, to: &mut [u8]) -> Result<()> {
        let from = self.address_of(at, to.len())?;
        match self.block.memory() {
            Some(memory) => memory.copy_out(from, to),
            None => {
                to.copy_from_slice(&self.bytes()?[at..at + to.len()]);
                Ok(())
            }
        }
    }

    /// Copies bytes of it to the start of a block of the same memory.
    pub(crate) fn copy_to_block(&self, at: usize, len: usize, to: &mut MemoryBlock) -> Result<()> {
        let from = self.address_of(at, len)?;
        if let Some(memory) = self.block.memory() {
            return memory.copy_within(from, to.address(), len);
        }
        if let Some(to) = to.bytes_mut() {
            to[..len].copy_from_slice(&self.bytes()?[at..at + len]);
        }
        Ok(())
    }

    /// Keeps its pages where they are until they go back to the system, for that device to copy at full speed. Less than a page of its own
    /// is copied in no time.
    pub(crate) fn pin(&mut self, backend: &dyn Backend) {
        self.block.pin(|bytes| backend.pin(bytes));
    }

    /// Where they lie.
    pub fn device(&self) -> Device {
        self.block.memory().map_or(Device::CPU, |memory| memory.device())
    }

    /// The address of so many bytes from a place on, in the addresses of their device.
    fn address_of(&self, at: usize, len: usize) -> Result<usize> {
        match at.checked_add(len) {
            Some(end) if end <= self.len => Ok(self.block.address() + at),
            _ => {
                let what = format!("{} at {at} of a buffer of {}", Bytes::of(len), self.len);
                Err(ErrorKind::BadGraph { what }.into())
            }
        }
    }

    /// Where they start, in the addresses of their device.
    pub(crate) fn address(&self) -> usize {
        self.block.address()
    }

    /// Whether they are in host memory.
    pub(crate) fn is_host(&self) -> bool {
        self.block.is_host()
    }

    /// How many bytes were asked for.
    pub fn len(&self) -> usize {
        self.len
    }

    /// True for no bytes.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// What it takes in the ledger.
    pub fn reserved(&self) -> Bytes {
        Bytes::of(self.block.len())
    }

    /// Gives it to another owner: an activation becomes an output.
    pub fn set_owner(&mut self, owner: Owner) {
        if let Some(held) = &self.held {
            held.ledger.set_owner(held.id, owner);
        }
    }

    /// A buffer over a block that is already entered.
    pub(crate) fn entered(
        block: MemoryBlock,
        len: usize,
        ledger: &Ledger,
        id: Id,
        rest: Option<Arc<BlockRemainder>>,
    ) -> Buffer {
        Buffer { block, len, held: Some(LedgerClaim { ledger: ledger.clone(), id, rest }) }
    }

    /// Its entry in the ledger; none for no bytes.
    pub(crate) fn id(&self) -> Option<Id> {
        self.held.as_ref().map(|held| held.id)
    }

    /// Who holds it; none for no bytes.
    pub(crate) fn owner(&self) -> Option<Owner> {
        self.held.as_ref().and_then(|held| held.ledger.owner(held.id))
    }

    /// Whether dropping it frees its bytes, whatever becomes of others.
    pub(crate) fn goes_alone(&self) -> bool {
        self.held.as_ref().is_some_and(|held| held.rest.is_none())
    }

    /// The ledger that it is entered in; none for no bytes.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.held.as_ref().map(|held| &held.ledger)
    }

    /// The block and its entry, which the caller now sees to.
    pub(crate) fn into_block(mut self) -> (MemoryBlock, Option<Id>) {
        (mem::take(&mut self.block), self.held.take().map(|held| held.id))
    }
}

impl Default for Buffer {
    /// No bytes.
    fn default() -> Buffer {
        Buffer { block: MemoryBlock::default(), len: 0, held: None }
    }
}

impl BlockRemainder {
    pub(crate) fn new(ledger: Ledger, id: Id) -> BlockRemainder {
        BlockRemainder { ledger, id }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let block = mem::take(&mut self.block);
        match self.held.take() {
            None => {}
            Some(LedgerClaim { ledger, id, rest: None }) => ledger.free(id, block),
            Some(LedgerClaim { ledger, id, rest: Some(rest) }) => {
                // The block first: should this be the last part, its bytes are back in the system
                // when `rest` ends the entry.
                drop(block);
                ledger.merge(id, rest.id);
            }
        }
    }
}

impl Drop for BlockRemainder {
    fn drop(&mut self) {
        self.ledger.free(self.id, MemoryBlock::default());
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({})", Bytes::of(self.len))
    }
}

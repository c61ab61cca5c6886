//! Tensors on their way from host memory to a device, in its lane of copies: beside what runs there.

use tonnage_core::layout::Layout;
use tonnage_core::shape::Sizes;
use tonnage_core::{Bytes, DType, Kind, Result};

use crate::array::Array;
use crate::backend::{CopyTicket, HostBlock};
use crate::buffer::Buffer;
use crate::ledger::{Ledger, Owner};
use crate::lend::{ByteRange, Lender};

/// Host memory that tensors are copied from, which is used again once a copy has run: to pin it takes longer than to fill it.
#[derive(Debug, Default)]
pub struct StagingBlocks(Vec<(Bytes, HostBlock)>);

/// The elements of a tensor in host memory that a device copies from at full speed.
#[derive(Debug, Clone)]
pub struct StagedArray {
    block: HostBlock,
    dtype: DType,
    sizes: Sizes,
    bytes: Bytes,
}

/// A tensor of a device whose copy was begun. It is used by nobody before it has arrived, nor given up.
#[derive(Debug)]
pub struct ArrivingArray {
    array: Option<Array>,
    ticket: CopyTicket,
    ledger: Ledger,
    _from: StagedArray,
}

impl StagingBlocks {
    fn block(&mut self, to: &Ledger, bytes: Bytes, what: &'static str) -> Result<HostBlock> {
        // From the shortest on.
        let idle = |(of, block): &(Bytes, HostBlock)| block.is_idle().then_some(*of);
        let fits = self.0.iter().position(|one| idle(one).is_some_and(|of| of >= bytes));
        if let Some(at) = fits {
            return Ok(self.0[at].1.clone());
        }
        // One that is too short goes, so that they are no more than there are copies at a time.
        if let Some(at) = self.0.iter().rposition(|one| idle(one).is_some()) {
            self.0.remove(at);
        }
        let block = HostBlock::obtain(to.backend(), bytes, Owner::new(Kind::Staging, what))?;
        let at = self.0.partition_point(|(of, _)| *of < bytes);
        self.0.insert(at, (bytes, block.clone()));
        Ok(block)
    }
}

impl StagedArray {
    /// A copy of a tensor of the host for that device.
    ///
    /// # Errors
    /// Where the host has no memory for it.
    pub fn of(
        array: &Array,
        to: &Ledger,
        blocks: &mut StagingBlocks,
        what: &'static str,
    ) -> Result<StagedArray> {
        let bytes = array.ty().bytes(what)?;
        let block = blocks.block(to, bytes, what)?;
        block.part(0, bytes.as_usize()).with_bytes(|to| array.copy_to(to))?;
        Ok(StagedArray { block, dtype: array.dtype(), sizes: Sizes::from(array.sizes()), bytes })
    }

    /// Begins to copy it.
    ///
    /// # Errors
    /// Where the device has no memory for it, or failed.
    pub fn begin(self, ledger: &Ledger, what: &'static str) -> Result<ArrivingArray> {
        let mut buffer = Buffer::obtain(ledger, self.bytes, Owner::new(Kind::Input, what))?;
        let ticket = {
            let len = buffer.len();
            let mut lender = Lender::new(ledger.backend());
            let base = lender.add(&mut buffer);
            let mut lent = lender.lend(&[], &[ByteRange { base, offset: 0, len, align: 1 }])?;
            ledger.backend().begin_copy_in(self.block.part(0, len), lent.writes.remove(0))?
        };
        let array = Array::from_buffer(buffer, self.dtype, Layout::contiguous(self.sizes.clone()));
        Ok(ArrivingArray { array: Some(array), ticket, ledger: ledger.clone(), _from: self })
    }
}

impl ArrivingArray {
    /// The tensor: what is launched from now on runs behind its copy.
    ///
    /// # Errors
    /// Where the device failed.
    pub fn arrived(mut self) -> Result<Option<Array>> {
        self.ledger.backend().await_copy(self.ticket)?;
        Ok(self.array.take())
    }
}

impl Drop for ArrivingArray {
    fn drop(&mut self) {
        // Its memory may be another's as soon as it is given up, and so behind the copy.
        if self.array.is_some() {
            let _ = self.ledger.backend().await_copy(self.ticket);
        }
    }
}

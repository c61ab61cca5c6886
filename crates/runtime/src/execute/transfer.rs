//! Steps that spill a value, or bring it back: from host memory to a file, by the disk lane; from a device's memory to the host's, by
//! the device's lane of copies. Either has the byte range on loan meanwhile.

use std::collections::HashMap;

use tonnage_core::ValueId;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::Transfer;
use tonnage_plan::{At, BufferId, Placed, Step};

use super::places::Places;
use super::step::node_of;
use super::used::UsedBytes;
use crate::backend::{Backend, CopyTicket, HostBlock};
use crate::ledger::Owner;
use crate::lend::{Lender, Loan};
use crate::spill::DiskLane;

/// Where values wait that a call spills.
pub enum SpillLane<'l> {
    /// In a file, which a thread of its own writes and reads.
    Disk(DiskLane<'l>),
    /// In host memory.
    Host(Box<HostSpill<'l>>),
}

impl SpillLane<'_> {
    /// What was written to it.
    pub fn written(&self) -> Bytes {
        match self {
            SpillLane::Disk(lane) => Bytes::new(lane.written),
            SpillLane::Host(spill) => spill.written,
        }
    }
}

/// Values of a device that wait in host memory.
pub struct HostSpill<'a> {
    block: HostBlock,
    /// Copies that nobody has awaited, by the value that they are for.
    begun: HashMap<usize, (CopyTicket, Loan<'a>)>,
    written: Bytes,
}

impl<'a> HostSpill<'a> {
    /// So many bytes for them.
    ///
    /// # Errors
    /// Where the host has no memory for them.
    pub fn obtain(backend: &dyn Backend, bytes: Bytes, owner: Owner) -> Result<HostSpill<'a>> {
        let block = HostBlock::obtain(backend, bytes, owner)?;
        Ok(HostSpill { block, begun: HashMap::new(), written: Bytes::ZERO })
    }

    fn write(
        &mut self,
        backend: &dyn Backend,
        number: usize,
        at: u64,
        loan: Loan<'a>,
    ) -> Result<()> {
        let part = self.block.part(at as usize, loan.len());
        let ticket = backend.begin_copy_out(loan.region(), part)?;
        self.written += Bytes::of(loan.len());
        self.begun.insert(number, (ticket, loan));
        Ok(())
    }

    fn read(
        &mut self,
        backend: &dyn Backend,
        number: usize,
        at: u64,
        mut loan: Loan<'a>,
    ) -> Result<()> {
        let part = self.block.part(at as usize, loan.len());
        if let Some(region) = loan.region_mut() {
            let ticket = backend.begin_copy_in(part, region)?;
            self.begun.insert(number, (ticket, loan));
        }
        Ok(())
    }

    /// Awaits a copy: its loan can be given back, since whatever is launched next runs behind it.
    fn wait(&mut self, backend: &dyn Backend, number: usize) -> Result<Loan<'a>> {
        let Some((ticket, loan)) = self.begun.remove(&number) else {
            return Err(ErrorKind::BadGraph { what: "nobody began that copy".into() }.into());
        };
        backend.await_copy(ticket).map(|()| loan)
    }
}

impl<'l> SpillLane<'l> {
    fn begin(
        &mut self,
        backend: &dyn Backend,
        number: usize,
        at: u64,
        loan: Loan<'l>,
    ) -> Result<()> {
        match self {
            SpillLane::Disk(lane) => lane.begin(number, at, loan),
            SpillLane::Host(spill) if loan.is_written() => spill.read(backend, number, at, loan),
            SpillLane::Host(spill) => spill.write(backend, number, at, loan),
        }
    }

    fn wait(&mut self, backend: &dyn Backend, number: usize) -> Result<Loan<'l>> {
        match self {
            SpillLane::Disk(lane) => lane.wait(number),
            SpillLane::Host(spill) => spill.wait(backend, number),
        }
    }
}

/// Transfers are numbered by the value that is spilled (out) and the one in memory (back).
pub fn transfer<'a: 'l, 'l>(
    places: &Places,
    used: &mut UsedBytes,
    lender: &mut Lender<'a>,
    lane: &mut SpillLane<'l>,
    step: &Step,
    transfer: Transfer,
) -> Result<()> {
    let node = node_of(places.plan(), step)?;
    let (first, made) = (node.inputs[0], node.outputs[0]);
    let backend = lender.backend();
    match transfer {
        Transfer::Write => {
            let byte_range = places.written_as_planned(first)?;
            let (at, loan) = (in_spill(places, made)?, lender.loan(byte_range, false)?);
            lane.begin(backend, made.index(), at, loan)
        }
        Transfer::Written => {
            let pending = node.inputs.last().copied().unwrap_or(first);
            let loan = lane.wait(backend, pending.index())?;
            lender.take_back(loan);
            Ok(())
        }
        Transfer::Read => {
            let byte_range = places.written_as_planned(made)?;
            used.lent(&byte_range);
            let (at, loan) = (in_spill(places, first)?, lender.loan(byte_range, true)?);
            lane.begin(backend, made.index(), at, loan)
        }
        Transfer::Arrived => {
            let loan = lane.wait(backend, first.index())?;
            lender.take_back(loan);
            Ok(())
        }
    }
}

/// Where a value starts where values are spilled.
fn in_spill(places: &Places, id: ValueId) -> Result<u64> {
    match places.placed(id)? {
        Placed { at: At::Buffer(BufferId(b)), .. } => Ok(places.plan().buffers[*b].offset.get()),
        _ => Err(ErrorKind::BadGraph { what: format!("%{} is not spilled", id.index()) }.into()),
    }
}

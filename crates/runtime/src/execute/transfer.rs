//! Steps that spill a value, or bring it back: from host memory to a file, by the disk lane, which has its byte range on loan meanwhile;
//! from a device's memory to the host's, in the order of the device's queue.

use tonnage_core::ValueId;
use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::Transfer;
use tonnage_plan::{At, BufferId, Placed, Step};

use super::places::Places;
use super::step::node_of;
use super::used::UsedBytes;
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::ledger::Owner;
use crate::lend::Lender;
use crate::spill::DiskLane;

/// Where values wait that a call spills.
pub enum SpillLane<'l> {
    /// In a file, which a thread of its own writes and reads.
    Disk(DiskLane<'l>),
    /// In host memory.
    Host(HostSpill),
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
pub struct HostSpill {
    buffer: Buffer,
    written: Bytes,
}

impl HostSpill {
    /// So many bytes for them.
    ///
    /// # Errors
    /// Where the host has no memory for them.
    pub fn obtain(bytes: Bytes, owner: Owner) -> Result<HostSpill> {
        let buffer = Buffer::obtain(&host_ledger(), bytes, owner)?;
        Ok(HostSpill { buffer, written: Bytes::ZERO })
    }

    fn part(&mut self, at: u64, len: usize) -> Result<&mut [u8]> {
        let (at, all) = (at as usize, self.buffer.bytes_mut()?);
        all.get_mut(at..at + len).ok_or_else(|| {
            ErrorKind::BadGraph { what: "a value is spilled to nowhere".into() }.into()
        })
    }

    fn transfer(
        &mut self,
        places: &Places,
        used: &mut UsedBytes,
        lender: &mut Lender,
        (first, made): (ValueId, ValueId),
        transfer: Transfer,
    ) -> Result<()> {
        let backend = lender.backend();
        match transfer {
            Transfer::Write => {
                let byte_range = places.written_as_planned(first)?;
                let to = self.part(in_file(places, made)?, byte_range.len)?;
                let lent = lender.lend(&[byte_range], &[])?;
                lent.reads.first().map_or(Ok(()), |region| backend.read(*region, to))?;
                self.written += Bytes::of(byte_range.len);
                Ok(())
            }
            Transfer::Read => {
                let byte_range = places.written_as_planned(made)?;
                used.lent(&byte_range);
                let from = self.part(in_file(places, first)?, byte_range.len)?;
                let lent = lender.lend(&[], &[byte_range])?;
                let mut regions = lent.writes.into_iter();
                regions.next().map_or(Ok(()), |region| backend.write(from, region))
            }
            // What was copied is there, in the order of the queue.
            Transfer::Written | Transfer::Arrived => Ok(()),
        }
    }
}

/// Transfers are numbered by the value in the file (out) and the one in memory (back).
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
    let lane = match lane {
        SpillLane::Disk(lane) => lane,
        SpillLane::Host(spill) => {
            return spill.transfer(places, used, lender, (first, made), transfer);
        }
    };
    match transfer {
        Transfer::Write => {
            let byte_range = places.written_as_planned(first)?;
            let at = in_file(places, made)?;
            lane.begin(made.index(), at, lender.loan(byte_range, false)?)
        }
        Transfer::Written => {
            let pending = node.inputs.last().copied().unwrap_or(first);
            lender.take_back(lane.wait(pending.index())?);
            Ok(())
        }
        Transfer::Read => {
            let byte_range = places.written_as_planned(made)?;
            used.lent(&byte_range);
            let at = in_file(places, first)?;
            lane.begin(made.index(), at, lender.loan(byte_range, true)?)
        }
        Transfer::Arrived => {
            lender.take_back(lane.wait(first.index())?);
            Ok(())
        }
    }
}

/// Where a value starts in the file.
fn in_file(places: &Places, id: ValueId) -> Result<u64> {
    match places.placed(id)? {
        Placed { at: At::Buffer(BufferId(b)), .. } => Ok(places.plan().buffers[*b].offset.get()),
        _ => Err(ErrorKind::BadGraph { what: format!("%{} is in no file", id.index()) }.into()),
    }
}

//! Steps that hand a value to the disk lane, or wait for it: its byte range is on loan meanwhile.

use tonnage_core::ValueId;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::row::Transfer;
use tonnage_plan::{At, BufferId, Placed, Step};

use super::places::Places;
use super::step::node_of;
use super::used::UsedBytes;
use crate::lend::Lender;
use crate::spill::DiskLane;

/// Transfers are numbered by the value in the file (out) and the one in memory (back).
pub fn transfer<'a: 'l, 'l>(
    places: &Places,
    used: &mut UsedBytes,
    lender: &mut Lender<'a>,
    lane: &mut DiskLane<'l>,
    step: &Step,
    transfer: Transfer,
) -> Result<()> {
    let node = node_of(places.plan(), step)?;
    let (first, made) = (node.inputs[0], node.outputs[0]);
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

//! Branches, and what branches and loops share: their plans run in the scratch of the step, as frames of their
//! own.

use smallvec::SmallVec;
use tonnage_core::ValueId;
use tonnage_core::bytes::Bytes;
use tonnage_core::dtype::DType;
use tonnage_core::error::Result;
use tonnage_core::recipe::Key;
use tonnage_plan::{BranchPlan, Step};

use super::bytes;
use super::frame::{ExecutionFrame, Lanes};
use super::places::{Places, undecided};
use super::step::node_of;
use crate::lend::{ByteRange, Lender};

/// Byte ranges of several values.
pub type ByteRanges = SmallVec<[ByteRange; 8]>;

/// Runs the branch that is chosen.
pub fn branch<'p>(
    frame: &mut ExecutionFrame<'p>,
    lender: &mut Lender,
    step: &Step,
    key: Option<Key>,
    branches: &'p [BranchPlan],
) -> Result<()> {
    let scratch = frame.places.region_scratch(step);
    let node = node_of(frame.places.plan(), step)?;
    let chosen = choice(&frame.places, lender, node.inputs[0], branches.len())?;
    let branch = &branches[chosen];
    let homes = node.outputs.iter().map(|id| frame.made(*id)).collect::<Result<ByteRanges>>()?;
    let outputs: SmallVec<[ByteRange; 4]> =
        seconds(&branch.second, &homes, scratch)?.into_iter().collect();
    let inputs = node.inputs[1..]
        .iter()
        .map(|id| frame.places.given(*id))
        .collect::<Result<ByteRanges>>()?;
    let generators = frame.generators.of_region(key, 2, chosen as u64);
    let arena = (scratch, branch.inner);
    let mut child = frame.child(&branch.plan, arena, inputs, outputs.clone(), generators)?;
    for (i, id) in node.inputs[1..].iter().enumerate() {
        frame.tell(&mut child, i, *id)?;
    }
    outputs.iter().for_each(|byte_range| frame.used.lent(byte_range));
    child.run(lender, Lanes::default(), false)?;
    frame.ran(&mut child);
    for (k, id) in node.outputs.iter().enumerate() {
        frame.learn(&child, k, *id)?;
        bytes::copy(lender, outputs[k], homes[k])?;
    }
    Ok(())
}

/// Which of that many branches a boolean or an integer chooses.
fn choice(places: &Places, lender: &mut Lender, id: ValueId, branches: usize) -> Result<usize> {
    let dtype = places.ty(id).dtype;
    let number = integer(places, lender, id)?;
    Ok(match (dtype, usize::try_from(number)) {
        (DType::Bool, _) => usize::from(number == 0).min(branches - 1),
        (_, Ok(n)) if n < branches => n,
        _ => branches - 1,
    })
}

/// The integer or boolean that a value's only element is.
pub fn integer(places: &Places, lender: &mut Lender, id: ValueId) -> Result<i128> {
    let dtype = places.ty(id).dtype;
    let (byte_range, at) = (places.read(id)?, places.layout(id)?.offset * dtype.size());
    bytes::integer(lender, byte_range, at, dtype)?.ok_or_else(|| undecided(id))
}

/// A part of the scratch of a step.
pub fn part(scratch: ByteRange, at: Bytes, len: usize) -> Result<ByteRange> {
    scratch.part(at.as_usize(), len, 1)
}

/// Where values are made that stay at home, or come back to it.
pub fn seconds(
    second: &[Option<Bytes>],
    homes: &[ByteRange],
    scratch: ByteRange,
) -> Result<ByteRanges> {
    let place = |(second, home): (&Option<Bytes>, &ByteRange)| match second {
        Some(at) => part(scratch, *at, home.len),
        None => Ok(*home),
    };
    second.iter().zip(homes).map(place).collect()
}

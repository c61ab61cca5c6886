//! Branches, and what branches and loops share: their plans run in the scratch of the step, as frames of their
//! own.

use smallvec::SmallVec;
use tonnage_core::ValueId;
use tonnage_core::bytes::Bytes;
use tonnage_core::dtype::DType;
use tonnage_core::error::Result;
use tonnage_core::recipe::Key;
use tonnage_plan::{BranchPlan, Plan, Step};

use super::frame::ExecutionFrame;
use super::generators::Generators;
use super::launch::bytes;
use super::places::undecided;
use crate::lend::{ByteRange, Lender};

/// Regions of several values.
pub(super) type ByteRanges = SmallVec<[ByteRange; 8]>;

impl<'p> ExecutionFrame<'p> {
    /// A frame for a region, which knows the sizes that the data decided so far. Its arena starts at `at` in the
    /// scratch of the step.
    pub(super) fn child(
        &self,
        plan: &'p Plan,
        (scratch, at): (ByteRange, Bytes),
        inputs: ByteRanges,
        outputs: SmallVec<[ByteRange; 4]>,
        generators: Generators<'p>,
    ) -> Result<ExecutionFrame<'p>> {
        let arena = part(scratch, at, plan.arena.as_usize())?;
        let mut child = ExecutionFrame::new(plan, arena, inputs, outputs, generators);
        child.sizes.clone_from(&self.sizes);
        child.stop = self.stop.of_region();
        Ok(child)
    }

    /// Tells a region how an input lies whose size the data decided.
    pub(super) fn tell(&self, child: &mut ExecutionFrame, input: usize, id: ValueId) -> Result<()> {
        if self.places.ty(id).shape.sizes().is_none() {
            let input = child.places.plan().graph.inputs[input];
            child.places.decide(input, self.places.layout(id)?);
        }
        Ok(())
    }

    /// Learns from a region how large a result is whose size the data decided there.
    fn learn(&mut self, child: &ExecutionFrame, output: usize, id: ValueId) -> Result<()> {
        if self.places.ty(id).shape.sizes().is_none() {
            let made = child.ty(child.places.plan().graph.outputs[output]);
            let sizes = made.shape.sizes().ok_or_else(|| undecided(id))?;
            self.decide(id, &sizes);
        }
        Ok(())
    }

    pub fn branch(
        &mut self,
        lender: &mut Lender,
        step: &Step,
        key: Option<Key>,
        branches: &'p [BranchPlan],
    ) -> Result<()> {
        let scratch = self.places.region_scratch(step);
        let node = self.node(step)?;
        let chosen = self.choice(lender, node.inputs[0], branches.len())?;
        let branch = &branches[chosen];
        let homes = node.outputs.iter().map(|id| self.made(*id)).collect::<Result<ByteRanges>>()?;
        let outputs: SmallVec<[ByteRange; 4]> =
            seconds(&branch.second, &homes, scratch)?.into_iter().collect();
        let inputs = node.inputs[1..]
            .iter()
            .map(|id| self.places.given(*id))
            .collect::<Result<ByteRanges>>()?;
        let generators = self.generators.of_region(key, 2, chosen as u64);
        let arena = (scratch, branch.inner);
        let mut child = self.child(&branch.plan, arena, inputs, outputs.clone(), generators)?;
        for (i, id) in node.inputs[1..].iter().enumerate() {
            self.tell(&mut child, i, *id)?;
        }
        outputs.iter().for_each(|byte_range| self.used.lent(byte_range));
        child.run(lender, None, false)?;
        self.ran(&child);
        for (k, id) in node.outputs.iter().enumerate() {
            self.learn(&child, k, *id)?;
            bytes::copy(lender, outputs[k], homes[k])?;
        }
        Ok(())
    }

    /// Which of that many branches a boolean or an integer chooses.
    fn choice(&self, lender: &mut Lender, id: ValueId, branches: usize) -> Result<usize> {
        let dtype = self.places.ty(id).dtype;
        let number = self.integer(lender, id)?;
        Ok(match (dtype, usize::try_from(number)) {
            (DType::Bool, _) => usize::from(number == 0).min(branches - 1),
            (_, Ok(n)) if n < branches => n,
            _ => branches - 1,
        })
    }

    /// The integer or boolean that a value's only element is.
    pub(super) fn integer(&self, lender: &mut Lender, id: ValueId) -> Result<i128> {
        let dtype = self.places.ty(id).dtype;
        let (byte_range, at) =
            (self.places.read(id)?, self.places.layout(id)?.offset * dtype.size());
        bytes::integer(lender, byte_range, at, dtype)?.ok_or_else(|| undecided(id))
    }
}

/// A part of the scratch of a step.
pub(super) fn part(scratch: ByteRange, at: Bytes, len: usize) -> Result<ByteRange> {
    scratch.part(at.as_usize(), len, 1)
}

/// Where values are made that stay at home, or come back to it.
pub(super) fn seconds(
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

//! The inputs of an eager op while it runs, and the bytes that its results get.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Generator, Recipe};
use tonnage_core::row::{Call, Mem, OpDef};
use tonnage_core::tile::TileProgram;
use tonnage_core::{Mark, Result, TensorType};
use tonnage_cpu::kernel_of;
use tonnage_ops::tile::{Composed, compose};

use super::{Arg, Args, bad_layout};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::events::{self, Action};
use crate::ledger::Ledger;
use crate::lend::{ByteRange, LendBase, Lender};
use crate::storage::{Pinned, materialize};

/// The inputs of an op while it runs: those that gave up their bytes are gone.
pub(super) struct EagerInputs<'a> {
    /// Where the op runs.
    pub place: Ledger,
    pub args: SmallVec<[Option<Arg<'a>>; 3]>,
    pub recipes: SmallVec<[Option<Arc<Recipe>>; 3]>,
    pub layouts: SmallVec<[Layout; 3]>,
}

impl<'a> EagerInputs<'a> {
    /// The inputs of an op that runs there.
    pub fn new(place: Ledger, args: Args<'a>) -> EagerInputs<'a> {
        EagerInputs {
            place,
            recipes: args.iter().map(|a| a.array().as_recipe()).collect(),
            layouts: args.iter().map(|a| a.array().layout().clone()).collect(),
            args: args.into_iter().map(Some).collect(),
        }
    }

    /// Of an update: the target, whose bytes are the output's, and then these.
    pub fn of_update(place: Ledger, target: Layout, args: Args<'a>) -> EagerInputs<'a> {
        let mut inputs = EagerInputs::new(place, args);
        inputs.args.insert(0, None);
        inputs.recipes.insert(0, None);
        inputs.layouts.insert(0, target);
        inputs
    }

    /// The program with recipes written into it; those that it still reads are made resident.
    pub fn compose(
        &mut self,
        op: &'static OpDef,
        program: &TileProgram,
        domain: &[usize],
        mark: Mark,
    ) -> Result<(TileProgram, SmallVec<[Composed; 2]>)> {
        let mut recipes: SmallVec<[Option<&Recipe>; 3]> =
            self.recipes.iter().map(Option::as_deref).collect();
        let limits = self.place.backend().tile_limits();
        let made = compose(program, &mut recipes, domain, &limits).ok_or_else(|| bad_layout(op))?;
        let written: SmallVec<[bool; 3]> = recipes.iter().map(Option::is_some).collect();
        drop(recipes);
        for (i, written) in written.into_iter().enumerate() {
            if self.args[i].is_some() && !written {
                self.write_out(i, op, mark)?;
            }
        }
        Ok(made)
    }

    /// Makes an input that is a recipe resident. On a device the op has its own copy: others may need the recipe elsewhere.
    fn write_out(&mut self, input: usize, op: &'static OpDef, mark: Mark) -> Result<()> {
        let Some(recipe) = self.recipes[input].take() else { return Ok(()) };
        let Some(arg) = &self.args[input] else { return Ok(()) };
        if self.place.is_host() {
            drop(arg.array().pin(op.name, mark.source)?);
            return Ok(());
        }
        let buffer = materialize(&recipe, &self.place, owner(mark, op.name))?;
        let array = Array::from_buffer(buffer, recipe.dtype(), self.layouts[input].clone());
        self.args[input] = Some(Arg::Owned(array));
        Ok(())
    }

    /// Makes all recipes resident but those of some inputs.
    pub fn write_out_but(
        &mut self,
        some: impl Fn(&EagerInputs, usize) -> bool,
        op: &'static OpDef,
        mark: Mark,
    ) -> Result<()> {
        for i in 0..self.args.len() {
            if !some(self, i) {
                self.write_out(i, op, mark)?;
            }
        }
        Ok(())
    }

    /// The bytes of an input for the first output, where the row allows and nobody else holds them.
    pub fn take_over(&mut self, mem: Mem, output: &TensorType) -> Result<Option<(usize, Buffer)>> {
        let Mem::Reuse(candidates) = mem else { return Ok(None) };
        let fits = |input: &usize| match self.args.get(*input) {
            Some(Some(Arg::Owned(array))) => {
                array.is_sole()
                    && self.recipes[*input].is_none()
                    && array.dtype().size() == output.dtype.size()
                    && array.ty().shape == output.shape
            }
            _ => false,
        };
        let Some(input) = candidates.iter().copied().find(fits) else { return Ok(None) };
        let Some(Arg::Owned(array)) = self.args[input].take() else { return Ok(None) };
        let Some(storage) = array.into_storage() else { return Ok(None) };
        Ok(storage.into_buffer()?.map(|buffer| (input, buffer)))
    }

    /// Pins those that are in memory and were not taken over.
    pub fn pins(&self, op: &'static OpDef, mark: Mark) -> Result<InputPins<'_>> {
        InputPins::new(self, op, mark)
    }

    /// What an op's kernel reads from outside of memory as it goes, and where in it.
    pub fn streamed(
        &self,
        op: &'static OpDef,
        call: &Call,
        input: usize,
    ) -> Option<(&Generator, &Layout)> {
        let reads = kernel_of(op)?.streaming?.reads;
        match self.recipes[input].as_ref()?.as_stored()? {
            (generator @ Generator::Stored { .. }, layout)
                if reads(call, input, layout).is_some() =>
            {
                Some((generator, layout))
            }
            _ => None,
        }
    }

    fn array(&self, input: usize) -> Option<&Array> {
        self.args[input].as_ref().map(Arg::array)
    }
}

/// Pinned inputs. Bytes that several of them share are pinned once: a second pin would wait behind a thread that
/// waits for the first to end.
pub(super) struct InputPins<'a> {
    pinned: SmallVec<[Option<Pinned<'a>>; 3]>,
    /// For each input, the one that pinned its bytes.
    by: SmallVec<[usize; 3]>,
}

impl<'a> InputPins<'a> {
    fn new(inputs: &'a EagerInputs, op: &'static OpDef, mark: Mark) -> Result<InputPins<'a>> {
        let mut pins = InputPins { pinned: SmallVec::new(), by: SmallVec::new() };
        for i in 0..inputs.args.len() {
            let array = inputs.array(i).filter(|_| inputs.recipes[i].is_none());
            let shares = |other: &usize| match (inputs.array(*other), array) {
                (Some(a), Some(b)) => a.shares_bytes(b),
                _ => false,
            };
            // One that shares the bytes and is inlined as a recipe pinned nothing.
            let by = (0..i).filter(|other| pins.pinned[*other].is_some()).find(shares).unwrap_or(i);
            let pinned = match array {
                Some(array) if by == i => Some(array.pin(op.name, mark.source)?),
                _ => None,
            };
            pins.pinned.push(pinned);
            pins.by.push(by);
        }
        Ok(pins)
    }

    /// Puts what is pinned among what is lent, and says where: each input's bytes, or nothing.
    pub fn lend<'l>(&'l self, lender: &mut Lender<'l>) -> Result<SmallVec<[Option<ByteRange>; 3]>> {
        let mut ranges: SmallVec<[Option<ByteRange>; 3]> = SmallVec::new();
        for pinned in &self.pinned {
            ranges.push(match pinned {
                Some(pinned) => Some(range(lender, pinned.buffer()?)),
                None => None,
            });
        }
        Ok(self.by.iter().map(|i| ranges[*i]).collect())
    }
}

/// All of a buffer, as a base of its own.
pub(super) fn range<'l>(lender: &mut Lender<'l>, base: impl Into<LendBase<'l>>) -> ByteRange {
    let base = base.into();
    let len = base.len();
    ByteRange { base: lender.add(base), offset: 0, len, align: 1 }
}

/// As many bytes as a value of that type takes. Storage that was taken over may be longer: a view of its front is all of
/// an array, and what a function returns lies in a rounded buffer. A kernel goes by the length of what it is lent.
///
/// # Errors
/// Where there are fewer, which is a bug.
pub(super) fn exactly(range: ByteRange, ty: &TensorType, op: &'static str) -> Result<ByteRange> {
    let size = ty.dtype.size();
    range.part(0, ty.bytes(op)?.as_usize(), size)
}

/// A buffer for an output: the bytes that were taken over, or new ones.
pub(super) fn obtain(
    place: &Ledger,
    taken: &mut Option<(usize, Buffer)>,
    ty: &TensorType,
    op: &'static str,
    mark: Mark,
) -> Result<Buffer> {
    match taken.as_mut().map(|(_, buffer)| std::mem::take(buffer)) {
        Some(mut buffer) if !buffer.is_empty() => {
            events::record(op, mark.source, Action::Reused, buffer.reserved());
            buffer.set_owner(owner(mark, op));
            Ok(buffer)
        }
        _ => Buffer::obtain(place, ty.bytes(op)?, owner(mark, op)),
    }
}

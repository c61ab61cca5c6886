//! The inputs of an eager op while it runs, and the bytes that its results get.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::{Elements, Generator, Recipe};
use tonnage_core::row::{Call, Mem, OpDef};
use tonnage_core::tile::TileProgram;
use tonnage_core::{Bytes, ErrorKind, Mark, Result, TensorType};
use tonnage_cpu::kernel_of;
use tonnage_cpu::tile::LIMITS;
use tonnage_ops::tile::{Composed, compose};

use super::{Arg, Args, bad_layout};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::context::host_ledger;
use crate::events::{self, Action};
use crate::storage::Pinned;

/// The inputs of an op while it runs: those that gave up their bytes are gone.
pub(super) struct EagerInputs<'a> {
    pub args: SmallVec<[Option<Arg<'a>>; 3]>,
    pub recipes: SmallVec<[Option<Arc<Recipe>>; 3]>,
    pub layouts: SmallVec<[Layout; 3]>,
}

impl<'a> EagerInputs<'a> {
    pub fn new(args: Args<'a>) -> EagerInputs<'a> {
        EagerInputs {
            recipes: args.iter().map(|a| a.array().as_recipe()).collect(),
            layouts: args.iter().map(|a| a.array().layout().clone()).collect(),
            args: args.into_iter().map(Some).collect(),
        }
    }

    /// Of an update: the target, whose bytes are the output's, and then these.
    pub fn of_update(target: Layout, args: Args<'a>) -> EagerInputs<'a> {
        let mut inputs = EagerInputs::new(args);
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
        let made = compose(program, &mut recipes, domain, &LIMITS).ok_or_else(|| bad_layout(op))?;
        let written: SmallVec<[bool; 3]> = recipes.iter().map(Option::is_some).collect();
        drop(recipes);
        for (i, written) in written.into_iter().enumerate() {
            if let (Some(arg), false) = (&self.args[i], written) {
                drop(arg.array().pin(op.name, mark.source)?);
                self.recipes[i] = None;
            }
        }
        Ok(made)
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
        InputPins::new(self, |input| self.recipes[input].is_none(), op, mark)
    }

    /// Pins all that were not taken over but some; recipes are made resident.
    pub fn pins_but(
        &self,
        some: impl Fn(usize) -> bool,
        op: &'static OpDef,
        mark: Mark,
    ) -> Result<InputPins<'_>> {
        InputPins::new(self, |input| !some(input), op, mark)
    }

    /// What an op's kernel reads from outside of memory as it goes, and where in it.
    pub fn streamed(
        &self,
        op: &'static OpDef,
        call: &Call,
        input: usize,
    ) -> Option<(&dyn Elements, &Layout)> {
        let reads = kernel_of(op)?.streaming?.reads;
        match self.recipes[input].as_ref()?.as_stored()? {
            (Generator::Stored { elements, .. }, layout)
                if reads(call, input, layout).is_some() =>
            {
                Some((&*elements.0, layout))
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
    fn new(
        inputs: &'a EagerInputs,
        wanted: impl Fn(usize) -> bool,
        op: &'static OpDef,
        mark: Mark,
    ) -> Result<InputPins<'a>> {
        let mut pins = InputPins { pinned: SmallVec::new(), by: SmallVec::new() };
        for i in 0..inputs.args.len() {
            let array = inputs.array(i).filter(|_| wanted(i));
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

    /// The bytes of an input, if it was pinned.
    pub fn bytes(&self, input: usize) -> Option<&[u8]> {
        self.pinned[self.by[input]].as_ref().map(Pinned::bytes)
    }
}

/// As many bytes as a value of that type takes. Storage that was taken over may be longer: a view of its front is all of
/// an array, and what a function returns lies in a rounded buffer. A kernel goes by the length of what it is lent.
///
/// # Errors
/// Where there are fewer, which is a bug.
pub(super) fn exactly<'b>(
    bytes: &'b mut [u8],
    ty: &TensorType,
    op: &'static str,
) -> Result<&'b mut [u8]> {
    let (have, takes) = (bytes.len(), ty.bytes(op)?);
    bytes.get_mut(..takes.as_usize()).ok_or_else(|| {
        let what = format!("{op} writes {takes} to storage of {}", Bytes::of(have));
        ErrorKind::BadGraph { what }.into()
    })
}

/// A buffer for an output: the bytes that were taken over, or new ones.
pub(super) fn obtain(
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
        _ => Buffer::obtain(&host_ledger(), ty.bytes(op)?, owner(mark, op)),
    }
}

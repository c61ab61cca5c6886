//! The inputs of an eager op while it runs, and the bytes that its results get.

use std::sync::Arc;

use smallvec::SmallVec;
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::row::{Mem, OpDef};
use tonnage_core::{Mark, Result, TensorType};

use super::{Arg, Args};
use crate::array::{Array, owner};
use crate::buffer::Buffer;
use crate::events::{self, Action};
use crate::ledger::Ledger;
use crate::storage::Pinned;

/// The inputs of an op while it runs: those that gave up their bytes are gone.
pub(super) struct Inputs<'a> {
    pub args: SmallVec<[Option<Arg<'a>>; 3]>,
    pub recipes: SmallVec<[Option<Arc<Recipe>>; 3]>,
    pub layouts: SmallVec<[Layout; 3]>,
}

impl<'a> Inputs<'a> {
    pub fn new(args: Args<'a>) -> Inputs<'a> {
        Inputs {
            recipes: args.iter().map(|a| a.array().as_recipe()).collect(),
            layouts: args.iter().map(|a| a.array().layout().clone()).collect(),
            args: args.into_iter().map(Some).collect(),
        }
    }

    /// The bytes of an input for the first output, where the row allows and nobody else holds them.
    pub fn take_over(&mut self, mem: Mem, output: &TensorType) -> Option<(usize, Buffer)> {
        let Mem::Reuse(candidates) = mem else { return None };
        let fits = |input: &usize| match self.args.get(*input) {
            Some(Some(Arg::Owned(array))) => {
                array.is_sole()
                    && self.recipes[*input].is_none()
                    && array.dtype().size() == output.dtype.size()
                    && array.ty().shape == output.shape
            }
            _ => false,
        };
        let input = candidates.iter().copied().find(fits)?;
        let Some(Arg::Owned(array)) = self.args[input].take() else { return None };
        let buffer = Arc::try_unwrap(array.into_storage()).ok()?.into_buffer()?;
        Some((input, buffer))
    }

    /// Pins those that are in memory and were not taken over.
    pub fn pins(
        &self,
        op: &'static OpDef,
        mark: Mark,
    ) -> Result<SmallVec<[Option<Pinned<'_>>; 3]>> {
        self.args
            .iter()
            .zip(&self.recipes)
            .map(|(arg, recipe)| match (arg, recipe) {
                (Some(arg), None) => arg.array().pin(op.name, mark.source).map(Some),
                _ => Ok(None),
            })
            .collect()
    }

    pub fn array(&self, input: usize) -> Option<&Array> {
        self.args[input].as_ref().map(Arg::array)
    }
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
        _ => Buffer::obtain(Ledger::cpu(), ty.bytes(op)?, owner(mark, op)),
    }
}

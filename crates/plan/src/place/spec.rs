//! What planning is told: of each input, and of the device.

use std::sync::Arc;

use tonnage_core::bytes::Bytes;
use tonnage_core::error::{ErrorKind, Result};
use tonnage_core::layout::Layout;
use tonnage_core::recipe::Recipe;
use tonnage_core::shape::{Sizes, TensorType};

use crate::plan::{At, Placed};
use crate::target::SharedTarget;

/// What is known of an input before the call.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum InputSpec {
    /// It lies in memory.
    Bytes {
        /// Where in its bytes.
        layout: Layout,
        /// What its bytes take; nothing for the second input that shares them.
        bytes: Bytes,
        /// Whether the call may overwrite them.
        donated: bool,
    },
    /// It is a recipe.
    Recipe(Arc<Recipe>),
}

impl InputSpec {
    /// A tensor of that type that lies close together in bytes of its own.
    pub fn contiguous(ty: &TensorType, op: &'static str, donated: bool) -> Result<InputSpec> {
        let layout = Layout::contiguous(most(ty, op)?);
        Ok(InputSpec::Bytes { layout, bytes: ty.bytes(op)?.rounded(), donated })
    }

    /// The same in a block of so many bytes: devices round as they like.
    #[must_use]
    pub fn in_block(self, bytes: Bytes) -> InputSpec {
        match self {
            InputSpec::Bytes { layout, donated, .. } => InputSpec::Bytes { layout, bytes, donated },
            recipe @ InputSpec::Recipe(_) => recipe,
        }
    }

    /// What it takes of memory: nothing as a recipe, or as the second input in the same bytes.
    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            InputSpec::Bytes { bytes, .. } => *bytes,
            InputSpec::Recipe(_) => Bytes::ZERO,
        }
    }

    /// Whether the call may overwrite it.
    pub(crate) fn is_donated(&self) -> bool {
        matches!(self, InputSpec::Bytes { donated: true, .. })
    }

    /// Where the input of that number lies.
    pub(crate) fn placed(&self, input: usize) -> Placed {
        match self {
            InputSpec::Bytes { layout, .. } => {
                Placed { at: At::Input(input), layout: layout.clone() }
            }
            InputSpec::Recipe(recipe) => Placed::recipe(recipe.clone()),
        }
    }
}

/// What planning is told besides.
#[derive(Debug, Clone)]
pub struct PlanOptions {
    /// The device that it will run on.
    pub target: SharedTarget,
    /// Whether the caller gives the bytes of the outputs, as for a region.
    pub outputs_given: bool,
    /// What may be taken more at the peak so that kernels hide transfers between ranks: what a rank needs is gathered before it is needed, and what is done with
    /// a sum waits.
    pub ahead: Bytes,
}

impl PlanOptions {
    /// A whole program for that device.
    pub fn new(target: SharedTarget) -> PlanOptions {
        PlanOptions { target, outputs_given: false, ahead: Bytes::ZERO }
    }
}

/// The sizes of a type, with those that the data decide at their bound.
pub(crate) fn most(ty: &TensorType, op: &'static str) -> Result<Sizes> {
    ty.bytes(op)?;
    ty.shape.most().ok_or_else(|| {
        let what = format!("{op} has the open type {ty} where sizes must be known");
        ErrorKind::BadGraph { what }.into()
    })
}

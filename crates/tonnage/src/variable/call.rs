//! Variables in planned calls: what a call finds, and what a plan foresees.

use tonnage_core::{Result, Source, TensorType};
use tonnage_runtime::placement::follows;
use tonnage_runtime::{Array, Ledger};

use super::{Variable, VariableState};

/// How a variable will lie in a planned call.
pub(crate) enum Foreseen {
    /// As it lies now.
    AsIs(Array),
    /// In bytes of its own that do not exist yet.
    Copy(TensorType),
}

impl Foreseen {
    /// The array, where there is one.
    pub fn array(&self) -> Option<Array> {
        match self {
            Foreseen::AsIs(array) => Some(array.clone()),
            Foreseen::Copy(_) => None,
        }
    }
}

impl Variable {
    /// The array for a planned call; one that is to be written is resident and the variable's alone.
    pub(super) fn for_call(
        &self,
        state: &mut VariableState,
        written: bool,
        place: &Ledger,
        source: Source,
    ) -> Result<Array> {
        match state {
            VariableState::Holds(array, _) if self.0.in_files => Ok(self.shown(array)),
            VariableState::Holds(array, _) => {
                if written {
                    let elsewhere = follows("function", place, array, source)?;
                    if elsewhere || array.as_recipe().is_some() || !array.is_sole() {
                        *array = array.copied_as(place, self.owner())?;
                    }
                }
                Ok(array.clone())
            }
            other => Err(self.unreadable(other)),
        }
    }

    /// What a planned call will find, without making it so: one that is to be written will be resident
    /// and the variable's alone. Where calls are planned for parameters that are `settled`, those are resident too.
    pub(crate) fn foreseen(&self, written: bool, settled: bool) -> Result<Foreseen> {
        match &*self.free_state()? {
            VariableState::Holds(array, _) if self.0.in_files => {
                Ok(Foreseen::AsIs(self.shown(array)))
            }
            VariableState::Pending(_) if self.0.in_files => Ok(Foreseen::AsIs(self.to_come()?)),
            VariableState::Holds(array, _) => {
                let is_recipe = array.as_recipe().is_some();
                let settles = settled && self.is_trainable() && is_recipe;
                let copies = settles || written && (is_recipe || !array.is_sole());
                Ok(if copies { Foreseen::Copy(self.ty()) } else { Foreseen::AsIs(array.clone()) })
            }
            VariableState::Pending(_) | VariableState::Proposed => Ok(Foreseen::Copy(self.ty())),
            other => Err(self.unreadable(other)),
        }
    }
}

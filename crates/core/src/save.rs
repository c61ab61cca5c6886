//! What a gradient rule reads of the forward pass.

use serde::Serialize;

/// Something that a gradient rule reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
pub enum Save {
    /// An input's value.
    Input(usize),
    /// The values of all inputs, of an op that takes any number.
    Inputs,
    /// An output's value.
    Output(usize),
    /// The carried values that a loop ends with.
    Ends,
    /// An extra output that is made only when a gradient is wanted.
    Aux(usize),
    /// All extra outputs, of an op that has any number.
    Auxes,
    /// What the attributes list, of an op whose gradient its user wrote.
    Declared,
}

impl Save {
    /// Saved whichever gradients are wanted.
    pub const fn always(self) -> Saved {
        Saved { save: self, by: None }
    }

    /// Saved only where that input's gradient is wanted.
    pub const fn needed_by(self, input: usize) -> Saved {
        Saved { save: self, by: Some(input) }
    }
}

/// Something that a gradient rule reads, and for which input's gradient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Saved {
    /// What.
    pub save: Save,
    /// Only for that input's gradient; `None`: for any.
    pub by: Option<usize>,
}

impl Saved {
    /// Whether it is saved where the gradients of these inputs are wanted.
    pub fn is_for(&self, needs: &[bool]) -> bool {
        self.by.is_none_or(|input| needs.get(input) == Some(&true))
    }
}

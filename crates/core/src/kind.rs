//! What a buffer is, in the ledger's words.

use std::fmt;

use serde::Serialize;

/// What a buffer is held as.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Captured by a function, by reference.
    Constant,
    /// A variable's value.
    Variable,
    /// A gradient.
    Gradient,
    /// An optimizer's state.
    Optimizer,
    /// A value on the way.
    Activation,
    /// Workspace of a kernel.
    Scratch,
    /// An argument.
    Input,
    /// A result.
    Output,
    /// A graph's own nodes.
    Graph,
    /// On its way to or from a file.
    Staging,
}

impl Kind {
    /// All of them.
    pub const ALL: [Kind; 10] = [
        Kind::Constant,
        Kind::Variable,
        Kind::Gradient,
        Kind::Optimizer,
        Kind::Activation,
        Kind::Scratch,
        Kind::Input,
        Kind::Output,
        Kind::Graph,
        Kind::Staging,
    ];

    /// The user's word.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Constant => "constant",
            Kind::Variable => "variable",
            Kind::Gradient => "gradient",
            Kind::Optimizer => "optimizer",
            Kind::Activation => "activation",
            Kind::Scratch => "scratch",
            Kind::Input => "input",
            Kind::Output => "output",
            Kind::Graph => "graph",
            Kind::Staging => "staging",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

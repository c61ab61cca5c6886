//! Why is this alive? Who holds the bytes of a tensor, and who holds those. [`why_line`](super::why_line) asks the same of a
//! line.

use std::fmt;

use tonnage_core::{Bytes, Result, Source};
use tonnage_runtime::Owner;

use super::holders::{BytesInQuestion, known};
use crate::tensor::Tensor;

/// Someone who holds bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeldBy {
    /// It is the value of a variable.
    Variable {
        /// Its name.
        name: String,
        /// Where it was made.
        made: Source,
        /// Containers and name tables that hold the variable.
        within: Vec<String>,
    },
    /// A gradient tape of this thread saves it for an op's gradient.
    Tape {
        /// The op.
        op: &'static str,
        /// The op's line.
        source: Source,
    },
    /// A function or session captured it while it was traced.
    Captured {
        /// Which of the two.
        what: &'static str,
        /// Where it was made.
        made: Source,
    },
    /// Handles and views that the program holds itself: variables of Rust, parts of structs, entries of lists.
    Program {
        /// How many, with the one that was asked about.
        handles: usize,
    },
}

/// Why some bytes are alive. Prints as a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Why {
    /// How the ledger calls them; `None` for a recipe, which has no bytes.
    pub owner: Option<Owner>,
    /// What they take.
    pub bytes: Bytes,
    /// Whether the tensor sees them in another way than they lie: as a view.
    pub is_view: bool,
    /// Who holds them.
    pub held_by: Vec<HeldBy>,
}

/// Who holds the bytes of a tensor: variables with what holds those, gradient tapes of this thread, functions and sessions
/// that captured it, and as many handles of the program as are left over.
///
/// ```
/// use tonnage::memory::{self, HeldBy};
/// use tonnage::{Elementwise, GradientTape, tensor};
/// let x = tensor(vec![0.5f32; 1024])?;
/// let tape = GradientTape::new();
/// tape.watch(&x);
/// let y = (&x).tanh()?;
/// let why = memory::why(&y)?;
/// assert!(matches!(why.held_by[0], HeldBy::Tape { op: "tanh", .. }));
/// assert_eq!(why.held_by[1], HeldBy::Program { handles: 1 }); // `y` itself
/// println!("{why}");
/// drop(tape);
/// assert_eq!(memory::why(&y)?.held_by, [HeldBy::Program { handles: 1 }]);
/// # Ok::<(), tonnage::Error>(())
/// ```
///
/// # Errors
/// For a tensor that has no values: a symbol, or a type alone.
#[track_caller]
pub fn why(tensor: &Tensor) -> Result<Why> {
    let array = tensor.array("why").map_err(|e| e.at(Source::here()))?;
    let asked = known(&BytesInQuestion::Storage(std::ptr::from_ref(array.storage()) as usize));
    let mut held_by = asked.held_by;
    // Each of those holds a handle, or a view that holds one.
    let handles = array.handles().saturating_sub(asked.storages.len()).max(1);
    held_by.push(HeldBy::Program { handles });
    Ok(Why {
        owner: array.storage().owner(),
        bytes: array.storage().reserved(),
        is_view: array.is_view(),
        held_by,
    })
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.owner {
            Some(owner) => write!(f, "{} of {owner}", self.bytes)?,
            None => write!(f, "a recipe, which takes no bytes")?,
        }
        writeln!(f, "{}", if self.is_view { ", seen through a view" } else { "" })?;
        for holder in &self.held_by {
            writeln!(f, "  {holder}")?;
        }
        Ok(())
    }
}

impl fmt::Display for HeldBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeldBy::Variable { name, made, within } => {
                write!(f, "the value of variable `{name}`, made at {made}")?;
                within.iter().try_for_each(|holder| write!(f, ", which {holder} holds"))
            }
            HeldBy::Tape { op, source } => {
                write!(f, "saved by a gradient tape for the gradient of {op} at {source}")
            }
            HeldBy::Captured { what, made } => write!(f, "captured by the {what} made at {made}"),
            HeldBy::Program { handles: 1 } => write!(f, "1 handle of the program"),
            HeldBy::Program { handles } => {
                write!(f, "{handles} handles of the program, views among them")
            }
        }
    }
}

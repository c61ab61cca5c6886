//! Several values as tensors in a row: strings are three of them.

use tonnage::strings::{Strings, Value};
use tonnage::{Result, Tensor, Tree};

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ValueKind {
    /// One tensor.
    Numbers,
    /// Offsets, sizes and bytes.
    Strings,
}

/// Values as their tensors, and what they are.
pub struct FlatValues {
    pub tensors: Vec<Tensor>,
    pub kinds: Vec<ValueKind>,
}

impl FlatValues {
    /// Of values.
    pub fn of(values: impl IntoIterator<Item = Value>) -> FlatValues {
        let mut flat = FlatValues { tensors: Vec::new(), kinds: Vec::new() };
        for value in values {
            flat.kinds.push(match &value {
                Value::Numbers(_) => ValueKind::Numbers,
                Value::Strings(_) => ValueKind::Strings,
            });
            match value {
                Value::Numbers(tensor) => flat.tensors.push(tensor),
                Value::Strings(strings) => strings.take(&mut |part| flat.tensors.push(part)),
            }
        }
        flat
    }

    /// As values again.
    pub fn values(self) -> Result<Vec<Value>> {
        let mut rest = self.tensors.into_iter();
        self.kinds.into_iter().map_while(|kind| next(&mut rest, kind)).collect()
    }
}

/// The next value of a row of tensors; none at its end.
pub fn next(rest: &mut impl Iterator<Item = Tensor>, kind: ValueKind) -> Option<Result<Value>> {
    let first = rest.next()?;
    Some(match kind {
        ValueKind::Numbers => Ok(Value::Numbers(first)),
        ValueKind::Strings => {
            let (sizes, bytes) = (rest.next()?, rest.next()?);
            Strings::from_parts(first, sizes, bytes).map(Value::Strings)
        }
    })
}

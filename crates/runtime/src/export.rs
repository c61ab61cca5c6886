//! Bytes that somebody outside looks at, for as long as they like: another language's view of a tensor.
//!
//! A guard cannot be handed out of the language, so an export is a count: while it lives its bytes are not sent away, and
//! since it holds the array nobody is the only holder, so nobody writes them.
//!
//! Decision: `docs/decisions/numpy-views.md`.

use tonnage_core::{Result, Source};

use crate::array::Array;

/// A tensor whose bytes stay as and where they are while this lives.
#[derive(Debug)]
pub struct ExportedArray {
    array: Array,
    address: usize,
}

impl ExportedArray {
    /// Pins a tensor's bytes; a recipe is made resident first.
    pub fn new(array: &Array, what: &'static str, source: Source) -> Result<ExportedArray> {
        let array = array.clone();
        let pinned = array.pin(what, source)?;
        let address = pinned.bytes()?.as_ptr() as usize;
        array.storage().exported(true);
        drop(pinned);
        Ok(ExportedArray { array, address })
    }

    /// The tensor.
    pub fn array(&self) -> &Array {
        &self.array
    }

    /// Where its first element lies.
    pub fn address(&self) -> usize {
        self.address + self.array.layout().offset * self.array.dtype().size()
    }
}

impl Drop for ExportedArray {
    fn drop(&mut self) {
        self.array.storage().exported(false);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tonnage_core::{Kind, Mark};

    #[test]
    fn an_exported_tensor_is_nobodys_alone_and_reads_where_it_says() {
        let mark = Mark { source: Source::here(), kind: Kind::Input };
        let array = Array::from_slice(&[1.0f32, 2.0], &[2], mark, "test").unwrap();
        assert!(array.is_sole());
        let export = ExportedArray::new(&array, "test", mark.source).unwrap();
        assert!(!array.is_sole());
        let pinned = array.pin("test", mark.source).unwrap();
        assert_eq!(export.address(), pinned.bytes().unwrap().as_ptr() as usize);
        drop(pinned);
        drop(export);
        assert!(array.is_sole());
    }
}
